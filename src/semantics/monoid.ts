/**
 * Monoids: what a reduction folds with. The carrier may be a tuple, so that argmax (value, index),
 * online softmax (max, sum, weighted sum; Milakov and Gimelshein 2018) and Welford's moments
 * (n, mean, M2) are reductions like a sum. The table of monoids is monoids.ts.
 */
import type { DType } from "./dtype.ts";
import type { ScalarExpr } from "./scalar-expr.ts";

/**
 * How a rewriting of the computation may change its numbers: `exact` not at all, `reassociates` like
 * another order of the same floating-point sum, `approximates` beyond that (needs a stated bound).
 */
export type NumericClass = "exact" | "reassociates" | "approximates";

export interface MonoidComponent {
  readonly dtype: DType;
  readonly identity: number | bigint;
}

export interface Monoid {
  readonly name: string;
  readonly components: readonly MonoidComponent[];
  /**
   * One expression per component; with n components the arguments 0 … n-1 are the left operand and
   * n … 2n-1 the right one. Associative with the identity up to `numericClass`.
   */
  readonly combine: readonly ScalarExpr[];
  readonly commutative: boolean;
  /** What a change of the order of combination costs. */
  readonly numericClass: NumericClass;
}
