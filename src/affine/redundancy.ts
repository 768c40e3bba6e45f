/**
 * Rows that the other rows of a piece imply over the integers, and their removal.
 */
import { isEmptyPiece } from "./compare.ts";
import { findPoint } from "./omega.ts";
import { allInequalities } from "./piece.ts";
import { negateInequality, type Row } from "./row.ts";
import { fixedColumns, type Piece, rowWidth, type SetOrMap } from "./types.ts";
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
  const { equalities, inequalities } = piece;
  const columns = rowWidth(params, piece) - 1;
  const fixed = fixedColumns(params, piece);
  // What holds whichever rows are left: the bounds of the divisions.
  const floors = allInequalities(params, piece).slice(inequalities.length);
  let rows = inequalities;
  for (let i = 0; i < inequalities.length; i++) {
    const row = inequalities[i]!;
    if (isOnlyBound(piece, fixed, rows, row)) continue;
    const violated: Row[] = [];
    for (let k = 0; k < rows.length; k++) if (rows[k] !== row) violated.push(rows[k]!);
    const others = violated.length;
    for (let k = 0; k < floors.length; k++) violated.push(floors[k]!);
    violated.push(negateInequality(row));
    if (findPoint(equalities, violated, columns, work) === null) rows = violated.slice(0, others);
  }
  return rows === inequalities ? piece : { ...piece, inequalities: rows };
}

/**
 * Whether some column has this row as its only bound on a side: then a point far out on that side
 * violates the row alone, and it is not redundant.
 */
function isOnlyBound(piece: Piece, fixed: number, rows: readonly Row[], row: Row): boolean {
  for (let c = 0; c < fixed; c++) {
    if (row[c] !== 0 && isFree(piece, c) && isAlone(rows, row, c)) return true;
  }
  return false;
}

/** Whether no equality and no division ties the column. */
function isFree({ equalities, locals }: Piece, column: number): boolean {
  for (let i = 0; i < equalities.length; i++) if (equalities[i]![column] !== 0) return false;
  for (let i = 0; i < locals.length; i++) {
    const d = locals[i];
    if (d && d.numerator[column] !== 0) return false;
  }
  return true;
}

function isAlone(rows: readonly Row[], row: Row, column: number): boolean {
  const own = row[column]!;
  for (let i = 0; i < rows.length; i++) {
    const r = rows[i]!;
    if (r !== row && r[column]! * own > 0) return false;
  }
  return true;
}
