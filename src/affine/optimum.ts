/**
 * The least and greatest value of an affine expression over a set, exactly over the integers: the
 * rational optimum (simplex.ts) from a sample on, which settles it where an integer point attains it;
 * else steps upwards from there and bisection with the exact solver. Where the numbers are too large
 * for the simplex method, whether a bound exists is read off the recession cone and steps go down. Parameters count as variables here: the result
 * holds for all their values (fix them with fixParams for one).
 */

import { PieceBuilder } from "./build.ts";
import { type AffineLike, affine, scale } from "./expression.ts";
import { findPoint } from "./omega.ts";
import { alignPiece, toSystem } from "./piece.ts";
import { evaluateRow, negateRow, type Row } from "./row.ts";
import { minimizeRationally, type Program } from "./simplex.ts";
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

/** The piece's system with the expression as a row over its columns; names it does not know are parameters. */
export function withExpression(
  params: readonly string[],
  piece: Piece,
  expression: ReturnType<typeof affine>,
): { system: System; row: Row } {
  const rows = new PieceBuilder({ input: piece.input, output: piece.output }, params);
  const { row, locals } = rows.row(expression);
  const system = toSystem(rows.params, alignPiece(params, rows.params, piece));
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
  const known = withPoint(system, work);
  return known ? minimumFrom(known, row, work) : { kind: "empty" };
}

/** A system's rows with one of its points, from which its minima are found. */
export function withPoint(system: System, work: Work): Program | undefined {
  const inequalities = system.inequalities.concat(divisionRows(system));
  const { equalities } = system;
  const columns = system.fixed + system.locals.length;
  const start = findPoint(equalities, inequalities, columns, work);
  return start ? { equalities, inequalities, start } : undefined;
}

/** The least value of `row`, which is finite or unbounded, as there is a point. */
export function minimumFrom(program: Program, row: Row, work: Work): Extreme {
  const { equalities, inequalities, start } = program;
  const columns = row.length - 1;
  work.spend(1 + inequalities.length);
  const rational = minimizeRationally(program, row);
  if (rational?.kind === "value" && rational.attained) return extremeAt(rational.ceiling);
  const open = rational?.kind === "unbounded" || descends(equalities, inequalities, row, work);
  if (open) return { kind: "unbounded" };
  const pointBelow = (most: number): number | undefined => {
    const bound = negateRow(row);
    bound[columns]! += most;
    const point = findPoint(equalities, [...inequalities, bound], columns, work);
    return point ? evaluateRow(row, point) : undefined;
  };
  const best = evaluateRow(row, start);
  return extremeAt(
    rational ? searchUpwards(rational.ceiling, best, pointBelow) : searchDown(best, pointBelow),
  );
}

function extremeAt(value: number): Extreme {
  return { kind: "value", value: value + 0 };
}

/** A value at or below `most` that some point has. */
type PointBelow = (most: number) => number | undefined;

/** The least value, which lies between `least` and `known` and most likely near `least`. */
function searchUpwards(least: number, known: number, pointBelow: PointBelow): number {
  let floor = least - 1;
  let best = known;
  // Invariant: `best` is attained and nothing at or below `floor` is.
  for (let step = 1; floor + step < best; step *= 2) {
    const found = pointBelow(floor + step);
    if (found !== undefined) {
      best = found;
      break;
    }
    floor += step;
  }
  return bisect(floor, best, pointBelow);
}

/** The least value, known to exist, by steps downwards. */
function searchDown(known: number, pointBelow: PointBelow): number {
  let best = known;
  for (let step = 1; step <= Number.MAX_SAFE_INTEGER / 4; step *= 2) {
    const found = pointBelow(best - step);
    if (found === undefined) return bisect(best - step, best, pointBelow);
    best = found;
  }
  throw new GiveUp("overflow");
}

/** The least value: `attained` is one, nothing at or below `floor` is. */
function bisect(floor: number, attained: number, pointBelow: PointBelow): number {
  let [low, best] = [floor, attained];
  while (best - low > 1) {
    const middle = low + Math.floor((best - low) / 2);
    const found = pointBelow(middle);
    if (found === undefined) low = middle;
    else best = found;
  }
  return best;
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
