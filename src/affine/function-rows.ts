/**
 * Reads a piece of a map as a function: each output dimension as a row over parameters, inputs and
 * locals. Schedules and access maps are such functions; legality and footprints work on their rows.
 */
import { eliminationRow } from "./omega.ts";
import { type Placement, placeRow } from "./piece.ts";
import { type Row, substitute } from "./row.ts";
import type { System } from "./system.ts";
import { type Division, fixedColumns, type IntegerMap, type Piece, type Tuple } from "./types.ts";

/** Outputs as rows over [parameters | inputs | locals | constant]. */
export interface FunctionRows {
  readonly outputs: readonly Row[];
  readonly locals: readonly (Division | null)[];
  /** The rows that restrict parameters and inputs. */
  readonly equalities: readonly Row[];
  readonly inequalities: readonly Row[];
}

/** Pieces are immutable, so each is read once. */
const readPieces = new WeakMap<Piece, FunctionRows | "none">();

/** undefined when some output is not given by an equality with coefficient 1. */
export function readFunction(params: readonly string[], piece: Piece): FunctionRows | undefined {
  let read = readPieces.get(piece);
  if (!read) {
    read = solveFunction(params, piece) ?? "none";
    readPieces.set(piece, read);
  }
  return read === "none" ? undefined : read;
}

/** A function with what it takes, and the name of the tuple that it gives. */
export interface KnownFunction {
  readonly input: Tuple;
  readonly output: string;
  readonly rows: FunctionRows;
}

/** Maps that were made from expressions (build.ts): their rows need no solving, nor any piece. */
const knownMaps = new WeakMap<IntegerMap, KnownFunction>();

export function rememberFunction(map: IntegerMap, known: KnownFunction): void {
  knownMaps.set(map, known);
}

/** The functions that the pieces of a map are; undefined when some piece is none. */
export function readFunctions(map: IntegerMap): readonly KnownFunction[] | undefined {
  const known = knownMaps.get(map);
  if (known) return [known];
  const out: KnownFunction[] = [];
  for (const piece of map.pieces) {
    const rows = readFunction(map.params, piece);
    if (!rows) return undefined;
    out.push({ input: piece.input!, output: piece.output.name, rows });
  }
  return out;
}

function solveFunction(params: readonly string[], piece: Piece): FunctionRows | undefined {
  const end = fixedColumns(params, piece);
  const start = end - piece.output.dims.length;
  const solved = solveOutputs(piece, start, end);
  if (!solved) return undefined;
  const cut = (row: Row): number[] => [...row.slice(0, start), ...row.slice(end)];
  const usesOutput = (row: Row): boolean => row.slice(start, end).some((v) => v !== 0);
  const inline = (row: Row): Row =>
    solved.reduce<Row>((r, value, i) => substitute(r, start + i, value, "value"), row);
  const rest = (rows: readonly Row[]): number[][] =>
    rows.map((r) => (usesOutput(r) ? inline(r) : r)).map(cut);
  return {
    outputs: solved.map(cut),
    locals: piece.locals.map((d) => d && { numerator: cut(d.numerator), divisor: d.divisor }),
    equalities: rest(piece.equalities).filter((r) => r.some((v) => v !== 0)),
    inequalities: rest(piece.inequalities),
  };
}

/** Rows for all outputs free of outputs, by elimination on unit coefficients. */
function solveOutputs(piece: Piece, start: number, end: number): Row[] | undefined {
  if (piece.locals.some((d) => d?.numerator.slice(start, end).some((v) => v !== 0))) {
    return undefined;
  }
  let pending: Row[] = piece.equalities.slice();
  const solved = new Map<number, Row>();
  while (solved.size < end - start) {
    const found = findUnit(pending, start, end, solved);
    if (!found) return undefined;
    const value = eliminationRow(found.row, found.column);
    pending = pending
      .filter((r) => r !== found.row)
      .map((r) => substitute(r, found.column, value, "equality"));
    for (const [column, row] of solved) {
      solved.set(column, substitute(row, found.column, value, "value"));
    }
    solved.set(found.column, value);
  }
  return Array.from({ length: end - start }, (_, i) => solved.get(start + i)!);
}

function findUnit(
  rows: readonly Row[],
  start: number,
  end: number,
  solved: ReadonlyMap<number, Row>,
): { row: Row; column: number } | undefined {
  for (const row of rows) {
    for (let column = start; column < end; column++) {
      if (Math.abs(row[column]!) === 1 && !solved.has(column)) return { row, column };
    }
  }
  return undefined;
}

/** Adds a function's own constraints and returns its outputs as rows of the system. */
export function addFunction(system: System, rows: FunctionRows, to: Placement): number[][] {
  const place = (row: Row): number[] => placeRow(row, to.target.length, to);
  system.equalities.push(...rows.equalities.map(place));
  system.inequalities.push(...rows.inequalities.map(place));
  rows.locals.forEach((d, k) => {
    system.locals[to.before + k] = d && { numerator: place(d.numerator), divisor: d.divisor };
  });
  return rows.outputs.map(place);
}
