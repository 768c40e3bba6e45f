/**
 * Hulls: one piece a tuple that contains all points. The affine hull is all equalities that hold on
 * the integer points, found by points outside the present candidate (M. Karr, "Affine relationships
 * among variables of a program", 1976). The simple hull takes the rows of all pieces, each moved
 * outwards to its least value on the set (exact over the integers, so at least as tight as over the
 * reals). The polyhedral hull has all rows that hold, by double-description.ts. Boxes with their bounds in
 * parameters are in bounds.ts.
 */

import { isEmptyPiece } from "./compare.ts";
import { type Generators, generatorsOf } from "./double-description.ts";
import { type Substitution, shadow, splitBounds, withoutEqualities } from "./omega.ts";
import { minimumFrom, withPoint } from "./optimum.ts";
import { allInequalities, projectOnto, samplePiece, toPiece, toSystem } from "./piece.ts";
import { copySystem } from "./quantifier.ts";
import { removeRedundant } from "./redundancy.ts";
import {
  combine,
  dotProduct,
  evaluateRow,
  negateRow,
  type Row,
  tightEquality,
  unitRow,
  zeroRow,
} from "./row.ts";
import type { Program } from "./simplex.ts";
import { divisionRows, type System } from "./system.ts";
import { tighten } from "./tighten.ts";
import { fixedColumns, type Piece, rowWidth, type SetOrMap, sameTuple } from "./types.ts";
import { type Answer, answer, type Work } from "./work.ts";

/** The affine equalities of the points, one piece a tuple (a pair of tuples for maps). */
export function affineHull<T extends SetOrMap>(value: T, limit?: number): Answer<T> {
  return hullOf(value, limit, (params, pieces, work) => {
    const equalities = equalitiesOf(params, pieces, work);
    return { ...pieces[0]!, locals: [], equalities, inequalities: [] };
  });
}

/** The rows of all pieces that bound the set, moved as far as they must be. */
export function simpleHull<T extends SetOrMap>(value: T, limit?: number): Answer<T> {
  return hullOf(value, limit, (params, pieces, work) => {
    if (pieces.length === 1 && pieces[0]!.locals.length === 0) return pieces[0]!;
    const inequalities = translatedRows(params, pieces, work);
    return slim(params, { ...pieces[0]!, locals: [], equalities: [], inequalities }, work);
  });
}

/**
 * The polyhedral hull: all rows that hold on the rational points of the pieces (their locals
 * projected away) and of the integer lattices they lie on, rounded; each piece is turned into its
 * vertices, rays and lines, and those of all pieces back into rows.
 */
export function polyhedralHull<T extends SetOrMap>(value: T, limit?: number): Answer<T> {
  return hullOf(value, limit, (params, pieces, work) => {
    if (pieces.length === 1 && pieces[0]!.locals.length === 0) return pieces[0]!;
    const width = fixedColumns(params, pieces[0]!) + 1;
    const parts = pieces.map((p) => generatorsOfPiece(params, p, work));
    const lines = parts.flatMap((g) => g.lines.map((v) => overFixed(v, width)));
    const rays = parts.flatMap((g) => g.rays.map((v) => overFixed(v, width)));
    const facets = generatorsOf(lines, rays, width, work);
    const hull = {
      ...pieces[0]!,
      locals: [],
      equalities: facets.lines,
      inequalities: facets.rays,
    };
    return toPiece(hull, toSystem(params, hull)) ?? hull;
  });
}

/**
 * Of the cone over the piece: the constant's column is one more variable, which is at least 0. All
 * equalities of its integer points are used up first, so that the rows left round well.
 */
function generatorsOfPiece(params: readonly string[], piece: Piece, work: Work): Generators {
  const width = rowWidth(params, piece);
  const hidden = piece.locals.map(() => 0);
  const found = equalitiesOf(params, [piece], work);
  const equalities = found.map((r) => [...r.slice(0, -1), ...hidden, r.at(-1)!]);
  const trail: Substitution[] = [];
  const all = [...piece.equalities, ...equalities];
  const rows = withoutEqualities(all, allInequalities(params, piece), trail, work) ?? [];
  const replaced = trail.filter((s) => s.value[s.column] === 0);
  const zero = replaced.map((s) => unitRow(width, s.column));
  const { lines, rays } = generatorsOf(zero, [...rows, unitRow(width, width - 1)], width, work);
  const recover = (v: Row): Row => recovered(v, trail);
  return { lines: lines.map(recover), rays: rays.map(recover) };
}

/** The vector with the entries that were replaced. */
function recovered(vector: Row, trail: readonly Substitution[]): Row {
  const out = vector.slice();
  for (const { column, value } of trail.toReversed()) out[column] = dotProduct(value, out);
  return out;
}

/** A vector without its entries for locals. */
function overFixed(vector: Row, width: number): Row {
  return [...vector.slice(0, width - 1), vector.at(-1)!];
}

type HullOfPieces = (params: readonly string[], pieces: readonly Piece[], work: Work) => Piece;

function hullOf<T extends SetOrMap>(
  value: T,
  limit: number | undefined,
  hull: HullOfPieces,
): Answer<T> {
  return answer((work) => {
    const inhabited = value.pieces.filter((p) => !isEmptyPiece(value.params, p, work));
    const pieces: Piece[] = [];
    for (const first of inhabited) {
      const known = pieces.some((p) => sameFrame(p, first));
      if (known) continue;
      const own = inhabited.filter((p) => sameFrame(p, first));
      pieces.push(hull(value.params, own, work));
    }
    return { ...value, pieces };
  }, limit);
}

function sameFrame(p: Piece, q: Piece): boolean {
  return sameTuple(p.input, q.input) && sameTuple(p.output, q.output);
}

/** The piece simplified, without rows that the others imply. */
function slim(params: readonly string[], piece: Piece, work: Work): Piece {
  const simple = toPiece(piece, toSystem(params, piece));
  return removeRedundant(params, simple ?? piece, work);
}

/** A basis of the equalities over the fixed columns that hold on all points. */
function equalitiesOf(params: readonly string[], pieces: readonly Piece[], work: Work): number[][] {
  const start = samplePiece(params, pieces[0]!, work)!;
  let open: number[][] = start.map((v, c) => {
    const row = unitRow(start.length + 1, c);
    row[start.length] = v === 0 ? 0 : -v;
    return row;
  });
  const proved: number[][] = [];
  for (let row = open.pop(); row; row = open.pop()) {
    const point = pointOff(params, pieces, row, work);
    if (point) open = open.map((r) => throughPoint(r, row!, point));
    else proved.push(row);
  }
  return proved;
}

/** A point where the row is not zero. */
function pointOff(
  params: readonly string[],
  pieces: readonly Piece[],
  row: Row,
  work: Work,
): number[] | undefined {
  for (const piece of pieces) {
    for (const side of [row, negateRow(row)]) {
      const off = [...side.slice(0, -1), ...piece.locals.map(() => 0), side.at(-1)! - 1];
      const apart: Piece = { ...piece, inequalities: [...piece.inequalities, off] };
      const point = samplePiece(params, apart, work);
      if (point) return point;
    }
  }
  return undefined;
}

/** A combination of two candidates that vanishes at the point too. */
function throughPoint(row: Row, dropped: Row, point: readonly number[]): number[] {
  const own = evaluateRow(row, point);
  if (own === 0) return row.slice();
  const both = combine(evaluateRow(dropped, point), row, -own, dropped, "equality");
  return tightEquality(both) ?? both;
}

/** Every piece's rows over the fixed columns, moved to where they are tight on all pieces. */
function translatedRows(params: readonly string[], pieces: readonly Piece[], work: Work): Row[] {
  const fixed = fixedColumns(params, pieces[0]!);
  const programs = pieces.map((p) => withPoint(toSystem(params, p), work)!);
  const seen = new Set<string>();
  const out: Row[] = [];
  for (const piece of pieces) {
    for (const row of relaxation(params, piece, work)) {
      const key = row.slice(0, fixed).join();
      if (seen.has(key)) continue;
      seen.add(key);
      const least = leastValue(programs, row, work);
      if (least !== -Infinity) out.push([...row.slice(0, fixed), 0 - least]);
    }
  }
  return out;
}

/** The least value of a row's variable part on all pieces. */
function leastValue(programs: readonly Program[], row: Row, work: Work): number {
  let least = Infinity;
  for (const program of programs) {
    const width = program.start.length + 1;
    const full = zeroRow(width);
    for (let c = 0; c < row.length - 1; c++) full[c] = row[c]!;
    const found = minimumFrom(program, full, work);
    if (found.kind === "unbounded") return -Infinity;
    if (found.kind === "value") least = Math.min(least, found.value);
  }
  return least;
}

/** Rows over the fixed columns that hold on the piece: locals are eliminated over the reals. */
function relaxation(params: readonly string[], piece: Piece, work: Work): number[][] {
  const { fixed } = toSystem(params, piece);
  const columns = Array.from({ length: fixed }, (_, c) => c);
  const system: System = copySystem(projectOnto(toSystem(params, piece), columns));
  let rows = asInequalities([...system.inequalities, ...divisionRows(system)], system.equalities);
  for (let c = fixed; c < fixed + system.locals.length; c++) {
    rows = tightened(shadow(splitBounds(rows, c), c, "real", work));
  }
  return rows.map((r) => [...r.slice(0, fixed), r.at(-1)!]);
}

function asInequalities(inequalities: readonly Row[], equalities: readonly Row[]): number[][] {
  const both = [...inequalities, ...equalities, ...equalities.map(negateRow)];
  return tightened(both.map((r) => r.slice()));
}

/** Tightened rows; of a contradiction the one row that says so. */
function tightened(rows: readonly number[][]): number[][] {
  const width = rows[0]?.length ?? 1;
  const tight = tighten(rows);
  if (!tight) return [unitRow(width, width - 1, -1)];
  return [...tight.inequalities, ...tight.equalities, ...tight.equalities.map(negateRow)];
}
