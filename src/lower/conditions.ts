/**
 * Conditions over loop variables during lowering: what they become when the inner loops take their
 * worst values (the hull: true for a whole tile at once), how far a loop may run before one fails, and
 * which the ranges already decide.
 */
import type { Condition } from "../semantics/condition.ts";
import {
  add,
  ceilDiv,
  constantValue,
  fromTerms,
  type IndexBindings,
  type IndexExpr,
  max,
  mentionsVariable,
  min,
  mul,
  splitLinear,
  substitute,
} from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf, simplify } from "../semantics/index-range.ts";

/** Extents of loops that are inside the place where a condition is asked. */
export type InnerLoops = ReadonlyMap<string, IndexExpr>;

/** Whether the ranges prove the condition. */
export function isProved(condition: Condition, ranges: IndexRanges): boolean {
  const range = rangeOf(condition.expr, ranges);
  return condition.kind === "zero" ? range.min === 0 && range.max === 0 : range.min >= 0;
}

/** Whether the ranges refute the condition. */
export function isRefuted(condition: Condition, ranges: IndexRanges): boolean {
  const range = rangeOf(condition.expr, ranges);
  return condition.kind === "zero" ? range.min > 0 || range.max < 0 : range.max < 0;
}

/** Simplified by the ranges; proved ones dropped, equal ones once. */
export function reduceConditions(
  conditions: readonly Condition[],
  ranges: IndexRanges,
): readonly Condition[] {
  const kept = new Map<string, Condition>();
  for (const c of conditions) {
    const simple = inSteps({ kind: c.kind, expr: simplify(c.expr, ranges) }, ranges);
    if (!isProved(simple, ranges)) kept.set(`${c.kind}${simple.expr.key}`, simple);
  }
  return [...kept.values()];
}

/**
 * The condition without the terms that never decide it: where the others are multiples of a number, and what these
 * terms come to stays between two multiples of it, the lower one says as much.
 */
function inSteps(condition: Condition, ranges: IndexRanges): Condition {
  const { kind, expr } = condition;
  if (kind !== "nonNegative") return condition;
  const steps = new Set(expr.terms.map((t) => Math.abs(t.coefficient)).filter((n) => n > 1));
  for (const step of [...steps].sort((a, b) => b - a)) {
    const far = expr.terms.filter((t) => t.coefficient % step === 0);
    if (far.length === expr.terms.length) continue;
    const near = fromTerms(
      expr.constant,
      expr.terms.filter((t) => t.coefficient % step !== 0),
    );
    const { min: least, max: most } = rangeOf(near, ranges);
    const steady = Math.floor(least / step);
    if (Math.floor(most / step) === steady) return { kind, expr: fromTerms(steady * step, far) };
  }
  return condition;
}

export function mentionsAny(condition: Condition, names: Iterable<string>): boolean {
  for (const name of names) if (mentionsVariable(condition.expr, name)) return true;
  return false;
}

/**
 * A condition over the outer variables that implies `condition` for every value of the inner ones:
 * each inner variable at the end of its range that makes a linear expression smallest. Undefined when
 * the expression is not linear in an inner variable, or asks for equality.
 */
export function hullOf(condition: Condition, inner: InnerLoops): Condition | undefined {
  let expr = condition.expr;
  for (const [name, extent] of inner) {
    const linear = splitLinear(expr, name);
    if (!linear) return undefined;
    if (linear.coefficient === 0) continue;
    if (condition.kind === "zero") return undefined;
    expr =
      linear.coefficient > 0
        ? linear.rest
        : add(linear.rest, mul(linear.coefficient, add(extent, -1)));
  }
  return { kind: condition.kind, expr };
}

/**
 * How many trips of loop `name` from 0 on can meet the conditions, at most `extent`: for each condition
 * that falls with `name`, the trips until it fails with the loops inside at their best. Exact when no
 * inner variable occurs beside `name`.
 */
export function tightenExtent(
  name: string,
  extent: IndexExpr,
  conditions: readonly Condition[],
  inner: InnerLoops,
): IndexExpr {
  let bound = extent;
  for (const condition of conditions) {
    if (condition.kind !== "nonNegative") continue;
    const best = mostFavourable(condition.expr, inner, name);
    const linear = best && splitLinear(best, name);
    if (!linear || linear.coefficient >= 0) continue;
    // rest - c * name >= 0 for name <= rest / c, so rest / c + 1 trips.
    const trips = ceilDiv(add(linear.rest, 1), -linear.coefficient);
    bound = min(bound, max(trips, 0));
  }
  return bound;
}

function mostFavourable(expr: IndexExpr, inner: InnerLoops, except: string): IndexExpr | undefined {
  let best = expr;
  for (const [name, extent] of inner) {
    if (name === except) continue;
    const linear = splitLinear(best, name);
    if (!linear) return undefined;
    if (linear.coefficient === 0) continue;
    best =
      linear.coefficient < 0
        ? linear.rest
        : add(linear.rest, mul(linear.coefficient, add(extent, -1)));
  }
  return best;
}

/** The conditions with variables replaced. */
export function substituteConditions(
  conditions: readonly Condition[],
  bindings: IndexBindings,
): readonly Condition[] {
  return conditions.map((c) => ({ kind: c.kind, expr: substitute(c.expr, bindings) }));
}

export function isConstantExtent(extent: IndexExpr): boolean {
  return constantValue(extent) !== undefined;
}
