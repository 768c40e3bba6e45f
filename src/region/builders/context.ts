/**
 * What the nest builders share: a NestContext collects the items and tensors of one graph, a
 * StatementDraft collects the loops and accesses of one statement. Conventions: an axis of extent 1
 * gets no loop and is indexed by 0; a constant of one repeated element becomes a literal; equal
 * accesses are read once; guards that the ranges prove are dropped.
 */
import type { Graph, Node, TensorType, ValueId } from "../../graph/graph.ts";
import { type Condition, inRange } from "../../semantics/condition.ts";
import type { DType } from "../../semantics/dtype.ts";
import {
  constant,
  constantValue,
  type IndexExpr,
  type IndexLike,
  toIndex,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRange, loopRange } from "../../semantics/index-range.ts";
import type { Monoid } from "../../semantics/monoids.ts";
import { argument, bindArguments, type ScalarExpr } from "../../semantics/scalar-expr.ts";
import { type RefTensor, toRef } from "../../semantics/tensor.ts";
import { invariant } from "../../support/invariant.ts";
import type {
  Access,
  Indirect,
  Loop,
  LoopKind,
  NestItem,
  NestTensor,
  Routine,
  Selection,
  TensorRole,
  Write,
} from "../nest.ts";
import { accessKey, literalOf, numberAs, pruneConditions } from "../statement.ts";

/** What every node has, whatever its op. */
export type NodeHead = Pick<Node, "id" | "op" | "inputs" | "outputs" | "origin">;

type RoledTensor = NestTensor & { readonly role: TensorRole };

export interface NestOptions {
  /** Names of statements begin with it. */
  readonly prefix?: string;
  /**
   * The first k of long lines are selected, by a routine (lower/first-places.ts) on so many lanes of 32 bits; absent:
   * counted.
   */
  readonly selectionLanes?: number;
  /** Filters along several axes are passes along one each, with results between in memory; default: one sum of all. */
  readonly separatesFilters?: boolean;
}

/** Collects the nests of one graph. */
export class NestContext {
  readonly graph: Graph;
  readonly items: NestItem[] = [];
  readonly tensors = new Map<string, RoledTensor>();
  readonly symbolRanges: ReadonlyMap<string, IndexRange>;
  readonly #constants = new Map<ValueId, RefTensor>();
  readonly #roots = new Map<string, string>();
  readonly #claimed = new Set<string>();
  readonly selectionLanes: number | undefined;
  readonly separatesFilters: boolean;
  readonly #prefix: string;
  #statements = 0;

  constructor(
    graph: Graph,
    { prefix = "", selectionLanes, separatesFilters = false }: NestOptions = {},
  ) {
    this.graph = graph;
    this.separatesFilters = separatesFilters;
    this.#prefix = prefix;
    this.selectionLanes = selectionLanes;
    this.symbolRanges = new Map(graph.symbols.map((s) => [s.name, { min: s.min, max: s.max }]));
    for (const { value, source } of graph.weights) {
      if (source.kind === "inline") this.#constants.set(value, toRef(source.tensor));
      this.#declare(value, "weight");
    }
    for (const value of graph.inputs) this.#declare(value, "input");
    const outputs = new Set(graph.outputs);
    for (const node of graph.nodes) {
      for (const value of node.outputs) {
        this.#declare(value, outputs.has(value) ? "output" : "intermediate");
      }
    }
  }

  type(value: ValueId): TensorType {
    return this.graph.values[value]!.type;
  }

  name(value: ValueId): string {
    return this.graph.values[value]!.name;
  }

  /** The elements of an inline constant. */
  constantOf(value: ValueId): RefTensor | undefined {
    return this.#constants.get(value);
  }

  /** The one value that all elements of an inline constant have. */
  splatOf(value: ValueId): number | bigint | undefined {
    const data = this.#constants.get(value)?.data;
    const first = data?.[0];
    return first !== undefined && data!.every((x: number | bigint) => Object.is(x, first))
      ? first
      : undefined;
  }

  /** Declares an intermediate tensor that no value of the graph names. */
  temporary(base: string, dtype: DType, shape: readonly IndexExpr[]): string {
    let name = base;
    for (let n = 1; this.tensors.has(name); n++) name = `${base}${n}`;
    this.tensors.set(name, { name, dtype, shape, role: "intermediate" });
    return name;
  }

  tensor(name: string): RoledTensor {
    const tensor = this.tensors.get(name);
    invariant(tensor, () => `no tensor ${name}`);
    return tensor;
  }

  /** A loop name that is not a symbol of the graph. */
  loopName(base: string): string {
    let name = base;
    while (this.symbolRanges.has(name)) name += "_";
    return name;
  }

  draft(node: NodeHead): StatementDraft {
    const origin = node.origin ?? `${node.op} ${this.name(node.outputs[0]!)}`;
    return new StatementDraft(this, origin);
  }

  nextStatementName(): string {
    return `${this.#prefix}S${this.#statements++}`;
  }

  /**
   * The output of `node` as another name for `of`. An output of the graph needs elements of its own
   * when `of` already has an owner outside the program: then the elements are copied.
   */
  alias(node: NodeHead, of: ValueId): void {
    const name = this.name(node.outputs[0]!);
    const root = this.#rootOf(this.name(of));
    if (this.tensor(name).role !== "output" || this.#claim(root)) {
      this.#addView(name, this.name(of));
      return;
    }
    const { dtype, shape } = this.tensor(name);
    const view = this.temporary(`${name}.view`, dtype, shape);
    this.#addView(view, this.name(of));
    this.copy(node, view, name);
  }

  /** A statement that copies a tensor to another of the same shape. */
  copy(node: NodeHead, from: string, to: string): void {
    this.#copy(this.draft(node), from, to);
  }

  /** A further tensor of role output with the elements of `from`. */
  copyOutput(from: string): string {
    const { dtype, shape } = this.tensor(from);
    const to = this.temporary(`${from}.output`, dtype, shape);
    this.tensors.set(to, { ...this.tensor(to), role: "output" });
    this.#copy(new StatementDraft(this, `output ${from}`), from, to);
    return to;
  }

  #copy(draft: StatementDraft, from: string, to: string): void {
    const at = draft.loops("i", this.tensor(to).shape);
    draft.finishStatement([draft.readTensor(from, at)], [{ tensor: to, index: at }]);
  }

  /** Another name for the elements of an intermediate tensor, in another shape. */
  reshaped(of: string, shape: readonly IndexExpr[]): string {
    const name = this.temporary(`${of}.lines`, this.tensor(of).dtype, shape);
    this.#addView(name, of);
    return name;
  }

  /** A computation that no nest expresses: left to a Program builder. */
  routine(node: NodeHead): void {
    const reads = node.inputs.map((v) => this.name(v));
    const writes = node.outputs.map((v) => this.name(v));
    this.#addRoutine(node, { reads, writes });
  }

  /** The places of the first of each line. */
  selection(node: NodeHead, from: string, to: string, selects: Selection): void {
    this.#addRoutine(node, { reads: [from], writes: [to], selects });
  }

  #addRoutine(node: NodeHead, what: Pick<Routine, "reads" | "writes" | "selects">): void {
    const origin = node.origin === undefined ? node.op : `${node.op} of ${node.origin}`;
    const routine = { name: this.nextStatementName(), node: node.id, origin, ...what };
    this.items.push({ kind: "routine", routine });
  }

  #declare(value: ValueId, role: TensorRole): void {
    const { dtype, shape } = this.type(value);
    const name = this.name(value);
    this.tensors.set(name, { name, dtype, shape, role });
  }

  #addView(tensor: string, of: string): void {
    this.#roots.set(tensor, this.#rootOf(of));
    this.items.push({ kind: "view", view: { tensor, of } });
  }

  #rootOf(name: string): string {
    return this.#roots.get(name) ?? name;
  }

  /** Whether an output may share the elements of `root`; each intermediate is claimed once. */
  #claim(root: string): boolean {
    if (this.tensor(root).role !== "intermediate" || this.#claimed.has(root)) return false;
    this.#claimed.add(root);
    return true;
  }
}

/** How a draft folds. */
export interface DraftReduction {
  readonly monoid: Monoid;
  /** Arguments are the components; absent: the components themselves. */
  readonly finish?: readonly ScalarExpr[];
}

export type DraftWrite = Omit<Write, "combine"> & Partial<Pick<Write, "combine">>;

/** Collects one statement; `finishStatement` appends it to the context. */
export class StatementDraft {
  readonly #context: NestContext;
  readonly #origin: string;
  readonly #loops: Loop[] = [];
  readonly #indirects: Indirect[] = [];
  readonly #reads: Access[] = [];
  readonly #readKeys = new Map<string, number>();
  readonly #finishReads: Access[] = [];
  readonly #ranges: Map<string, IndexRange>;
  #guard: readonly Condition[] = [];

  constructor(context: NestContext, origin: string) {
    this.#context = context;
    this.#ranges = new Map(context.symbolRanges);
    this.#origin = origin;
  }

  /** One loop per axis, named `base0`, `base1`, …; gives the index of each axis. */
  loops(base: string, extents: readonly IndexExpr[], kind: LoopKind = "space"): IndexExpr[] {
    return extents.map((extent, axis) => this.loop(`${base}${axis}`, extent, kind));
  }

  /** One loop; an extent of 1 gives no loop and the index 0. */
  loop(base: string, extent: IndexLike, kind: LoopKind = "space"): IndexExpr {
    if (constantValue(extent) === 1) return constant(0);
    const name = this.#context.loopName(base);
    invariant(!this.#ranges.has(name), () => `loop ${name} twice in ${this.#origin}`);
    this.#ranges.set(name, loopRange(extent, this.#ranges));
    this.#loops.push({ name, extent: toIndex(extent), kind });
    return variable(name);
  }

  /** Narrows the domain. */
  guard(conditions: readonly Condition[]): void {
    this.#guard = [...this.#guard, ...pruneConditions(conditions, this.#ranges, this.#loops)];
  }

  /** The conditions that the ranges of the loops so far do not prove. */
  unproved(conditions: readonly Condition[]): readonly Condition[] {
    return pruneConditions(conditions, this.#ranges, this.#loops);
  }

  /** An element of a value: a literal for constants of one repeated element. */
  read(
    value: ValueId,
    index: readonly IndexExpr[],
    guard: readonly Condition[] = [],
    fill: number | bigint = 0,
  ): ScalarExpr {
    const splat = guard.length === 0 ? this.#context.splatOf(value) : undefined;
    if (splat !== undefined) return literalOf(this.#context.type(value).dtype, splat);
    return this.readTensor(this.#context.name(value), index, guard, fill);
  }

  readTensor(
    tensor: string,
    index: readonly IndexExpr[],
    guard: readonly Condition[] = [],
    fill: number | bigint = 0,
  ): ScalarExpr {
    const access = this.#access(tensor, index, guard, fill);
    const key = accessKey(access);
    const at = this.#readKeys.get(key) ?? this.#reads.push(access) - 1;
    this.#readKeys.set(key, at);
    return argument(at, this.#context.tensor(tensor).dtype);
  }

  /** An element that only the finish uses; gives its number among the finish reads. */
  finishRead(tensor: string, index: readonly IndexExpr[]): number {
    return this.#finishReads.push(this.#access(tensor, index, [], 0)) - 1;
  }

  /**
   * The element of an operand that broadcasts into an index of higher or equal rank: axes are aligned
   * at the end and an axis of extent 1 is always read at 0.
   */
  readBroadcast(value: ValueId, at: readonly IndexExpr[]): ScalarExpr {
    return this.read(value, broadcastIndex(this.#context.type(value).shape, at));
  }

  /**
   * An integer read from an index tensor, used as an index into an axis of `extent`. Negative values
   * count from the end. A constant is proved in range here, everything else is checked in the run.
   */
  indirect(value: ValueId, index: readonly IndexExpr[], extent: IndexExpr): IndexExpr {
    const known = this.#constantIndices(value, extent);
    if (known?.single !== undefined) return constant(known.single);
    const name = this.#context.loopName(`v${this.#indirects.length}`);
    const access = this.#access(this.#context.name(value), index, [], 0);
    const range = known ? "proved" : "checked";
    this.#indirects.push({ name, access, extent, wraps: known?.wraps ?? true, range });
    this.#ranges.set(name, loopRange(extent, this.#ranges));
    return variable(name);
  }

  /** As `indirect`, from a tensor whose values are in range by construction. */
  provedIndirect(tensor: string, index: readonly IndexExpr[], extent: IndexExpr): IndexExpr {
    const name = this.#context.loopName(`v${this.#indirects.length}`);
    const access = this.#access(tensor, index, [], 0);
    this.#indirects.push({ name, access, extent, wraps: false, range: "proved" });
    this.#ranges.set(name, loopRange(extent, this.#ranges));
    return variable(name);
  }

  finishStatement(
    body: readonly ScalarExpr[],
    writes: readonly DraftWrite[],
    reduction?: DraftReduction,
  ): void {
    const folds = reduction !== undefined && this.#loops.some((l) => l.kind === "reduce");
    const statement = {
      name: this.#context.nextStatementName(),
      loops: this.#loops,
      guard: this.#guard,
      indirects: this.#indirects,
      reads: this.#reads,
      ...(folds || !reduction ? { body } : withoutReduction(body, reduction, this.#finishReads)),
      finishReads: this.#finishReads,
      ...(folds ? reductionFields(reduction) : {}),
      writes: writes.map((w) => ({ combine: "overwrite" as const, ...w })),
      origin: this.#origin,
    };
    this.#context.items.push({ kind: "statement", statement });
  }

  #access(
    tensor: string,
    index: readonly IndexExpr[],
    conditions: readonly Condition[],
    fill: number | bigint,
  ): Access {
    const { dtype, shape } = this.#context.tensor(tensor);
    invariant(index.length === shape.length, () => `${tensor} has rank ${shape.length}`);
    const guard = pruneConditions(conditions, this.#ranges, this.#loops);
    const value = typeof fill === "number" && Number.isFinite(fill) ? numberAs(dtype, fill) : fill;
    return { tensor, index, guard, fill: guard.length === 0 ? numberAs(dtype, 0) : value };
  }

  #constantIndices(value: ValueId, extent: IndexExpr) {
    const data = this.#context.constantOf(value)?.data;
    const size = constantValue(extent);
    if (!data || size === undefined) return undefined;
    const indices = Array.from(data, Number);
    if (!indices.every((i) => i >= -size && i < size)) return undefined;
    const first = indices[0];
    const same = first !== undefined && indices.every((i) => i === first);
    return {
      wraps: indices.some((i) => i < 0),
      single: same ? (first < 0 ? first + size : first) : undefined,
    };
  }
}

/** The index of an operand of `shape` at the index `at` of what it broadcasts to. */
export function broadcastIndex(
  shape: readonly IndexExpr[],
  at: readonly IndexExpr[],
): readonly IndexExpr[] {
  const offset = at.length - shape.length;
  return shape.map((extent, axis) =>
    constantValue(extent) === 1 ? constant(0) : at[offset + axis]!,
  );
}

/** Guards of a read outside its tensor along some axes. */
export function insideOf(
  index: readonly IndexExpr[],
  shape: readonly IndexExpr[],
): readonly Condition[] {
  return index.flatMap((at, axis) => inRange(at, shape[axis]!));
}

/** A fold of one element is that element: the finish applies to the body itself. */
function withoutReduction(
  body: readonly ScalarExpr[],
  { finish }: DraftReduction,
  finishReads: readonly Access[],
) {
  if (!finish) return { body };
  if (finishReads.length > 0) return { body, finish };
  return { body: finish.map((e) => bindArguments(e, body)) };
}

function reductionFields({ monoid, finish }: DraftReduction) {
  const numericClass = monoid.exact ? ("exact" as const) : ("reassociates" as const);
  const reduction = { monoid, numericClass };
  return finish ? { reduction, finish } : { reduction };
}
