/**
 * Sizes from files are checked before anything is computed with them: index expressions are exact up
 * to 2^53 and refuse to overflow as a bug of ours, so extents whose product could come near are refused
 * here as a fault of the model (ONX004).
 */
import type { IndexExpr } from "../../../semantics/index-expr.ts";
import { reject } from "../../../support/diagnostic.ts";
import { checkAxes } from "../tensor-proto.ts";

/** Bound of the elements of a tensor, counting every symbol as 1. */
const largestCount = 2 ** 40;
/** Bound of the terms that the product of a shape may have. */
const largestTermCount = 4096;

/** A bound of the coefficients of an expression: what a product multiplies at most. */
function magnitude(e: IndexExpr): number {
  return e.terms.reduce((sum, t) => sum + Math.abs(t.coefficient), Math.abs(e.constant));
}

/** Whether the product of two expressions stays exact with room to spare. */
export function multipliesSafely(a: IndexExpr, b: IndexExpr): boolean {
  const terms = (a.terms.length + 1) * (b.terms.length + 1);
  return magnitude(a) * magnitude(b) <= 2 ** 50 && terms <= largestTermCount;
}

/** Rejects shapes of more axes than any model has, or whose element count could overflow. */
export function checkShapeSize(shape: readonly IndexExpr[], at: string): void {
  checkAxes(shape.length, "a tensor", at);
  const count = shape.reduce((product, d) => product * Math.max(1, magnitude(d)), 1);
  const terms = shape.reduce((product, d) => product * (d.terms.length + 1), 1);
  if (count <= largestCount && terms <= largestTermCount) return;
  const spelled = shape.map((d) => d.key).join(", ");
  const short = spelled.length > 200 ? `${spelled.slice(0, 200)}…` : spelled;
  reject("ONX004", `a tensor would have the shape [${short}]`, {
    at,
    help: "the product of the extents must stay below 2^40",
  });
}
