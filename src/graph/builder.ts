/**
 * Builds a graph node by node. Types are inferred and checked as nodes are added; what does not type
 * is rejected with a DiagnosticError, which the caller turns into a Result with `attempt`. `finish`
 * gives the immutable graph. Names are made unique, the order of calls decides everything else.
 */
import {
  type IndexExpr,
  type IndexLike,
  toIndex,
  variable,
  withinExactIntegers,
} from "../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../semantics/index-range.ts";
import { type Tensor, tensorBytes } from "../semantics/tensor.ts";
import { reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { type AnyAttrs, attrFaults } from "./attr-schema.ts";
import { type CompositeKind, compositeTable } from "./composite-table.ts";
import type { CompositeAttrs } from "./composites.ts";
import type {
  Graph,
  Node,
  OpAttrs,
  OpKind,
  ShapeConstraint,
  StatePair,
  TensorType,
  Value,
  ValueId,
  Weight,
} from "./graph.ts";
import { NameTable } from "./name-table.ts";
import type { InferContext } from "./op-info.ts";
import { infoOf, schemaOf } from "./op-table.ts";
import {
  type InputDeclaration,
  type NodeOptions,
  OpWriter,
  type SubgraphBody,
} from "./op-writer.ts";
import { StoredConstants } from "./stored-constants.ts";
import { SymbolScope } from "./symbol-scope.ts";

/** Constants up to this size travel inside the graph; frontends keep the same limit. */
export const inlineBytes = 4096;

export class GraphBuilder extends OpWriter {
  readonly #name: string;
  readonly #scope: SymbolScope;
  readonly #names = new NameTable();
  readonly #constraints = new Map<string, ShapeConstraint>();
  readonly #values: Value[] = [];
  readonly #inputs: ValueId[] = [];
  readonly #weights: Weight[] = [];
  readonly #nodes: Node[] = [];
  readonly #states: StatePair[] = [];
  readonly #constants = new Map<ValueId, Tensor>();
  readonly #keys = new Map<ValueId, string>();
  readonly #scalars = new Map<string, ValueId>();
  readonly #stored: StoredConstants;
  #origin: string | undefined;

  constructor(
    name: string,
    scope: SymbolScope = new SymbolScope(),
    stored: StoredConstants = new StoredConstants(),
  ) {
    super();
    this.#name = name;
    this.#scope = scope;
    this.#stored = stored;
  }

  /** Declares a dimension known only at run time. */
  symbol(name: string, min = 0, max = Infinity): IndexExpr {
    this.#scope.declare({ name, min, max });
    return variable(name);
  }

  get ranges(): IndexRanges {
    return this.#scope.ranges;
  }

  /** Records that two dimensions must be equal. */
  constrain(left: IndexLike, right: IndexLike, origin: string): void {
    const [a, b] = [toIndex(left), toIndex(right)];
    const key = a.key < b.key ? `${a.key} = ${b.key}` : `${b.key} = ${a.key}`;
    if (!this.#constraints.has(key)) this.#constraints.set(key, { left: a, right: b, origin });
  }

  /** Inputs come before weights, constants and nodes. */
  input(name: string, type: TensorType): ValueId {
    invariant(
      this.#values.length === this.#inputs.length,
      () => `input "${name}" is declared after other values`,
    );
    const id = this.#addValue(this.#names.take(name), type);
    this.#inputs.push(id);
    return id;
  }

  /** A weight whose elements stay in the store under `key`. */
  weight(name: string, type: TensorType, key = name): ValueId {
    const id = this.#addValue(this.#names.take(name), type);
    this.#weights.push({ value: id, source: { kind: "stored", key } });
    this.#keys.set(id, key);
    return id;
  }

  /** A constant: inline when small, else stored under its name (see `storedConstants`). */
  constant(tensor: Tensor, name?: string): ValueId {
    const scalarKey =
      name === undefined && tensor.shape.length === 0
        ? `${tensor.dtype} ${tensorBytes(tensor).join(" ")}`
        : undefined;
    const seen = scalarKey === undefined ? undefined : this.#scalars.get(scalarKey);
    if (seen !== undefined) return seen;
    const spelled = name === undefined ? this.#names.takeNumbered("c") : this.#names.take(name);
    const shape = tensor.shape.map(toIndex);
    const id = this.#addValue(spelled, { dtype: tensor.dtype, shape });
    this.#constants.set(id, tensor);
    if (scalarKey !== undefined) this.#scalars.set(scalarKey, id);
    if (tensorBytes(tensor).byteLength <= inlineBytes) {
      this.#weights.push({ value: id, source: { kind: "inline", tensor } });
    } else {
      const key = this.#stored.add(spelled, tensor);
      this.#weights.push({ value: id, source: { kind: "stored", key } });
    }
    return id;
  }

  /**
   * Elements of the constants too large to be inline, of this graph and its subgraphs, by key: they
   * belong into the WeightStore.
   */
  get storedConstants(): ReadonlyMap<string, Tensor> {
    return this.#stored.tensors;
  }

  /** Keys that constants may not take, because weights have them. */
  reserveKeys(keys: Iterable<string>): void {
    for (const key of keys) this.#stored.reserve(key);
  }

  constantOf(value: ValueId): Tensor | undefined {
    return this.#constants.get(value);
  }

  /** Under which key a weight is stored. */
  keyOf(value: ValueId): string | undefined {
    return this.#keys.get(value);
  }

  typeOf(value: ValueId): TensorType {
    const found = this.#values[value];
    invariant(found, () => `graph "${this.#name}" has no value ${value}`);
    return found.type;
  }

  nameOf(value: ValueId): string {
    return this.#values[value]!.name;
  }

  get valueCount(): number {
    return this.#values.length;
  }

  /** Invented names avoid these, which are given to whoever asks for them. */
  reserveNames(names: Iterable<string>): void {
    this.#names.reserve(names);
  }

  /** Gives a value another name, made unique. */
  rename(value: ValueId, wanted: string): void {
    const found = this.#values[value]!;
    if (found.name !== wanted) this.#values[value] = { ...found, name: this.#names.take(wanted) };
  }

  /** Nodes added by `body` get this origin. */
  withOrigin<T>(origin: string, body: () => T): T {
    const outer = this.#origin;
    this.#origin = origin;
    try {
      return body();
    } finally {
      this.#origin = outer;
    }
  }

  nodes<K extends OpKind>(
    op: K,
    inputs: readonly ValueId[],
    attrs: OpAttrs[K],
    options: NodeOptions = {},
  ): readonly ValueId[] {
    const origin = options.origin ?? this.#origin;
    const at = origin ?? `node ${this.#nodes.length} (${op})`;
    const types = this.#inferNode({ op, inputs, attrs, at, hints: options.symbolNames ?? [] });
    const outputs = types.map((type, i) => {
      const wanted = options.names?.[i];
      const name = wanted === undefined ? this.#names.takeNumbered("t") : this.#names.take(wanted);
      return this.#addValue(name, type);
    });
    const base = { id: this.#nodes.length, op, inputs, outputs, attrs };
    this.#nodes.push((origin === undefined ? base : { ...base, origin }) as unknown as Node);
    return outputs;
  }

  subgraph(name: string, inputs: readonly InputDeclaration[], body: SubgraphBody): Graph {
    const inner = this.nested(name);
    const ids = inputs.map((input) => inner.input(input.name, input.type));
    return inner.finish(body(inner, ids));
  }

  /** A builder for a subgraph, which sees the symbols of this graph. */
  nested(name: string): GraphBuilder {
    return new GraphBuilder(name, new SymbolScope(this.#scope), this.#stored);
  }

  /** The runtime may keep `output` and pass it as `input` of the next run. */
  state(input: ValueId, output: ValueId): void {
    this.#states.push({ input, output });
  }

  finish(outputs: readonly ValueId[]): Graph {
    for (const output of outputs) this.typeOf(output);
    return {
      name: this.#name,
      symbols: [...this.#scope.own],
      constraints: [...this.#constraints.values()],
      values: [...this.#values],
      inputs: [...this.#inputs],
      weights: [...this.#weights],
      nodes: [...this.#nodes],
      outputs: [...outputs],
      states: [...this.#states],
    };
  }

  #addValue(name: string, type: TensorType): ValueId {
    const id = this.#values.length;
    const shape = type.shape.map((d) => simplify(d, this.#scope.ranges));
    this.#values.push({ id, name, type: { dtype: type.dtype, shape } });
    return id;
  }

  #inferNode<K extends OpKind>(call: {
    readonly op: K;
    readonly inputs: readonly ValueId[];
    readonly attrs: OpAttrs[K];
    readonly at: string;
    readonly hints: readonly string[];
  }): readonly TensorType[] {
    const hints = [...call.hints];
    const types = call.inputs.map((id) => this.typeOf(id));
    const ctx: InferContext = {
      ranges: this.#scope.ranges,
      at: call.at,
      requireEqual: (left, right) => this.constrain(left, right, call.at),
      freshSymbol: (hint, { min, max }) => {
        if (min === max) return toIndex(min);
        return this.symbol(this.#scope.unusedName(hints.shift() ?? hint), min, max);
      },
      inferDefinition: (op, inputs, attrs) => inferDefinition(op, inputs, attrs, ctx),
    };
    return inferCall(call.op, types, call.attrs, ctx);
  }
}

/** Checks operand count and attributes of a node and infers the types of its outputs. */
export function inferCall<K extends OpKind>(
  op: K,
  inputs: readonly TensorType[],
  attrs: OpAttrs[K],
  ctx: InferContext,
): readonly TensorType[] {
  const info = infoOf(op);
  const [least, most] = info.arity;
  if (inputs.length < least || inputs.length > most) {
    const wanted = least === most ? `${least}` : `${least} to ${most}`;
    reject("GRF001", `${op} takes ${wanted} operands, but has ${inputs.length}`, { at: ctx.at });
  }
  const [fault] = attrFaults(schemaOf(op), attrs as AnyAttrs);
  if (fault !== undefined) {
    const help =
      "correct the attribute where the model is exported: the operator's page says what it may be";
    reject("GRF003", `${op}: ${fault}`, { at: ctx.at, help });
  }
  return withinExactIntegers(
    () => info.infer(inputs, attrs, ctx),
    (why) => reject("SHP004", `${op}: ${why}`, { at: ctx.at, help: "make the extents smaller" }),
  );
}

/** The definition of a composite for operands of these types, as a graph. */
export function definitionGraph<K extends CompositeKind>(
  op: K,
  inputs: readonly TensorType[],
  attrs: CompositeAttrs[K],
  { ranges, at }: Pick<InferContext, "ranges" | "at">,
): Graph {
  const scope = new SymbolScope();
  for (const [name, range] of ranges) scope.ranges.set(name, range);
  const scratch = new GraphBuilder(op, scope);
  const ids = inputs.map((type, i) => scratch.input(`x${i}`, type));
  return scratch.withOrigin(at, () =>
    scratch.finish(compositeTable[op].definition(scratch, ids, attrs)),
  );
}

/** Types of the outputs of a composite, which its definition gives. */
export function inferDefinition<K extends CompositeKind>(
  op: K,
  inputs: readonly TensorType[],
  attrs: CompositeAttrs[K],
  ctx: InferContext,
): readonly TensorType[] {
  const definition = definitionGraph(op, inputs, attrs, ctx);
  invariant(definition.symbols.length === 0, () => `${op} has an extent that the data decide`);
  for (const { left, right } of definition.constraints) ctx.requireEqual(left, right);
  return definition.outputs.map((id) => definition.values[id]!.type);
}
