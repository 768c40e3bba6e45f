/**
 * The graph: a model as typed tensor operations, logical only (no layouts, nothing fused), immutable.
 *
 * Values are numbered; a value is an input, a weight or the output of exactly one node. Nodes stand in
 * topological order. Dimensions are index expressions over the graph's symbols, each of which has a
 * range; what the importer had to assume about them (two dimensions that must agree) is a constraint,
 * checked when the symbols are bound at run time.
 *
 * Core ops and their attributes: semantics/core-ops.ts. Composite ops with their definitions in core
 * ops: composites.ts. Typing, traits and counts of every op: op-table.ts. Construction: builder.ts.
 * Text form: graph-text.ts. Checks: verify.ts.
 */
import type { CoreOpAttrs } from "../semantics/core-ops.ts";
import type { DType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { Tensor } from "../semantics/tensor.ts";
import type { CompositeAttrs } from "./composites.ts";

/** Position of a value in `Graph.values`. */
export type ValueId = number;
/** Position of a node in `Graph.nodes`. */
export type NodeId = number;

export interface TensorType {
  readonly dtype: DType;
  /** Outermost first; row-major where an order of elements matters. Empty for a scalar. */
  readonly shape: readonly IndexExpr[];
}

export interface Value {
  readonly id: ValueId;
  /** Unique within the graph; a name of the text form. */
  readonly name: string;
  readonly type: TensorType;
}

/** A dimension known only at run time, `min <= name <= max`; `max` may be Infinity until it is bounded. */
export interface GraphSymbol {
  readonly name: string;
  readonly min: number;
  readonly max: number;
}

/** `left = right` must hold when the symbols are bound; `origin` says which node needs it. */
export interface ShapeConstraint {
  readonly left: IndexExpr;
  readonly right: IndexExpr;
  readonly origin: string;
}

/**
 * Where the elements of a weight are. Small constants travel inside the graph, so that passes may look
 * at them; large ones stay in a WeightStore under `key`.
 */
export type WeightSource =
  | { readonly kind: "inline"; readonly tensor: Tensor }
  | { readonly kind: "stored"; readonly key: string };

export interface Weight {
  readonly value: ValueId;
  readonly source: WeightSource;
}

/** A pair the runtime may keep between runs: the output becomes the next run's input. */
export interface StatePair {
  readonly input: ValueId;
  readonly output: ValueId;
}

/** Attributes of every op, core and composite. Subgraph attributes hold a Graph. */
export type OpAttrs = CoreOpAttrs<Graph> & CompositeAttrs;
export type OpKind = keyof OpAttrs;

export interface NodeOf<K extends OpKind> {
  readonly id: NodeId;
  readonly op: K;
  readonly inputs: readonly ValueId[];
  readonly outputs: readonly ValueId[];
  readonly attrs: OpAttrs[K];
  /** What the user calls it: the model's node name and operator. */
  readonly origin?: string;
}

/** A node of some op; switch on `op` to narrow its attributes. */
export type Node = { readonly [K in OpKind]: NodeOf<K> }[OpKind];

export interface Graph {
  readonly name: string;
  readonly symbols: readonly GraphSymbol[];
  readonly constraints: readonly ShapeConstraint[];
  readonly values: readonly Value[];
  readonly inputs: readonly ValueId[];
  readonly weights: readonly Weight[];
  readonly nodes: readonly Node[];
  readonly outputs: readonly ValueId[];
  readonly states: readonly StatePair[];
}

/** Weight data by key. Reading may be lazy (a range of a file); `read` returns the whole tensor. */
export interface WeightStore {
  read(key: string): Tensor;
}

/** A graph with its weights: what a frontend makes and the compiler takes. */
export interface Model {
  readonly graph: Graph;
  readonly weights: WeightStore;
}
