/**
 * The verifier: is this value a well-formed graph? It is total (any structure that has the types of
 * graph.ts gets an answer, never an exception) and collects every diagnostic it can. It checks that
 *   - ids equal positions, names are unique, every value is an input, a weight or one node's output,
 *     and is defined before it is used;
 *   - symbols are declared once, with sensible ranges, before anything mentions them;
 *   - operand counts and attributes fit the op table, and inference gives the recorded types and only
 *     constraints that are recorded;
 *   - weights are typed as declared, outputs and states exist;
 *   - all of that for every subgraph.
 */
import {
  constantValue,
  type IndexExpr,
  indexEquals,
  sub,
  substitute,
  toIndex,
  variable,
  variablesOf,
  withinExactIntegers,
} from "../semantics/index-expr.ts";
import { simplify } from "../semantics/index-range.ts";
import { makeTensor } from "../semantics/tensor.ts";
import {
  attempt,
  type Diagnostic,
  type DiagnosticDetail,
  diagnostic,
} from "../support/diagnostic.ts";
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";
import { type AnyAttrs, attrFaults, attrParts } from "./attr-schema.ts";
import { inferCall, inferDefinition } from "./builder.ts";
import type { Graph, Node, NodeOf, OpKind, TensorType, ValueId } from "./graph.ts";
import type { InferContext } from "./op-info.ts";
import { isOpKind, schemaOf } from "./op-table.ts";
import { SymbolScope } from "./symbol-scope.ts";
import { bytesOf, printType, sameShape, sameType } from "./tensor-type.ts";

/** Everything that is wrong with a graph; empty when it is well formed. */
export function verifyGraph(graph: Graph): readonly Diagnostic[] {
  return new Verifier(graph, new SymbolScope()).run();
}

class Verifier {
  readonly #graph: Graph;
  readonly #scope: SymbolScope;
  readonly #faults: Diagnostic[] = [];
  readonly #defined = new Set<ValueId>();
  /** Symbols that stand for an extent which some node's data decide. */
  readonly #introduced = new Set<string>();
  /** Constraints of the graph, both ways round. */
  readonly #constraints = new Set<string>();

  constructor(graph: Graph, scope: SymbolScope) {
    this.#graph = graph;
    this.#scope = scope;
  }

  run(): readonly Diagnostic[] {
    const graph = this.#graph;
    this.#checkSymbols();
    const given = graph.inputs.flatMap((id) => this.#typeOf(id)?.shape ?? []);
    for (const name of variablesOf(...given)) this.#introduced.add(name);
    this.#checkValues();
    this.#checkConstraints();
    for (const id of graph.inputs) this.#define(id, "the inputs");
    for (const weight of graph.weights) this.#checkWeight(weight);
    for (const [position, node] of graph.nodes.entries()) this.#checkNode(node, position);
    for (const id of graph.outputs) this.#checkUse(id, "the outputs");
    this.#checkStates();
    for (const value of graph.values) {
      if (!this.#defined.has(value.id)) {
        this.#report("GRF014", `value "${value.name}" is no input, weight or output of a node`);
      }
    }
    return this.#faults;
  }

  #report(code: DiagnosticCode, message: string, detail: DiagnosticDetail = {}): void {
    this.#faults.push(diagnostic(code, message, { at: `graph "${this.#graph.name}"`, ...detail }));
  }

  #checkSymbols(): void {
    for (const symbol of this.#graph.symbols) {
      const declared = attempt(() => this.#scope.declare(symbol));
      if (!declared.ok) this.#faults.push(...declared.diagnostics);
    }
  }

  #checkValues(): void {
    const names = new Set<string>();
    for (const [position, value] of this.#graph.values.entries()) {
      if (value.id !== position) {
        this.#report("GRF014", `value "${value.name}" at position ${position} has id ${value.id}`);
      }
      if (names.has(value.name)) this.#report("GRF005", `two values are named "${value.name}"`);
      names.add(value.name);
      this.#checkDeclared(value.type.shape, `value "${value.name}"`);
      withinExactIntegers<unknown>(
        () => bytesOf(value.type),
        (why) => this.#report("SHP004", `value "${value.name}" has too many bytes: ${why}`),
      );
    }
  }

  #checkDeclared(exprs: readonly IndexExpr[], what: string): boolean {
    const unknown = [...variablesOf(...exprs)].filter((name) => !this.#scope.ranges.has(name));
    for (const name of unknown) {
      this.#report("GRF006", `${what} mentions the symbol "${name}", which is not declared`, {
        help: `declare it: where 1 <= ${name} <= 1024`,
      });
    }
    return unknown.length === 0;
  }

  #checkConstraints(): void {
    for (const { left, right } of this.#graph.constraints) {
      this.#checkDeclared([left, right], "a constraint");
      this.#constraints.add(`${left.key} = ${right.key}`).add(`${right.key} = ${left.key}`);
    }
  }

  /** The type of a value, or undefined if there is none. */
  #typeOf(id: ValueId): TensorType | undefined {
    return this.#graph.values[id]?.type;
  }

  #define(id: ValueId, what: string): void {
    if (!this.#typeOf(id)) this.#report("GRF014", `${what} name value ${id}, which does not exist`);
    else if (this.#defined.has(id)) {
      this.#report("GRF014", `value "${this.#graph.values[id]!.name}" is defined twice`);
    }
    this.#defined.add(id);
  }

  #checkUse(id: ValueId, what: string): boolean {
    if (this.#typeOf(id) && this.#defined.has(id)) return true;
    const name = this.#graph.values[id]?.name ?? `number ${id}`;
    this.#report("GRF007", `${what} use value "${name}", which is not defined before`);
    return false;
  }

  #checkWeight({ value, source }: Graph["weights"][number]): void {
    this.#define(value, "the weights");
    const type = this.#typeOf(value);
    if (!type) return;
    const name = this.#graph.values[value]!.name;
    if (type.shape.some((d) => constantValue(d) === undefined)) {
      this.#report("GRF009", `weight "${name}" has the type ${printType(type)}`, {
        help: "a weight has a fixed shape",
      });
    } else if (source.kind === "inline") {
      const { dtype, shape, data } = source.tensor;
      const found: TensorType = { dtype, shape: shape.map(toIndex) };
      if (!sameType(found, type) || data.length !== makeTensor(dtype, shape).data.length) {
        this.#report(
          "GRF009",
          `constant "${name}" is ${printType(type)}, its data are ${printType(found)} with ${data.length} elements`,
        );
      }
    }
  }

  #checkNode(node: Node, position: number): void {
    const at = node.origin ?? `node ${position} (${node.op})`;
    if (node.id !== position) {
      this.#report("GRF014", `the node at position ${position} has id ${node.id}`, { at });
    }
    const usable = node.inputs.map((id) => this.#checkUse(id, `operands of ${at}`));
    for (const id of node.outputs) this.#define(id, `the outputs of ${at}`);
    if (!isOpKind(node.op)) {
      this.#report("GRF010", `unknown op "${(node as { op: string }).op}"`, { at });
      return;
    }
    const faults = attrFaults(schemaOf(node.op), node.attrs as AnyAttrs);
    for (const fault of faults) this.#report("GRF003", `${node.op}: ${fault}`, { at });
    if (faults.length > 0 || !usable.every((u) => u)) return;
    const { dims, graphs } = attrParts(schemaOf(node.op), node.attrs as AnyAttrs);
    const declared = this.#checkDeclared(dims, at);
    const before = this.#faults.length;
    for (const inner of graphs) {
      this.#faults.push(...new Verifier(inner, new SymbolScope(this.#scope)).run());
    }
    if (declared && before === this.#faults.length) this.#checkTypes(node, at);
  }

  #checkTypes(node: Node, at: string): void {
    const inferred = attempt(() => this.#infer(node, at));
    if (!inferred.ok) {
      this.#faults.push(...inferred.diagnostics);
      return;
    }
    const recorded = node.outputs.map((id) => this.#typeOf(id));
    if (recorded.some((t) => t === undefined)) return;
    const { types, fresh } = inferred.value;
    const spelled = (list: readonly (TensorType | undefined)[]) =>
      list.map((t) => printType(t!)).join(", ");
    if (
      types.length !== recorded.length ||
      !this.#matches(types, recorded as TensorType[], fresh)
    ) {
      this.#report("GRF008", `recorded ${spelled(recorded)}, inferred ${spelled(types)}`, { at });
    }
  }

  /** Infers the outputs; extents that the data decide are `$0`, `$1`, … with their ranges. */
  #infer(
    node: Node,
    at: string,
  ): { readonly types: readonly TensorType[]; readonly fresh: SymbolScope } {
    const fresh = new SymbolScope();
    const ctx: InferContext = {
      ranges: this.#scope.ranges,
      at,
      requireEqual: (left, right) => this.#checkRequired(left, right, at),
      freshSymbol: (_hint, { min, max }) => {
        if (min === max) return toIndex(min);
        const name = `$${fresh.own.length}`;
        fresh.declare({ name, min, max });
        return variable(name);
      },
      inferDefinition: (op, inputs, attrs) => inferDefinition(op, inputs, attrs, ctx),
    };
    const { op, inputs, attrs } = node as NodeOf<OpKind>;
    const operands = inputs.map((id) => this.#graph.values[id]!.type);
    return { types: inferCall(op, operands, attrs, ctx), fresh };
  }

  #checkRequired(left: IndexExpr, right: IndexExpr, at: string): void {
    if (this.#constraints.has(`${left.key} = ${right.key}`)) return;
    this.#report("GRF012", `${left.key} == ${right.key} must hold, but is no constraint`, {
      at,
      help: `add it: where ${left.key} == ${right.key} from ${JSON.stringify(at)}`,
    });
  }

  /** Equal types, where each fresh symbol stands for a declared one of that range, for no other. */
  #matches(
    inferred: readonly TensorType[],
    recorded: readonly TensorType[],
    fresh: SymbolScope,
  ): boolean {
    const bindings = new Map<string, IndexExpr>();
    return inferred.every((type, i) => {
      const other = recorded[i]!;
      if (type.dtype !== other.dtype || type.shape.length !== other.shape.length) return false;
      for (const [axis, extent] of type.shape.entries()) {
        const name = extent.key;
        const range = fresh.ranges.get(name);
        if (!range || bindings.has(name)) continue;
        const found = this.#scope.ranges.get(other.shape[axis]!.key);
        if (!found || found.min !== range.min || found.max !== range.max) return false;
        if (this.#introduced.has(other.shape[axis]!.key)) return false;
        this.#introduced.add(other.shape[axis]!.key);
        bindings.set(name, other.shape[axis]!);
      }
      const shape = type.shape.map((d) => simplify(substitute(d, bindings), this.#scope.ranges));
      return sameShape(shape, other.shape) || this.#provedEqual(shape, other.shape);
    });
  }

  #provedEqual(a: readonly IndexExpr[], b: readonly IndexExpr[]): boolean {
    return a.every((d, i) => indexEquals(simplify(sub(d, b[i]!), this.#scope.ranges), 0));
  }

  #checkStates(): void {
    const { states, inputs, outputs, values } = this.#graph;
    const taken = new Set<ValueId>();
    for (const { input, output } of states) {
      const [from, to] = [values[input], values[output]];
      if (!from || !to || !inputs.includes(input) || !outputs.includes(output)) {
        this.#report("GRF011", `state ${input} -> ${output} names no input and output`);
      } else if (taken.has(input)) {
        this.#report("GRF011", `state "${from.name}" takes over two outputs`);
      } else if (!sameType(from.type, to.type)) {
        const found = `${printType(from.type)} and ${printType(to.type)}`;
        this.#report("GRF011", `state "${from.name}" -> "${to.name}" pairs ${found}`);
      }
      taken.add(input);
    }
  }
}
