/**
 * Where data says which columns the rows of a problem meet (attention-bounds.ts): the steps of a tile as index
 * variables, bound from what is read. All threads of a block read the same, so that they walk the same steps,
 * whoever copies and whoever multiplies.
 *
 *   last     the step of the last column that a row of the tile may meet, 0 where there is none
 *   further  steps before it, down to that of the first column that one may meet
 */
import { applyExpr, castExpr, indexValue, literalExpr } from "../../program/expr.ts";
import type { Expr } from "../../program/statement.ts";
import { type Bound, mostPlaces } from "../../schedule/attention/attention-bounds.ts";
import { add, constant, type IndexExpr, min, variable } from "../../semantics/index-expr.ts";
import { type IndexRange, simplify } from "../../semantics/index-range.ts";
import type { ScalarExpr } from "../../semantics/scalar-expr.ts";
import type { Block, Names } from "../block.ts";
import { type AttentionPlace, type AttentionPlan, maskedBehind, stepsOfAll } from "./plan.ts";

interface BoundValue {
  /** For row 0, in i32. */
  readonly value: Expr;
  readonly moves: boolean;
}

/** Bounds as values of a role, and from which trip on rows may begin behind a column. */
export interface ReachBounds {
  readonly ends: readonly BoundValue[];
  readonly starts: readonly BoundValue[];
  readonly masked: IndexExpr | undefined;
}

/** Names of the steps; `further` is `last` where every row begins at the first column. */
export function reachOf(
  plan: AttentionPlan,
  names: Names,
  ranges: Map<string, IndexRange>,
): AttentionPlace["reach"] {
  const { reach } = plan.form;
  if (!reach) return undefined;
  const fresh = (stem: string): IndexExpr => {
    const name = names.fresh(stem);
    ranges.set(name, { min: 0, max: stepsOfAll(plan) - 1 });
    return variable(name);
  };
  const last = fresh("last");
  return { last, further: reach.starts.length > 0 ? fresh("further") : last };
}

/** Binds the steps of a tile for what follows in the block. */
export function bindReach(
  plan: AttentionPlan,
  place: AttentionPlace,
  lower: (value: ScalarExpr) => Expr,
  block: Block,
): ReachBounds {
  const { form, rows } = plan;
  const { firstRow, ranges } = place;
  const steps = place.reach!;
  const valued = (bounds: readonly Bound[]): readonly BoundValue[] =>
    bounds.map((b) => ({ value: block.bind(inPlaces(b, lower)), moves: b.moves }));
  const [ends, starts] = [valued(form.reach!.ends), valued(form.reach!.starts)];
  const at = ({ value, moves }: BoundValue, row: IndexExpr): Expr =>
    moves ? applyExpr("add", value, indexValue(row, "i32")) : value;
  const lastRow = simplify(min(add(firstRow, rows - 1), form.rows - 1), ranges);
  const most = literalExpr(form.columns - 1, "i32");
  const none = literalExpr(0, "i32");
  const end = ends.reduce((e, b) => applyExpr("min", e, at(b, lastRow)), most as Expr);
  const last = block.bind(applyExpr("max", end, none));
  bindStep(block, steps.last, stepOf(plan, last), plan);
  if (starts.length > 0) {
    const start = starts.reduce((e, b) => applyExpr("max", e, at(b, firstRow)), none as Expr);
    const first = stepOf(plan, applyExpr("min", start, last));
    bindStep(block, steps.further, applyExpr("sub", stepOf(plan, last), first), plan);
  }
  return { ends, starts, masked: maskedBehind(plan, steps) };
}

/** A bound for row 0 with its constant, in i32: far from all places where it is beyond them. */
function inPlaces({ value, constant: fixed }: Bound, lower: (value: ScalarExpr) => Expr): Expr {
  if (!value) return literalExpr(fixed, "i32");
  const data = lower(value);
  const { dtype } = data;
  const number = (n: number): Expr => literalExpr(n, dtype);
  const sum = fixed === 0 ? data : applyExpr("add", data, number(fixed));
  const near = applyExpr("max", applyExpr("min", sum, number(mostPlaces)), number(-mostPlaces));
  return dtype === "i32" ? near : castExpr(near, "i32", false);
}

/** The step of a column. */
function stepOf({ columns }: AttentionPlan, column: Expr): Expr {
  return applyExpr("div", column, literalExpr(columns, "i32"));
}

function bindStep(block: Block, step: IndexExpr, value: Expr, plan: AttentionPlan): void {
  const extent = constant(stepsOfAll(plan));
  const bound = { wraps: false, range: "proved" } as const;
  block.push({ kind: "letIndex", name: step.key, value: block.bind(value), extent, ...bound });
}
