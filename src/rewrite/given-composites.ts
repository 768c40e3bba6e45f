/**
 * Rules that recognise the composites that a model came with. Rewriting sees core ops alone; who takes the
 * graph afterwards (an exporter) is to find the clamps, norms and means of the import again wherever their
 * definitions are still there. A rule's left side is such a definition for the operands' types, its right
 * side the composite: equal by definition, so that there is nothing to prove.
 */
import { type Pattern, printPattern, term, variable } from "../egraph/index.ts";
import type { AnyAttrs } from "../graph/attr-schema.ts";
import { definitionGraph } from "../graph/builder.ts";
import type { CompositeKind } from "../graph/composite-table.ts";
import { rangesOf } from "../graph/counts.ts";
import type { Graph, Node, NodeOf, OpKind, TensorType, ValueId } from "../graph/graph.ts";
import { isComposite } from "../graph/op-table.ts";
import { prepareModel } from "../graph/prepare.ts";
import { printType, sameType } from "../graph/tensor-type.ts";
import { refTensorsEqual, type Tensor, toRef } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";
import { type RuleRow, row } from "./rule-row.ts";
import type { Site } from "./site.ts";
import { attrsPayload, isScalarOp, isTransparent } from "./terms.ts";

/** Terms of a left side at most: larger definitions (recurrent layers) are left as they are. */
const mostTerms = 48;

/** One rule for each composite of the graphs that differs in operator, attributes or operand types. */
export function givenComposites(graphs: readonly Graph[]): readonly RuleRow[] {
  const rules = new Map<string, RuleRow>();
  for (const graph of graphs) addRules(graph, rules);
  return [...rules.values()];
}

function addRules(graph: Graph, rules: Map<string, RuleRow>): void {
  for (const node of graph.nodes) {
    if (!isComposite(node.op) || !isTransparent(node, graph)) continue;
    const types = node.inputs.map((id) => graph.values[id]!.type);
    const { key } = attrsPayload(node.op, node.attrs as AnyAttrs);
    const asked = `${node.op} ${key} ${types.map(printType).join(" ")}`;
    if (rules.has(asked)) continue;
    const found = ruleOf(node as NodeOf<CompositeKind>, types, { graph, number: rules.size + 1 });
    if (found) rules.set(asked, found);
  }
}

function ruleOf(
  { op, attrs }: NodeOf<CompositeKind>,
  types: readonly TensorType[],
  { graph, number }: { readonly graph: Graph; readonly number: number },
): RuleRow | undefined {
  const scope = { ranges: rangesOf(graph), at: op };
  const defined = definitionGraph(op, types, attrs as never, scope);
  const definition = prepareModel({ graph: defined, weights: { read: refuseWeight } }).graph;
  const writer = new PatternWriter(definition);
  const left = writer.write();
  if (!left) return undefined;
  const names = types.map((_, i) => operandName(i));
  const right = (site: Site) => {
    const fits =
      names.every((name, i) => !writer.reads(i) || isOfType(site, name, types[i]!)) &&
      writer.attributes.every(([name, key]) => site.key(name) === key) &&
      writer.constants.every(([name, tensor]) => isElement(site, name, tensor));
    if (!fits) return undefined;
    return site.add(
      op as OpKind,
      names.map((name) => site.id(name)),
      attrs as never,
    );
  };
  return row(`given-${op}-${number}`, "exact", printPattern(left), right);
}

function refuseWeight(key: string): never {
  invariant(false, () => `a definition reads no weight, but "${key}" was asked for`);
}

const operandName = (i: number) => `x${i}`;

function isOfType(site: Site, name: string, wanted: TensorType): boolean {
  const { type } = site.facts(name);
  return type !== undefined && sameType(type, wanted);
}

function isElement(site: Site, name: string, tensor: Tensor): boolean {
  const { value } = site.facts(name);
  return value !== undefined && refTensorsEqual(value, toRef(tensor));
}

/** A definition as a tree. */
class PatternWriter {
  readonly #graph: Graph;
  readonly #makers: ReadonlyMap<ValueId, Node>;
  readonly #names = new Map<ValueId, string>();
  readonly #read = new Set<number>();
  /** Variables that have to be constants, with their elements. */
  readonly constants: (readonly [string, Tensor])[] = [];
  /** Variables of attributes, with what these have to be. */
  readonly attributes: (readonly [string, string])[] = [];
  #terms = 0;

  constructor(graph: Graph) {
    this.#graph = graph;
    this.#makers = new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n] as const)));
  }

  reads(operand: number): boolean {
    return this.#read.has(operand);
  }

  /** Undefined where the definition is no term, or too large a one. */
  write(): Pattern | undefined {
    const { inputs, outputs, weights } = this.#graph;
    for (const [i, id] of inputs.entries()) this.#names.set(id, operandName(i));
    for (const { value, source } of weights) {
      if (source.kind !== "inline") return undefined;
      const name = `k${this.constants.length}`;
      this.#names.set(value, name);
      this.constants.push([name, source.tensor]);
    }
    const whole = this.#pattern(outputs[0]!);
    return whole?.kind === "node" ? whole : undefined;
  }

  #pattern(id: ValueId): Pattern | undefined {
    const node = this.#makers.get(id);
    if (!node) {
      const name = this.#names.get(id)!;
      this.#read.add(this.#graph.inputs.indexOf(id));
      return variable(name);
    }
    this.#terms++;
    if (this.#terms > mostTerms || !isTransparent(node, this.#graph)) return undefined;
    const children = node.inputs.map((input) => this.#pattern(input));
    if (children.some((child) => child === undefined)) return undefined;
    return this.#term(node, children as readonly Pattern[]);
  }

  /** In the encoding of terms.ts; elementwise operators under their own names, as rules have them. */
  #term({ op, attrs }: Node, children: readonly Pattern[]): Pattern {
    if (isScalarOp(op)) return term(op, children);
    const { key } = attrsPayload(op, attrs as AnyAttrs);
    const apply = (operands: readonly Pattern[]): Pattern => {
      const name = `a${this.attributes.length}`;
      this.attributes.push([name, key]);
      return { ...term(op, operands), payload: { kind: "variable", name } };
    };
    if (op !== "concat") return apply(children);
    return children.slice(1).reduce((left, right) => apply([left, right]), children[0]!);
  }
}
