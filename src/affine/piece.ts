/**
 * Pieces as values: conversion to and from the mutable System, moving columns between spaces
 * (parameter alignment, projection, renaming) and the emptiness decision with a sample point.
 */
import { invariant } from "../support/invariant.ts";
import { eliminationRow, findPoint, isPlainlyEmpty } from "./omega.ts";
import { copySystem, defineLocals } from "./quantifier.ts";
import { type Row, zeroRow } from "./row.ts";
import {
  dependsOnColumn,
  divisionRows,
  type System,
  settleLocals,
  simplify,
  substituteEverywhere,
} from "./system.ts";
import { fixedColumns, type Piece, rowWidth, type Tuple } from "./types.ts";
import { GiveUp, type Work } from "./work.ts";

/** What a piece is about, apart from its constraints. */
export interface Frame {
  readonly input: Tuple | undefined;
  readonly output: Tuple;
}

/** The piece as a System. Rows are shared: the algorithms on systems never change a row in place. */
export function toSystem(params: readonly string[], piece: Piece): System {
  return {
    fixed: fixedColumns(params, piece),
    locals: piece.locals.slice(),
    equalities: piece.equalities.slice() as number[][],
    inequalities: piece.inequalities.slice() as number[][],
  };
}

/** The simplified system in the given frame, or undefined when it is seen to be empty. */
export function toPiece(frame: Frame, system: System): Piece | undefined {
  const simple = copySystem(system);
  const { input, output } = frame;
  try {
    return simplify(simple) ? { input, output, ...systemParts(simple) } : undefined;
  } catch (error) {
    // Simplifying is a convenience: what it cannot represent stays as it was.
    if (!isOverflow(error)) throw error;
    return { input, output, ...systemParts(system) };
  }
}

function isOverflow(error: unknown): boolean {
  return error instanceof GiveUp && error.reason === "overflow";
}

/** A piece without constraints. */
export function universePiece(frame: Frame): Piece {
  return { ...frame, locals: [], equalities: [], inequalities: [] };
}

/**
 * Puts the constraints of a piece over other columns: fixed column c goes to `target[c]`, locals
 * follow `fixed` and `before` other locals in a row with `locals` of them.
 */
export interface Placement {
  readonly target: readonly number[];
  /** Columns before the locals in the new rows. */
  readonly fixed: number;
  /** Where this piece's locals start among the new locals. */
  readonly before: number;
  /** Locals in the new rows. */
  readonly locals: number;
}

export function placeRow(row: Row, oldFixed: number, to: Placement): number[] {
  const width = to.fixed + to.locals + 1;
  const out = zeroRow(width);
  for (let c = 0; c < oldFixed; c++) {
    const v = row[c]!;
    if (v !== 0) out[to.target[c]!]! += v;
  }
  const last = row.length - 1;
  const start = to.fixed + to.before;
  for (let c = oldFixed; c < last; c++) out[start + c - oldFixed] = row[c]!;
  out[width - 1] = row[last]!;
  return out;
}

/** Adds the constraints of `piece`, placed, to `system`, whose rows already have the final width. */
export function addPlaced(
  system: System,
  params: readonly string[],
  piece: Piece,
  to: Placement,
): void {
  const old = fixedColumns(params, piece);
  if (isInPlace(piece, old, to)) {
    for (const row of piece.equalities) system.equalities.push(row as number[]);
    for (const row of piece.inequalities) system.inequalities.push(row as number[]);
    for (let k = 0; k < piece.locals.length; k++) system.locals[k] = piece.locals[k]!;
    return;
  }
  for (const row of piece.equalities) system.equalities.push(placeRow(row, old, to));
  for (const row of piece.inequalities) system.inequalities.push(placeRow(row, old, to));
  for (let k = 0; k < piece.locals.length; k++) {
    const d = piece.locals[k]!;
    system.locals[to.before + k] = d && {
      numerator: placeRow(d.numerator, old, to),
      divisor: d.divisor,
    };
  }
}

/** Whether every column stays where it is: rows can then be shared. */
function isInPlace(piece: Piece, old: number, to: Placement): boolean {
  if (old !== to.fixed || to.before !== 0 || to.locals !== piece.locals.length) return false;
  for (let c = 0; c < old; c++) if (to.target[c] !== c) return false;
  return true;
}

/** An empty system with room for `locals` locals. */
export function blankSystem(fixed: number, locals: number): System {
  return {
    fixed,
    locals: new Array<null>(locals).fill(null),
    equalities: [],
    inequalities: [],
  };
}

/** Moves a piece onto another list of parameters that contains its own. */
export function alignPiece(from: readonly string[], to: readonly string[], piece: Piece): Piece {
  if (from === to || (from.length === to.length && from.every((p, i) => p === to[i]))) return piece;
  const dims = fixedColumns([], piece);
  const target = [
    ...from.map((p) => to.indexOf(p)),
    ...Array.from({ length: dims }, (_, i) => to.length + i),
  ];
  invariant(!target.includes(-1), () => `parameter of [${from}] missing in [${to}]`);
  const fixed = to.length + dims;
  const system = blankSystem(fixed, piece.locals.length);
  addPlaced(system, from, piece, { target, fixed, before: 0, locals: piece.locals.length });
  return { ...piece, ...systemParts(system) };
}

/** The parts of a piece that a system holds, unsimplified. */
export function systemParts(system: System): Pick<Piece, "locals" | "equalities" | "inequalities"> {
  return {
    locals: system.locals,
    equalities: system.equalities,
    inequalities: system.inequalities,
  };
}

/**
 * Existentially quantifies fixed columns of a system: those kept become `keep[0], keep[1], …`, the
 * others locals. Columns that an equality gives are substituted first, so that divisions stay known.
 */
export function projectOnto(system: System, keep: readonly number[]): System {
  const copy = copySystem(system);
  const order = keep.slice();
  for (let c = 0; c < copy.fixed; c++) if (!keep.includes(c)) order.push(c);
  for (let i = keep.length; i < order.length; i++) substituteByEquality(copy, order[i]!);
  const locals: System["locals"] = [];
  for (let i = keep.length; i < order.length; i++) locals.push(null);
  for (let k = 0; k < copy.locals.length; k++) {
    const d = copy.locals[k]!;
    locals.push(d && { numerator: reordered(d.numerator, order), divisor: d.divisor });
  }
  const moved: System = {
    fixed: keep.length,
    locals,
    equalities: reorderedRows(copy.equalities, order),
    inequalities: reorderedRows(copy.inequalities, order),
  };
  settleLocals(moved);
  return moved;
}

function reorderedRows(rows: readonly Row[], order: readonly number[]): number[][] {
  const out = new Array<number[]>(rows.length);
  for (let i = 0; i < rows.length; i++) out[i] = reordered(rows[i]!, order);
  return out;
}

/** The fixed columns in another order, the rest as it is. */
function reordered(row: Row, order: readonly number[]): number[] {
  const out = new Array<number>(row.length);
  for (let c = 0; c < order.length; c++) out[c] = row[order[c]!]!;
  for (let c = order.length; c < row.length; c++) out[c] = row[c]!;
  return out;
}

function substituteByEquality(system: System, column: number): void {
  const at = system.equalities.findIndex(
    (r) => Math.abs(r[column]!) === 1 && !dependsOnColumn(system, r, column),
  );
  if (at < 0) return;
  try {
    substituteEverywhere(system, column, eliminationRow(system.equalities[at]!, column));
  } catch (error) {
    // The column then becomes a local that the equality ties down.
    if (!isOverflow(error)) throw error;
    return;
  }
  system.equalities.splice(at, 1);
}

/** Values of all fixed columns at some point of the piece, or null when it is empty. */
export function samplePiece(params: readonly string[], piece: Piece, work: Work): number[] | null {
  const rows = allInequalities(params, piece);
  const point = findPoint(piece.equalities, rows, rowWidth(params, piece) - 1, work);
  return point?.slice(0, fixedColumns(params, piece)) ?? null;
}

/** The piece's inequalities and the bounds of its divisions. */
export function allInequalities(params: readonly string[], piece: Piece): readonly Row[] {
  const divided = piece.locals.some((d) => d !== null);
  return divided
    ? piece.inequalities.concat(divisionRows(toSystem(params, piece)))
    : piece.inequalities;
}

/** Whether the piece is easily seen to have no point; false may mean either. */
export function seemsEmpty(params: readonly string[], piece: Piece): boolean {
  const rows = allInequalities(params, piece);
  try {
    return isPlainlyEmpty(piece.equalities, rows, rowWidth(params, piece) - 1);
  } catch (error) {
    if (!(error instanceof GiveUp)) throw error;
    return false;
  }
}

/** Pieces with the same union whose locals are all divisions. */
export function definePiece(params: readonly string[], piece: Piece, work: Work): Piece[] {
  if (piece.locals.every((d) => d !== null)) return [piece];
  const out: Piece[] = [];
  for (const system of defineLocals(toSystem(params, piece), work)) {
    const defined = toPiece(piece, system);
    if (defined) out.push(defined);
  }
  return out;
}
