/**
 * Rows that the other rows of a piece imply over the integers, and their removal.
 */
import { isEmptyPiece } from "./compare.ts";
import { samplePiece } from "./piece.ts";
import { negateInequality, type Row } from "./row.ts";
import { fixedColumns, type Piece, type SetOrMap } from "./types.ts";
import { type Answer, answer, type Work } from "./work.ts";

/** The same points without empty pieces and without rows that other rows imply. */
export function removeRedundancies<T extends SetOrMap>(value: T, limit?: number): Answer<T> {
  return answer((work) => {
    const { params } = value;
    const inhabited = value.pieces.filter((p) => !isEmptyPiece(params, p, work));
    return { ...value, pieces: inhabited.map((p) => removeRedundant(params, p, work)) };
  }, limit);
}

/** Drops inequalities that the other rows imply; the piece has points. */
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
