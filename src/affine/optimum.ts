/**
 * The least and greatest value of an affine expression over a set, exactly over the integers: a
 * sample, doubling steps outwards while the solver finds a better point, then bisection. Whether a
 * bound exists at all is read off the recession cone. Parameters count as variables here: the result
 * holds for all their values (fix them with fixParams for one).
 */

import { PieceBuilder } from "./build.ts";
import { type AffineLike, affine, scale } from "./expression.ts";
import { findPoint } from "./omega.ts";
import { toSystem } from "./piece.ts";
import { evaluateRow, negateRow, type Row } from "./row.ts";
import { appendLocal, divisionRows, type System } from "./system.ts";
import type { IntegerSet, Piece } from "./types.ts";
import { type Answer, answer, GiveUp, type Work } from "./work.ts";

/** An extreme value; "unbounded" is -infinity for a minimum, +infinity for a maximum. */
export type Extreme =
  | { readonly kind: "value"; readonly value: number }
  | { readonly kind: "empty" }
  | { readonly kind: "unbounded" };

/** The least value of `expression` (in dimension and parameter names) over a one-tuple set. */
export function minimum(set: IntegerSet, expression: AffineLike, limit?: number): Answer<Extreme> {
  return answer((work) => minimumWithin(set, affine(expression), work), limit);
}

/** The greatest value of `expression` over a one-tuple set. */
export function maximum(set: IntegerSet, expression: AffineLike, limit?: number): Answer<Extreme> {
  return answer((work) => negated(minimumWithin(set, scale(-1, expression), work)), limit);
}

export function negated(extreme: Extreme): Extreme {
  if (extreme.kind !== "value") return extreme;
  return { kind: "value", value: extreme.value === 0 ? 0 : -extreme.value };
}

function minimumWithin(
  set: IntegerSet,
  expression: ReturnType<typeof affine>,
  work: Work,
): Extreme {
  let best: Extreme = { kind: "empty" };
  for (const piece of set.pieces) {
    const { system, row } = withExpression(set.params, piece, expression);
    const one = minimumOfRow(system, row, work);
    if (one.kind === "unbounded") return one;
    if (one.kind === "empty") continue;
    if (best.kind !== "value" || one.value < best.value) best = one;
  }
  return best;
}

/** The piece's system with the expression as a row over its columns. */
export function withExpression(
  params: readonly string[],
  piece: Piece,
  expression: ReturnType<typeof affine>,
): { system: System; row: Row } {
  const rows = new PieceBuilder({ input: piece.input, output: piece.output }, params);
  const { row, locals } = rows.row(expression);
  const system = toSystem(params, piece);
  const { fixed } = system;
  const first = system.locals.length;
  for (let i = 0; i < locals.length; i++) appendLocal(system, null);
  const lift = (r: Row): number[] => [
    ...r.slice(0, fixed),
    ...new Array<number>(first).fill(0),
    ...r.slice(fixed),
  ];
  locals.forEach((d, i) => {
    system.locals[first + i] = { numerator: lift(d.numerator), divisor: d.divisor };
  });
  return { system, row: lift(row) };
}

/** The least value of `row` over a system. */
export function minimumOfRow(system: System, row: Row, work: Work): Extreme {
  const inequalities = [...system.inequalities, ...divisionRows(system)];
  const columns = row.length - 1;
  const start = findPoint(system.equalities, inequalities, columns, work);
  if (!start) return { kind: "empty" };
  if (descends(system.equalities, inequalities, row, work)) return { kind: "unbounded" };
  let best = evaluateRow(row, start);
  const below = (most: number): number | undefined => {
    const bound = negateRow(row);
    bound[columns]! += most;
    const point = findPoint(system.equalities, [...inequalities, bound], columns, work);
    return point ? evaluateRow(row, point) : undefined;
  };
  // Invariant: `best` is attained and nothing at or below `floor` is.
  let step = 1;
  let floor = Number.NaN;
  while (Number.isNaN(floor)) {
    const found = below(best - step);
    if (found === undefined) floor = best - step;
    else best = found;
    step *= 2;
    if (step > Number.MAX_SAFE_INTEGER / 4) throw new GiveUp("overflow");
  }
  while (best - floor > 1) {
    const middle = floor + Math.floor((best - floor) / 2);
    const found = below(middle);
    if (found === undefined) floor = middle;
    else best = found;
  }
  return { kind: "value", value: best === 0 ? 0 : best };
}

/** Whether the recession cone has a direction in which `row` decreases. */
function descends(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  row: Row,
  work: Work,
): boolean {
  const cone = (r: Row): number[] => [...r.slice(0, -1), 0];
  const down = [...negateRow(row).slice(0, -1), -1];
  const rows = [...inequalities.map(cone), down];
  return findPoint(equalities.map(cone), rows, row.length - 1, work) !== null;
}
