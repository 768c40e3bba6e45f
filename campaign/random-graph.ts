/**
 * Random small graphs of core ops with random shapes, fit to compare two ways of computing them in
 * floating point. Values are kept small, and what jumps (floor, comparisons, conversions to integers,
 * argmax) is applied only to values that every correct evaluation has exactly: inputs and what moves
 * or compares them. The makers of single ops stand in op-makers.ts.
 * (src/graph/random-graph.ts draws graphs to test structure, with composites, not arithmetic.)
 */
import { GraphBuilder } from "../src/graph/builder.ts";
import type { Graph, TensorType, ValueId } from "../src/graph/graph.ts";
import type { DType } from "../src/semantics/dtype.ts";
import { evaluate, type IndexExpr, toIndex, variable } from "../src/semantics/index-expr.ts";
import { Rng } from "../src/support/rng.ts";
import { opMakers } from "./op-makers.ts";

/** A value of the graph under construction. */
export interface PoolValue {
  readonly id: ValueId;
  readonly dtype: DType;
  /** As declared: a constant or the symbol N. */
  readonly dims: readonly IndexExpr[];
  readonly extents: readonly number[];
  /** Whether every correct evaluation gives the same bits. */
  readonly exact: boolean;
  /** No element is larger in magnitude. */
  readonly bound: number;
}

/** Past this magnitude a value is not fed on, so that rounding stays within the tolerance. */
export const largestBound = 64;

const symbolName = "N";

/** The graph with the number that its symbol N stands for. */
export interface RandomGraph {
  readonly graph: Graph;
  readonly extents: Readonly<Record<string, number>>;
}

/** The builder with its random source and the values made so far. */
export class GraphDraft {
  readonly builder = new GraphBuilder("random");
  readonly rng: Rng;
  readonly pool: PoolValue[] = [];
  readonly symbols: ReadonlyMap<string, number>;
  /** Types of the inputs so far. */
  readonly inputTypes: TensorType[] = [];
  readonly #declared: readonly ValueId[];

  /** @param inputs types of all inputs of the graph, where they are known already */
  constructor(rng: Rng, inputs: readonly TensorType[] = []) {
    this.rng = rng;
    const usesSymbol = inputs.some(({ shape }) => shape.some((d) => d.key === symbolName));
    // A symbol that no input has could not be bound; the rehearsal does not know yet.
    if (usesSymbol || inputs.length === 0) this.builder.symbol(symbolName, 1, 16);
    this.symbols = new Map([[symbolName, rng.integer(1, 6)]]);
    this.#declared = inputs.map((type, i) => this.builder.input(`x${i}`, type));
  }

  /** A new input of the graph, exact and at most 1 for floats, 1000 for integers. */
  input(dtype: DType, dims: readonly IndexExpr[]): PoolValue {
    const type = { dtype, shape: dims };
    const at = this.inputTypes.push(type) - 1;
    const id = this.#declared[at] ?? this.builder.weight(`x${at}`, type);
    const bound = dtype === "bool" || dtype === "f32" ? 1 : 1000;
    return this.keep(id, { exact: true, bound });
  }

  /** Adds a value to the pool. */
  keep(id: ValueId, facts: { readonly exact: boolean; readonly bound: number }): PoolValue {
    const { dtype, shape } = this.builder.typeOf(id);
    const extents = shape.map((d) => evaluate(d, this.symbols));
    const value = { id, dtype, dims: shape, extents, ...facts };
    this.pool.push(value);
    return value;
  }

  /** An extent of 1 to 5, or now and then the symbol. */
  dim(): IndexExpr {
    return this.rng.uniform() < 0.25 ? variable(symbolName) : toIndex(this.rng.integer(1, 5));
  }

  dims(low: number, high: number): IndexExpr[] {
    return Array.from({ length: this.rng.integer(low, high) }, () => this.dim());
  }

  /** A value of the pool that fits, the newest more often. */
  find(fits: (value: PoolValue) => boolean): PoolValue | undefined {
    const found = this.pool.filter((v) => v.bound <= largestBound || v.dtype !== "f32");
    const fitting = found.filter(fits);
    if (fitting.length === 0) return undefined;
    return this.rng.uniform() < 0.6 ? fitting.at(-1) : this.rng.pick(fitting);
  }
}

/**
 * A graph of one to six ops; the same seed gives the same graph. Inputs come before all other values,
 * so the graph is drawn twice: once with weights in their place to learn which it asks for, once to
 * build it.
 */
export function randomGraph(seed: number): RandomGraph {
  const rehearsal = new GraphDraft(new Rng(seed));
  drawOps(rehearsal);
  const draft = new GraphDraft(new Rng(seed), rehearsal.inputTypes);
  drawOps(draft);
  const outputs = [draft.pool.at(-1)!.id];
  if (draft.rng.uniform() < 0.3) outputs.push(draft.rng.pick(draft.pool).id);
  const graph = draft.builder.finish(outputs);
  const extents = graph.symbols.length === 0 ? {} : Object.fromEntries(draft.symbols);
  return { graph, extents };
}

function drawOps(draft: GraphDraft): void {
  draft.input("f32", draft.dims(0, 4));
  const wanted = draft.rng.integer(1, 6);
  let made = 0;
  // A maker declines when no value fits it; some always fits.
  while (made < wanted) if (draft.rng.pick(opMakers)(draft)) made++;
}
