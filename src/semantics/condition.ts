/** Conjunctions of integer conditions: guards of accesses, of statements and of program branches. */
import { constant, type IndexExpr, type IndexLike, sub, toIndex } from "./index-expr.ts";

/** `expr >= 0` or `expr = 0`. */
export interface Condition {
  readonly kind: "nonNegative" | "zero";
  readonly expr: IndexExpr;
}

/** a <= b */
export function atMost(a: IndexLike, b: IndexLike): Condition {
  return { kind: "nonNegative", expr: sub(b, a) };
}

/** a < b */
export function less(a: IndexLike, b: IndexLike): Condition {
  return { kind: "nonNegative", expr: sub(sub(b, a), constant(1)) };
}

/** a = b */
export function equal(a: IndexLike, b: IndexLike): Condition {
  return { kind: "zero", expr: sub(a, b) };
}

/** 0 <= a < extent */
export function inRange(a: IndexLike, extent: IndexLike): readonly Condition[] {
  return [{ kind: "nonNegative", expr: toIndex(a) }, less(a, extent)];
}

/** Text form: `i + 1 >= 0`, `i - j == 0`. */
export function printCondition(condition: Condition): string {
  return `${condition.expr.key} ${condition.kind === "zero" ? "==" : ">="} 0`;
}
