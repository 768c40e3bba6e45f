/**
 * Nests: every node of a graph as statements with an iteration domain, access maps and a scalar body.
 *
 * A statement runs its body once for each point of its domain. Its loops are a box 0 <= v < extent
 * (extents over the graph's symbols and outer loops), narrowed by `guard`. It reads one element per
 * access and writes one element per output. With a reduction the loops of kind `reduce` are folded by
 * the monoid before the write; `finish` then turns the folded components into the written values. A
 * loop of kind `scan` runs in order: the statement may read what it wrote at an earlier point of it.
 *
 * Index tensors appear as indirect variables: integers loaded per iteration and then used in access
 * maps like loop variables. Nothing here says how the loops run; that is a schedule.
 */
import type { Condition } from "../semantics/condition.ts";
import type { DType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { IndexRange } from "../semantics/index-range.ts";
import type { LayoutMap } from "../semantics/layout.ts";
import type { Monoid } from "../semantics/monoids.ts";
import type { NumericClass } from "../semantics/numeric-class.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";

/** A tensor of the nest form, named after the graph value it holds. */
export interface NestTensor {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly IndexExpr[];
  /** A weight in a physical layout of its own: where its elements come from. */
  readonly stored?: { readonly of: string; readonly layout: LayoutMap };
}

export type LoopKind = "space" | "reduce" | "scan";

/** 0 <= name < extent. Names are unique within a statement. */
export interface Loop {
  readonly name: string;
  readonly extent: IndexExpr;
  readonly kind: LoopKind;
}

/** One element of a tensor; where the guard fails the value is `fill` and nothing is read. */
export interface Access {
  readonly tensor: string;
  readonly index: readonly IndexExpr[];
  readonly guard: readonly Condition[];
  readonly fill: number | bigint;
}

/**
 * An integer loaded from an index tensor in each iteration and named like a loop variable. Values lie
 * in 0 <= name < extent: either proved, or checked at run time (a value outside is an error of the
 * run). Negative values count from the end when `wraps`.
 */
export interface Indirect {
  readonly name: string;
  readonly access: Access;
  readonly extent: IndexExpr;
  readonly wraps: boolean;
  readonly range: "proved" | "checked";
}

export interface Reduction {
  readonly monoid: Monoid;
  readonly numericClass: NumericClass;
}

/** Where one result goes. Without a reduction or scan each element is written exactly once. */
export interface Write {
  readonly tensor: string;
  readonly index: readonly IndexExpr[];
  /** How a write meets what is there (scatter with reduction); `overwrite` for everything else. */
  readonly combine: "overwrite" | "add" | "mul" | "max" | "min";
}

export interface Statement {
  readonly name: string;
  readonly loops: readonly Loop[];
  readonly guard: readonly Condition[];
  readonly indirects: readonly Indirect[];
  readonly reads: readonly Access[];
  /** Arguments are the reads. One per monoid component, or one per write without a reduction. */
  readonly body: readonly ScalarExpr[];
  readonly reduction?: Reduction;
  /**
   * Elements that `finish` reads beside the components: operands of a fused epilogue. Read once per
   * write, so no reduce loop stands in their index.
   */
  readonly finishReads: readonly Access[];
  /**
   * One per write. Arguments are the folded components (without a reduction: the body's values),
   * then `finishReads`. Absent: the components themselves.
   */
  readonly finish?: readonly ScalarExpr[];
  readonly writes: readonly Write[];
  /** Node of the graph it came from, for reports. */
  readonly origin: string;
}

/** Two names for the same row-major elements (a reshape): no statement runs. */
export interface View {
  readonly tensor: string;
  readonly of: string;
}

/** What no nest expresses (sort, unique, nonMaxSuppression, control flow): a Program builder by op. */
export interface Routine {
  readonly name: string;
  readonly node: number;
  /** The op, and what of the model it came from; for people. */
  readonly origin: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** A part of the node: the places of the first of each line. Absent: all that the node computes. */
  readonly selects?: Selection;
}

/**
 * The places of the first elements of each line, in order: equal ones as they stand, NaN as the greatest. A line of
 * what is read is its last two axes together, [lines, rows, groups]; what is written is [lines, count].
 */
export interface Selection {
  readonly largest: boolean;
  /** Groups that are compared at once, which divide their number. */
  readonly lanes: number;
}

export type NestItem =
  | { readonly kind: "statement"; readonly statement: Statement }
  | { readonly kind: "view"; readonly view: View }
  | { readonly kind: "routine"; readonly routine: Routine };

export type TensorRole = "input" | "weight" | "output" | "intermediate";

/** A whole graph as nests, in an order that respects data flow. */
export interface NestProgram {
  readonly name: string;
  readonly symbols: readonly { readonly name: string; readonly range: IndexRange }[];
  readonly tensors: ReadonlyMap<string, NestTensor & { readonly role: TensorRole }>;
  readonly items: readonly NestItem[];
  /** Tensor names in the order of the graph's inputs and of its outputs. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

/**
 * Statements that are computed together under one schedule. `anchor` owns the loops; the others are
 * fused into it: `inline` producers are recomputed where they are read, `epilogue` consumers run on
 * each finished element (or tile) of the anchor before it is stored.
 */
export interface Group {
  readonly name: string;
  readonly anchor: string;
  readonly inlined: readonly string[];
  readonly epilogue: readonly string[];
}

/** A tensor as a region has it. */
export type RegionTensor = NestTensor & { readonly role: TensorRole | "local" };

/** The statements of a chosen group, ready to be scheduled. */
export interface Region {
  readonly name: string;
  readonly group: Group;
  /** In execution order. */
  readonly statements: readonly Statement[];
  readonly symbols: NestProgram["symbols"];
  /** Of several statements: the first so many loops of each are the same, in the same order. */
  readonly sharedLoops?: number;
  /** Of several statements: they run over the same rows, as one kernel of blocks (schedule/rows/). */
  readonly overRows?: true;
  /** Every tensor that the statements touch; `intermediate` ones that only they touch are local. */
  readonly tensors: ReadonlyMap<string, RegionTensor>;
}
