/** What holds of the elements of a vector where they are in the row, and of the row where it is one. */
import type { RowsDirective } from "../../schedule/directive.ts";
import {
  elementLanes,
  elementLoop,
  endsWhole,
  type RowsForm,
} from "../../schedule/rows/rows-form.ts";
import { type Condition, less } from "../../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  type IndexBindings,
  type IndexExpr,
  mul,
  splitLinear,
  sub,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../../semantics/index-range.ts";
import { isProved, mentionsAny, reduceConditions, substituteConditions } from "../conditions.ts";
import { laneName } from "./row-warps.ts";

/** The rows of a block. */
interface RowsOfBlock {
  readonly form: RowsForm;
  readonly directive: RowsDirective;
  /** Loops over rows, in terms of the grid's index variables. */
  readonly bindings: ReadonlyMap<string, IndexExpr>;
  /** Not known to hold: the row is one. */
  readonly isRow: readonly Condition[];
}

/**
 * Conditions of all elements of a vector, which are those of the first or the last; of each by itself (`laneName`)
 * where a row ends within a vector. What the ranges prove is left out.
 *
 * @param from the first element
 */
export function conditionsInside(
  { form, directive, bindings, isRow }: RowsOfBlock,
  { from, ranges }: { readonly from: IndexExpr; readonly ranges: IndexRanges },
): readonly Condition[] {
  const lanes = elementLanes(directive);
  const isWhole = endsWhole(form, directive);
  const last = add(from, isWhole ? constant(lanes - 1) : variable(laneName));
  const first = isWhole ? from : last;
  const all = new Map(ranges).set(laneName, { min: 0, max: lanes - 1 });
  const ends = form.ends.flatMap((c) => {
    const isLast = splitLinear(c.expr, elementLoop)!.coefficient < 0;
    return substituteConditions([c], withElement(bindings, isLast ? last : first));
  });
  // All turns end alike, which the proof that nothing is left out goes by.
  const open = ends
    .map((c) => ({ ...c, expr: simplify(c.expr, all) }))
    .filter((c) => !isProved(c, all));
  const rows = isRow.filter((c) => !isImplied(c, form, bindings));
  return [...open, ...reduceConditions([less(last, form.length), ...rows], all)];
}

function withElement(bindings: ReadonlyMap<string, IndexExpr>, element: IndexExpr): IndexBindings {
  return new Map(bindings).set(elementLoop, element);
}

/** Whether no element of a row that is none is before the end: what a row adds to that is a multiple. */
function isImplied(
  { expr }: Condition,
  { ends, length }: RowsForm,
  bindings: ReadonlyMap<string, IndexExpr>,
): boolean {
  return ends.some((end) => {
    const { coefficient } = splitLinear(end.expr, elementLoop)!;
    const most = coefficient < 0 ? constant(0) : sub(length, 1);
    const [row] = substituteConditions([end], withElement(bindings, most));
    const [of, own] = [row!.expr, expr].map((e) => e.terms[0]?.coefficient ?? 0) as [
      number,
      number,
    ];
    const step = of / own;
    if (!Number.isInteger(step) || step < 1) return false;
    const apart = constantValue(sub(row!.expr, mul(step, expr)));
    return apart !== undefined && apart < step;
  });
}

/** Conditions of each lane by itself, and of all lanes of a vector. */
export function byLanes(conditions: readonly Condition[]): {
  readonly ofLanes: readonly Condition[];
  readonly whole: readonly Condition[];
} {
  const ofLanes = conditions.filter((c) => mentionsAny(c, [laneName]));
  return { ofLanes, whole: conditions.filter((c) => !ofLanes.includes(c)) };
}
