/**
 * Decisions on sets and maps: emptiness with a sample point, subtraction, subset, equality,
 * disjointness, and dropping redundant pieces. Exact or "unknown": emptiness is the Omega test,
 * subtraction negates the rows of pieces whose locals have been made divisions.
 */

import { searchQuickly } from "./bounded-search.ts";
import { isOctagonInhabited } from "./octagon.ts";
import { solveExactly } from "./omega.ts";
import { isInhabitedExactly } from "./omega-exact.ts";
import { alignBoth, intersectPieces } from "./operations.ts";
import { allInequalities, definePiece, samplePiece } from "./piece.ts";
import { negateInequality, type Row, requireInteger } from "./row.ts";
import {
  fixedColumns,
  type IntegerMap,
  type IntegerSet,
  type Piece,
  type Point,
  type PointPair,
  rowWidth,
  type SetOrMap,
  sameTuple,
} from "./types.ts";
import { type Answer, answer, decide, GiveUp, type Truth, type Work } from "./work.ts";

/** Whether there is no point for any parameter values. */
export function isEmpty(value: SetOrMap, limit?: number): Truth {
  return decide((work) => value.pieces.every((p) => isEmptyPiece(value.params, p, work)), limit);
}

/** Whether a piece has a point: one of them where the decision has found one, over all its columns. */
type Inhabited = readonly number[] | boolean;

/** Pieces are immutable, so a decision is made once. */
const decided = new WeakMap<Piece, Inhabited>();

export function isEmptyPiece(params: readonly string[], piece: Piece, work: Work): boolean {
  const known = decided.get(piece);
  if (known !== undefined) return known === false;
  const found = isInhabited(params, piece, work);
  decided.set(piece, found);
  return found === false;
}

/** A point that deciding about the piece has found, if it has. */
export function pointSeen(piece: Piece): readonly number[] | undefined {
  const known = decided.get(piece);
  return typeof known === "object" ? known : undefined;
}

/** A quick look, then octagons by closure, the rest by the Omega test, in BigInt where doubles do not suffice. */
function isInhabited(params: readonly string[], piece: Piece, work: Work): Inhabited {
  const { equalities } = piece;
  const rows = allInequalities(params, piece);
  const columns = rowWidth(params, piece) - 1;
  const quick = searchQuickly(equalities, rows, columns);
  if (quick !== undefined) return quick ?? false;
  if (piece.locals.length === 0) {
    const fast = isOctagonInhabited(equalities, rows, columns);
    if (fast !== undefined) return fast;
  }
  try {
    return solveExactly(equalities, rows, columns, work) ?? false;
  } catch (error) {
    if (!(error instanceof GiveUp) || error.reason !== "overflow") throw error;
    return isInhabitedExactly(equalities, rows, work);
  }
}

/** Some point of the set with parameter values for which it exists; null when it is empty. */
export function samplePoint(set: IntegerSet, limit?: number): Answer<Point | null> {
  return answer((work) => {
    for (const p of set.pieces) {
      const values = samplePiece(set.params, p, work);
      if (!values) continue;
      const n = set.params.length;
      return { params: named(set.params, values), tuple: p.output.name, values: values.slice(n) };
    }
    return null;
  }, limit);
}

/** Some pair of the map, as samplePoint. */
export function samplePair(map: IntegerMap, limit?: number): Answer<PointPair | null> {
  return answer((work) => {
    for (const p of map.pieces) {
      const values = samplePiece(map.params, p, work);
      if (values) return pairOf(map.params, p, values);
    }
    return null;
  }, limit);
}

export function pairOf(
  params: readonly string[],
  piece: Piece,
  values: readonly number[],
): PointPair {
  const n = params.length;
  const split = n + piece.input!.dims.length;
  return {
    params: named(params, values),
    from: { tuple: piece.input!.name, values: values.slice(n, split) },
    to: { tuple: piece.output.name, values: values.slice(split) },
  };
}

export function named(
  params: readonly string[],
  values: readonly number[],
): Record<string, number> {
  return Object.fromEntries(params.map((p, i) => [p, values[i]!]));
}

/** The points of `a` that are not in `b`. */
export function subtract<T extends SetOrMap>(a: T, b: T, limit?: number): Answer<T> {
  return answer((work) => subtractWithin(a, b, work), limit);
}

export function subtractWithin<T extends SetOrMap>(a: T, b: T, work: Work): T {
  const [x, y] = alignBoth(a, b);
  let pieces: readonly Piece[] = x.pieces;
  for (const q of y.pieces) {
    if (!pieces.some((p) => sameFrame(p, q))) continue;
    for (const defined of definePiece(y.params, q, work)) {
      pieces = pieces.flatMap((p) =>
        sameFrame(p, defined) ? subtractPiece(x.params, p, defined, work) : [p],
      );
    }
  }
  return { ...x, pieces };
}

function sameFrame(p: Piece, q: Piece): boolean {
  return sameTuple(p.input, q.input) && sameTuple(p.output, q.output);
}

/**
 * p minus q, where q's locals are divisions (so that they have a value at every point): for each row
 * r of q the points of p that satisfy the rows before r and violate r. The results are disjoint.
 */
function subtractPiece(params: readonly string[], p: Piece, q: Piece, work: Work): Piece[] {
  const common = intersectPieces(params, p, q);
  if (!common || isEmptyPiece(params, common, work)) return [p];
  const out: Piece[] = [];
  let inside: Piece = p;
  for (const { holds, violations } of rowCases(q)) {
    let needed = false;
    for (const violation of violations) {
      const outside = withRow(params, inside, q, violation, "inequality");
      if (!outside || isEmptyPiece(params, outside, work)) continue;
      out.push(outside);
      needed = true;
    }
    if (!needed) continue;
    const next = withRow(params, inside, q, holds.row, holds.kind);
    if (!next) break;
    inside = next;
  }
  return out;
}

interface RowCase {
  readonly holds: { readonly row: Row; readonly kind: "equality" | "inequality" };
  readonly violations: readonly Row[];
}

function rowCases(q: Piece): RowCase[] {
  const equalities = q.equalities.map((row): RowCase => {
    const above = row.slice();
    above[above.length - 1]! -= 1;
    return {
      holds: { row, kind: "equality" },
      violations: [above, negateInequality(row)],
    };
  });
  const inequalities = q.inequalities.map(
    (row): RowCase => ({
      holds: { row, kind: "inequality" },
      violations: [negateInequality(row)],
    }),
  );
  return [...equalities, ...inequalities];
}

/** `p` with one more row stated over `q`'s columns (q's divisions come along). */
function withRow(
  params: readonly string[],
  p: Piece,
  q: Piece,
  row: Row,
  kind: "equality" | "inequality",
): Piece | undefined {
  const only: Piece = {
    ...q,
    equalities: kind === "equality" ? [row] : [],
    inequalities: kind === "inequality" ? [row] : [],
  };
  return intersectPieces(params, p, only);
}

export function isSubset<T extends SetOrMap>(a: T, b: T, limit?: number): Truth {
  return decide((work) => isSubsetWithin(a, b, work), limit);
}

export function isSubsetWithin<T extends SetOrMap>(a: T, b: T, work: Work): boolean {
  const rest = subtractWithin(a, b, work);
  return rest.pieces.every((p) => isEmptyPiece(rest.params, p, work));
}

export function isEqual<T extends SetOrMap>(a: T, b: T, limit?: number): Truth {
  return decide((work) => isSubsetWithin(a, b, work) && isSubsetWithin(b, a, work), limit);
}

export function isDisjoint<T extends SetOrMap>(a: T, b: T, limit?: number): Truth {
  return decide((work) => {
    const [x, y] = alignBoth(a, b);
    return x.pieces.every((p) =>
      y.pieces.every((q) => {
        if (!sameFrame(p, q)) return true;
        const both = intersectPieces(x.params, p, q);
        return !both || isEmptyPiece(x.params, both, work);
      }),
    );
  }, limit);
}

/** The same points in pieces that do not overlap, empty ones dropped. */
export function makeDisjoint<T extends SetOrMap>(value: T, limit?: number): Answer<T> {
  return answer((work) => makeDisjointWithin(value, work), limit);
}

export function makeDisjointWithin<T extends SetOrMap>(value: T, work: Work): T {
  let pieces: Piece[] = [];
  for (const p of value.pieces) {
    if (isEmptyPiece(value.params, p, work)) continue;
    const rest = subtractWithin({ ...value, pieces: [p] }, { ...value, pieces }, work);
    pieces = [...pieces, ...rest.pieces.filter((r) => !isEmptyPiece(value.params, r, work))];
  }
  return { ...value, pieces };
}

/** Whether a point with these parameter values lies in the set (or pair in the map). */
export function contains(
  value: SetOrMap,
  params: Readonly<Record<string, number>>,
  values: readonly number[],
  limit?: number,
): Truth {
  const numbers = value.params.flatMap((p) => params[p] ?? []);
  if (numbers.length < value.params.length) return "unknown";
  const fixed = [...numbers, ...values];
  fixed.forEach(requireInteger);
  return decide(
    (work) => value.pieces.some((p) => containsInPiece(value.params, p, fixed, work)),
    limit,
  );
}

function containsInPiece(
  params: readonly string[],
  piece: Piece,
  values: readonly number[],
  work: Work,
): boolean {
  const columns = fixedColumns(params, piece);
  if (values.length !== columns) return false;
  const pins = values.map((v, i) => {
    const row = new Array<number>(columns + piece.locals.length + 1).fill(0);
    row[i] = 1;
    row[row.length - 1] = -v;
    return row;
  });
  const pinned: Piece = { ...piece, equalities: [...piece.equalities, ...pins] };
  return samplePiece(params, pinned, work) !== null;
}
