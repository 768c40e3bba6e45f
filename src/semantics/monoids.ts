/**
 * The monoids that reductions are over: an identity, an associative and commutative combine, and a
 * finish, all as scalar expressions, so that nests, programs and interpreters share one definition.
 * A monoid's value is a tuple: argument i of `combine` is component i of the left value, argument
 * n + i of the right one; `finish` has the components as arguments. The element types are the
 * accumulator's: a reduction of bf16 in f32 casts before and after.
 *
 * Sources: online softmax: Milakov and Gimelshein 2018; merging means and variances: Chan, Golub and
 * LeVeque 1979.
 */
import { invariant } from "../support/invariant.ts";
import type { ReduceKind } from "./core-ops.ts";
import { type DType, dtypes, isFloatDType } from "./dtype.ts";
import { integerRange } from "./integer.ts";
import { apply, argument, literal, type ScalarExpr } from "./scalar-expr.ts";
import type { ScalarValue } from "./scalar-meaning.ts";

export interface Monoid {
  readonly name: string;
  readonly components: readonly { readonly name: string; readonly dtype: DType }[];
  /** One literal a component. */
  readonly identity: readonly ScalarExpr[];
  readonly combine: readonly ScalarExpr[];
  /**
   * The same where everything on the right stands behind everything on the left, in fewer operations, for a left
   * side that has elements; absent: no cheaper way is known.
   */
  readonly inOrder?: readonly ScalarExpr[];
  /** The results, in terms of the components. */
  readonly finish: readonly ScalarExpr[];
  /** Exact monoids give the same bits in any order; the others reassociate. */
  readonly exact: boolean;
}

/** The neutral value of a simple reduction in a dtype; max and min without infinities use the range. */
export function identityElement(kind: ReduceKind, dtype: DType): ScalarValue {
  const big = dtype === "i64" || dtype === "u64";
  switch (kind) {
    case "sum":
    case "or":
      return big ? 0n : 0;
    case "prod":
    case "and":
      return big ? 1n : 1;
    case "max":
      return big ? integerRange(dtype).min : lowest(dtype);
    case "min":
      return big ? integerRange(dtype).max : highest(dtype);
  }
}

function lowest(dtype: DType): number {
  return dtypes[dtype].format?.hasInfinity ? -Infinity : dtypes[dtype].min;
}

function highest(dtype: DType): number {
  return dtypes[dtype].format?.hasInfinity ? Infinity : dtypes[dtype].max;
}

const scalarOpOf = {
  sum: "add",
  prod: "mul",
  max: "max",
  min: "min",
  and: "and",
  or: "or",
} as const satisfies Record<ReduceKind, string>;

/** sum, prod, max, min, and, or over one value. */
export function simpleMonoid(kind: ReduceKind, dtype: DType): Monoid {
  const reassociates = (kind === "sum" || kind === "prod") && isFloatDType(dtype);
  return {
    name: kind,
    components: [{ name: "value", dtype }],
    identity: [literal(identityElement(kind, dtype), dtype)],
    combine: [apply(scalarOpOf[kind], argument(0, dtype), argument(1, dtype))],
    finish: [argument(0, dtype)],
    exact: !reassociates,
  };
}

/**
 * (m, l, acc): the running maximum of the scores, the sum of exp(score - m), and the sum of
 * exp(score - m) * value. An element is (score, 1, value); the result is acc / l, the softmax-weighted
 * mean. A side whose maximum is -inf contributes nothing, so folding all -inf into the identity gives NaN,
 * as the definition does.
 */
export function onlineSoftmaxMonoid(dtype: DType): Monoid {
  const [m1, l1, acc1, m2, l2, acc2] = [0, 1, 2, 3, 4, 5].map((i) => argument(i, dtype)) as [
    ScalarExpr,
    ScalarExpr,
    ScalarExpr,
    ScalarExpr,
    ScalarExpr,
    ScalarExpr,
  ];
  const zero = literal(0, dtype);
  const m = apply("max", m1, m2);
  const scaleOf = (own: ScalarExpr): ScalarExpr =>
    apply(
      "select",
      apply("equal", own, literal(-Infinity, dtype)),
      zero,
      apply("exp", apply("sub", own, m)),
    );
  const merged = (a: ScalarExpr, b: ScalarExpr): ScalarExpr =>
    apply("add", apply("mul", a, scaleOf(m1)), apply("mul", b, scaleOf(m2)));
  return {
    name: "onlineSoftmax",
    components: ["m", "l", "acc"].map((name) => ({ name, dtype })),
    identity: [literal(-Infinity, dtype), zero, zero],
    combine: [m, merged(l1, l2), merged(acc1, acc2)],
    finish: [apply("div", argument(2, dtype), argument(1, dtype))],
    exact: false,
  };
}

export interface ArgMonoidOptions {
  readonly kind: "max" | "min";
  readonly dtype: DType;
  readonly indexDType: "i32" | "i64";
  /** Which of equal extremes wins. */
  readonly tie: "first" | "last";
  /** NaN is the extreme of either kind, as in numpy; or it is the greatest value, as in an order of all. */
  readonly nan?: "extreme" | "greatest";
}

/** (value, index) of the extreme value. The result is the index. */
export function argMonoid({
  kind,
  dtype,
  indexDType,
  tie,
  nan = "extreme",
}: ArgMonoidOptions): Monoid {
  const isLast = nan === "greatest" && kind === "min" && isFloatDType(dtype);
  const [leftValue, rightValue] = [argument(0, dtype), argument(2, dtype)];
  const [leftIndex, rightIndex] = [argument(1, indexDType), argument(3, indexDType)];
  const [low, high] = kind === "max" ? [leftValue, rightValue] : [rightValue, leftValue];
  let rightWins = apply("less", low, high);
  let tied = apply("equal", leftValue, rightValue);
  if (isFloatDType(dtype)) {
    const [leftNan, rightNan] = [apply("isNan", leftValue), apply("isNan", rightValue)];
    const [winner, loser] = isLast ? [leftNan, rightNan] : [rightNan, leftNan];
    rightWins = apply("or", rightWins, apply("and", winner, apply("not", loser)));
    // A NaN on either side makes `less` false already.
    tied = apply("or", tied, apply("and", leftNan, rightNan));
  }
  const [earlier, later] = tie === "first" ? [rightIndex, leftIndex] : [leftIndex, rightIndex];
  const takeRight = apply("or", rightWins, apply("and", tied, apply("less", earlier, later)));
  // The identity's index loses every tie.
  const { max } = integerRange(indexDType);
  const picked = (right: ScalarExpr): readonly ScalarExpr[] => [
    apply("select", right, rightValue, leftValue),
    apply("select", right, rightIndex, leftIndex),
  ];
  const losingIndex = tie === "first" ? max : -1n;
  return {
    name: `arg${kind === "max" ? "Max" : "Min"}${tie === "first" ? "First" : "Last"}${isLast ? "NanGreatest" : ""}`,
    components: [
      { name: "value", dtype },
      { name: "index", dtype: indexDType },
    ],
    identity: [
      literal(isLast ? Number.NaN : identityElement(kind, dtype), dtype),
      literal(indexDType === "i64" ? losingIndex : Number(losingIndex), indexDType),
    ],
    combine: picked(takeRight),
    inOrder: picked(laterWins(leftValue, rightValue, { kind, tie, isLast })),
    finish: [argument(1, indexDType)],
    exact: true,
  };
}

/**
 * Whether the later one of two values is the extreme; the later one where they tie, if ties go to the last. Two
 * comparisons of floats: one that NaN passes, and one that says what NaN means.
 */
function laterWins(
  left: ScalarExpr,
  right: ScalarExpr,
  { kind, tie, isLast }: Pick<ArgMonoidOptions, "kind" | "tie"> & { readonly isLast: boolean },
): ScalarExpr {
  const [low, high] = kind === "max" ? [left, right] : [right, left];
  const isFloat = isFloatDType(left.dtype);
  if (tie === "last") {
    const reaches = apply("lessEqual", low, high);
    return isFloat ? apply("or", reaches, apply("isNan", isLast ? left : right)) : reaches;
  }
  if (!isFloat) return apply("less", low, high);
  const exceeds = apply("not", apply("lessEqual", high, low));
  return apply("and", exceeds, apply("not", apply("isNan", isLast ? right : left)));
}

/** (n, mean, M2): count, mean and sum of squared deviations. An element is (1, x, 0). */
export function welfordMonoid(dtype: DType): Monoid {
  invariant(isFloatDType(dtype), () => `welford over ${dtype}`);
  const [n1, mean1, squares1, n2, mean2, squares2] = [0, 1, 2, 3, 4, 5].map((i) =>
    argument(i, dtype),
  ) as [ScalarExpr, ScalarExpr, ScalarExpr, ScalarExpr, ScalarExpr, ScalarExpr];
  const zero = literal(0, dtype);
  const n = apply("add", n1, n2);
  const share = apply("select", apply("equal", n2, zero), zero, apply("div", n2, n));
  const delta = apply("sub", mean2, mean1);
  const between = apply("mul", apply("mul", delta, delta), apply("mul", n1, share));
  return {
    name: "welford",
    components: ["n", "mean", "squares"].map((name) => ({ name, dtype })),
    identity: [zero, zero, zero],
    combine: [
      n,
      apply("add", mean1, apply("mul", delta, share)),
      apply("add", apply("add", squares1, squares2), between),
    ],
    // Mean and population variance.
    finish: [argument(1, dtype), apply("div", argument(2, dtype), argument(0, dtype))],
    exact: false,
  };
}
