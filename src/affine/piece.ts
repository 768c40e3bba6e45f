/**
 * Pieces as values: conversion to and from the mutable System, moving columns between spaces
 * (parameter alignment, projection, renaming) and the emptiness decision with a sample point.
 */
import { invariant } from "../support/invariant.ts";
import { eliminationRow, findPoint } from "./omega.ts";
import { copySystem, defineLocals } from "./quantifier.ts";
import type { Row } from "./row.ts";
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
  const out = new Array<number>(to.fixed + to.locals + 1).fill(0);
  for (let c = 0; c < oldFixed; c++) if (row[c] !== 0) out[to.target[c]!]! += row[c]!;
  const count = row.length - 1 - oldFixed;
  for (let k = 0; k < count; k++) out[to.fixed + to.before + k] = row[oldFixed + k]!;
  out[out.length - 1] = row[row.length - 1]!;
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
  const place = (row: Row): number[] => placeRow(row, old, to);
  system.equalities.push(...piece.equalities.map(place));
  system.inequalities.push(...piece.inequalities.map(place));
  piece.locals.forEach((d, k) => {
    system.locals[to.before + k] = d && {
      numerator: place(d.numerator),
      divisor: d.divisor,
    };
  });
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
  const gone: number[] = [];
  const kept = new Set(keep);
  for (let c = 0; c < copy.fixed; c++) if (!kept.has(c)) gone.push(c);
  for (const column of gone) substituteByEquality(copy, column);
  const order = [...keep, ...gone];
  const move = (row: Row): number[] => {
    const out = order.map((c) => row[c]!);
    for (let c = copy.fixed; c < row.length; c++) out.push(row[c]!);
    return out;
  };
  const moved: System = {
    fixed: keep.length,
    locals: [
      ...gone.map(() => null),
      ...copy.locals.map((d) => d && { numerator: move(d.numerator), divisor: d.divisor }),
    ],
    equalities: copy.equalities.map(move),
    inequalities: copy.inequalities.map(move),
  };
  settleLocals(moved);
  return moved;
}

function substituteByEquality(system: System, column: number): void {
  const row = system.equalities.find(
    (r) => Math.abs(r[column]!) === 1 && !dependsOnColumn(system, r, column),
  );
  if (!row) return;
  try {
    substituteEverywhere(system, column, eliminationRow(row, column));
  } catch (error) {
    // The column then becomes a local that the equality ties down.
    if (!isOverflow(error)) throw error;
  }
}

/** Values of all fixed columns at some point of the piece, or null when it is empty. */
export function samplePiece(params: readonly string[], piece: Piece, work: Work): number[] | null {
  const system = toSystem(params, piece);
  const rows = piece.locals.some((d) => d !== null)
    ? [...piece.inequalities, ...divisionRows(system)]
    : piece.inequalities;
  const columns = rowWidth(params, piece) - 1;
  const point = findPoint(piece.equalities, rows, columns, work);
  return point?.slice(0, system.fixed) ?? null;
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
