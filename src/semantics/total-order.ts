/** The order of all elements of a type, as the references of ordered ops have it: NaN is the greatest, zeros tie. */
import { isFloatDType } from "./dtype.ts";
import { apply, type ScalarExpr } from "./scalar-expr.ts";

/** a > b where NaN is the greatest. */
export function exceeds(a: ScalarExpr, b: ScalarExpr): ScalarExpr {
  const greater = apply("less", b, a);
  if (!isFloatDType(a.dtype)) return greater;
  const alone = apply("and", apply("isNan", a), apply("not", apply("isNan", b)));
  return apply("or", greater, alone);
}

export function ties(a: ScalarExpr, b: ScalarExpr): ScalarExpr {
  const same = apply("equal", a, b);
  if (!isFloatDType(a.dtype)) return same;
  return apply("or", same, apply("and", apply("isNan", a), apply("isNan", b)));
}
