/**
 * Exact counting of points. Where every coefficient met is a unit, dimensions are summed out
 * symbolically: the number of points of a piece is a polynomial between its bounds, and the sum of a
 * power over a range is again a polynomial (Faulhaber), so boxes, triangles and tile footprints cost
 * the same at every size. Pieces where a dimension has several bounds on a side split by which of
 * them is the tightest. The rest is enumerated within the budget; beyond it the count is "unknown".
 */
import { invariant } from "../support/invariant.ts";
import { makeDisjointWithin } from "./compare.ts";
import { visitPoints } from "./enumerate.ts";
import { eliminationRow, splitBounds, tighten } from "./omega.ts";
import { definePiece, toSystem } from "./piece.ts";
import { constantValue, one, type Polynomial, sumBetween } from "./polynomial.ts";
import { negateRow, type Row, substitute, tightenEquality } from "./row.ts";
import type { IntegerSet, Piece } from "./types.ts";
import { type Answer, answer, GiveUp, type Work } from "./work.ts";

/** Work units of a count: enough to enumerate a million points. */
const countingWork = 10_000_000;

/** The number of points of a set without parameters. */
export function countPoints(set: IntegerSet, limit = countingWork): Answer<number> {
  invariant(set.params.length === 0, () => "counting needs fixed parameters (fixParams)");
  return answer((work) => {
    const disjoint = set.pieces.length > 1 ? makeDisjointWithin(set, work) : set;
    let total = 0n;
    for (const piece of disjoint.pieces) total += countPiece(piece, work);
    const count = Number(total);
    if (!Number.isSafeInteger(count)) throw new GiveUp("overflow");
    return count;
  }, limit);
}

function countPiece(piece: Piece, work: Work): bigint {
  const defined = definePiece([], piece, work);
  if (defined.length === 1 && defined[0]!.locals.length === 0) {
    const closed = countClosed(defined[0]!, work);
    if (closed !== undefined) return closed;
  }
  let count = 0n;
  visitPoints(piece, work, () => {
    count++;
  });
  return count;
}

/** undefined when some bound has a coefficient other than 1, or a dimension is unbounded. */
function countClosed(piece: Piece, work: Work): bigint | undefined {
  const reduced = withoutEqualities(piece);
  if (reduced === undefined || reduced === "empty") return reduced && 0n;
  const { rows, columns } = reduced;
  return sumOver(rows, columns, one, work);
}

interface Reduced {
  readonly rows: number[][];
  /** The columns still to be summed. */
  readonly columns: readonly number[];
}

/** Substitutes dimensions that equalities give; each then takes one value. */
function withoutEqualities(piece: Piece): Reduced | "empty" | undefined {
  const system = toSystem([], piece);
  const columns = new Set(Array.from({ length: system.fixed }, (_, i) => i));
  let pending = system.equalities.map((r) => r.slice());
  let rows = system.inequalities.map((r) => r.slice());
  for (let row = pending.pop(); row; row = pending.pop()) {
    if (!tightenEquality(row)) return "empty";
    const column = row.findIndex((v, c) => c < row!.length - 1 && Math.abs(v) === 1);
    if (column < 0) {
      if (row.every((v) => v === 0)) continue;
      return undefined;
    }
    const value = eliminationRow(row, column);
    pending = pending.map((r) => substitute(r, column, value, "equality"));
    rows = rows.map((r) => substitute(r, column, value, "inequality"));
    columns.delete(column);
  }
  return { rows, columns: [...columns] };
}

/** The sum of `weight` over the points of `rows` in the given columns. */
function sumOver(
  rows: readonly number[][],
  columns: readonly number[],
  weight: Polynomial,
  work: Work,
): bigint | undefined {
  work.spend(1 + rows.length);
  const tight = tighten(rows.map((r) => r.slice()));
  if (!tight) return 0n;
  const all = [...tight.inequalities, ...tight.equalities, ...tight.equalities.map(negateRow)];
  if (columns.length === 0) return constantValue(weight);
  const column = easiestColumn(all, columns);
  const split = splitBounds(all, column);
  const { lower, upper } = split;
  if (lower.length === 0 || upper.length === 0) return undefined;
  if ([...lower, ...upper].some((r) => Math.abs(r[column]!) !== 1)) return undefined;
  const others = columns.filter((c) => c !== column);
  let total = 0n;
  for (let i = 0; i < lower.length; i++) {
    for (let k = 0; k < upper.length; k++) {
      const low = boundOf(lower[i]!, column);
      const high = boundOf(upper[k]!, column);
      const cases = [
        ...split.rest,
        ...tightest(lower, i, column, 1),
        ...tightest(upper, k, column, -1),
        minusRows(high, low),
      ];
      const part = sumOver(cases, others, sumBetween(weight, column, low, high), work);
      if (part === undefined) return undefined;
      total += part;
    }
  }
  return total;
}

/** Fewest cases first. */
function easiestColumn(rows: readonly number[][], columns: readonly number[]): number {
  const cost = (c: number): number => {
    const { lower, upper } = splitBounds(rows, c);
    const plain = [...lower, ...upper].every((r) => Math.abs(r[c]!) === 1);
    return lower.length * upper.length + (plain ? 0 : 1000);
  };
  return columns.reduce((best, c) => (cost(c) < cost(best) ? c : best));
}

/** x + f >= 0 as x >= -f; -x + f >= 0 as x <= f. */
function boundOf(row: Row, column: number): number[] {
  const out = row[column]! > 0 ? negateRow(row) : row.slice();
  out[column] = 0;
  return out;
}

function minusRows(a: Row, b: Row): number[] {
  return a.map((v, i) => v - b[i]!);
}

/** Bound `index` beats the others: strictly those before it, so that the cases do not overlap. */
function tightest(
  bounds: readonly number[][],
  index: number,
  column: number,
  sign: 1 | -1,
): number[][] {
  const own = boundOf(bounds[index]!, column);
  return bounds.flatMap((b, i) => {
    if (i === index) return [];
    const other = boundOf(b, column);
    const row = sign > 0 ? minusRows(own, other) : minusRows(other, own);
    if (i < index) row[row.length - 1]! -= 1;
    return [row];
  });
}
