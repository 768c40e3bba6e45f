/**
 * Fewer pieces for the same points: empty pieces go, pieces inside another go, and two pieces become
 * one when the rows of each that hold on both describe exactly their union (the idea of S. Verdoolaege,
 * "Integer set coalescing", 2015, decided here by exact subtraction). Joining has a budget of its
 * own: when it is used up the pieces left are right, only more than need be.
 */
import { isEmptyPiece, isSubsetWithin } from "./compare.ts";
import { intersectPieces } from "./operations.ts";
import { samplePiece } from "./piece.ts";
import { negateInequality, negateRow, type Row } from "./row.ts";
import { fixedColumns, type Piece, type SetOrMap, sameTuple } from "./types.ts";
import { type Answer, answer, GiveUp, Work } from "./work.ts";

/** Work units for joining pieces. */
const joiningWork = 50_000;

/** The same points in fewer pieces, without redundant rows. */
export function coalesce<T extends SetOrMap>(value: T, limit?: number): Answer<T> {
  return answer((work) => {
    const { params } = value;
    const inhabited = value.pieces.filter((p) => !isEmptyPiece(params, p, work));
    const joined = joinPieces(params, inhabited, new Work(joiningWork));
    return { ...value, pieces: joined.map((p) => removeRedundant(params, p, work)) };
  }, limit);
}

function joinPieces(params: readonly string[], pieces: readonly Piece[], work: Work): Piece[] {
  let out = [...pieces];
  try {
    for (let next = joinOnce(params, out, work); next; next = joinOnce(params, out, work)) {
      out = next;
    }
  } catch (error) {
    if (!(error instanceof GiveUp)) throw error;
  }
  return out;
}

/** Replaces the first two pieces that can be joined. */
function joinOnce(
  params: readonly string[],
  pieces: readonly Piece[],
  work: Work,
): Piece[] | undefined {
  for (let i = 0; i < pieces.length; i++) {
    for (let k = i + 1; k < pieces.length; k++) {
      const joined = joinTwo(params, pieces[i]!, pieces[k]!, work);
      if (joined)
        return [...pieces.slice(0, i), joined, ...pieces.filter((_, n) => n > i && n !== k)];
    }
  }
  return undefined;
}

/** One piece for the union of two, if their common rows describe it. */
function joinTwo(params: readonly string[], p: Piece, q: Piece, work: Work): Piece | undefined {
  if (!sameTuple(p.input, q.input) || !sameTuple(p.output, q.output)) return undefined;
  const fromP = rowsOnBoth(params, p, q, work);
  if (fromP.all) return p;
  const fromQ = rowsOnBoth(params, q, p, work);
  if (fromQ.all) return q;
  const common = intersectPieces(params, fromP.piece, fromQ.piece);
  if (!common) return undefined;
  const whole: SetOrMap = { kind: p.input ? "map" : "set", params, pieces: [common] } as SetOrMap;
  const both: SetOrMap = { ...whole, pieces: [p, q] };
  return isSubsetWithin(whole, both, work) ? common : undefined;
}

/** Those rows of p that hold on q too; `all` of them when q lies inside p. */
function rowsOnBoth(
  params: readonly string[],
  p: Piece,
  q: Piece,
  work: Work,
): { piece: Piece; all: boolean } {
  if (p.locals.some((d) => d === null)) return { piece: withRows(p, []), all: false };
  const rows = [...p.inequalities, ...p.equalities, ...p.equalities.map(negateRow)];
  const kept = rows.filter((row) => holdsOn(params, p, row, q, work));
  return { piece: withRows(p, kept), all: kept.length === rows.length };
}

function withRows(p: Piece, inequalities: readonly Row[]): Piece {
  return { ...p, equalities: [], inequalities };
}

function holdsOn(params: readonly string[], p: Piece, row: Row, q: Piece, work: Work): boolean {
  const outside = intersectPieces(params, q, withRows(p, [negateInequality(row)]));
  return !outside || isEmptyPiece(params, outside, work);
}

/** Drops inequalities that the other rows imply over the integers; the piece has points. */
export function removeRedundant(params: readonly string[], piece: Piece, work: Work): Piece {
  let rows = piece.inequalities;
  for (const row of piece.inequalities) {
    if (isOnlyBound(params, piece, rows, row)) continue;
    const others = rows.filter((r) => r !== row);
    const violated: Piece = { ...piece, inequalities: [...others, negateInequality(row)] };
    if (samplePiece(params, violated, work) === null) rows = others;
  }
  return rows === piece.inequalities ? piece : { ...piece, inequalities: rows };
}

/**
 * Whether some column has this row as its only bound on a side: then a point far out on that side
 * violates the row alone, and it is not redundant.
 */
function isOnlyBound(
  params: readonly string[],
  piece: Piece,
  rows: readonly Row[],
  row: Row,
): boolean {
  const fixed = fixedColumns(params, piece);
  for (let c = 0; c < fixed; c++) {
    const own = row[c]!;
    if (own === 0) continue;
    const alone = rows.every((r) => r === row || r[c]! * own <= 0);
    const free =
      alone &&
      piece.equalities.every((r) => r[c] === 0) &&
      piece.locals.every((d) => d === null || d.numerator[c] === 0);
    if (free) return true;
  }
  return false;
}
