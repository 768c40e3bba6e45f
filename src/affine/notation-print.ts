/**
 * Prints sets and maps in isl's notation, so that parsing gives the same points back (and isl reads
 * it too). Output dimensions that an equality gives are printed as expressions in their place,
 * divisions as floor(…), other locals under `exists`.
 */
import { type Affine, add, floorDivide, formatAffine, scale } from "./expression.ts";
import { eliminationRow } from "./omega.ts";
import { toSystem } from "./piece.ts";
import { type Row, substitute } from "./row.ts";
import { dependsOnColumn, type System, substituteEverywhere } from "./system.ts";
import { fixedColumns, type Piece, type SetOrMap, type Tuple } from "./types.ts";

/** One line, `[N] -> { S[i] -> A[i + 1] : 0 <= i < N; … }`. */
export function formatSet(value: SetOrMap): string {
  const params = value.params.length > 0 ? `[${value.params.join(", ")}] -> ` : "";
  const pieces = value.pieces.map((p) => formatPiece(value.params, p));
  return pieces.length === 0 ? `${params}{ }` : `${params}{ ${pieces.join("; ")} }`;
}

/** `S[i] -> A[i + 1] : 0 <= i < N` */
export function formatPiece(params: readonly string[], piece: Piece): string {
  const names = columnNames(params, piece);
  const { system, outputs } = inlineOutputs(params, piece);
  const spell = new RowSpeller(system, names);
  const start = fixedColumns(params, piece) - piece.output.dims.length;
  const output = piece.output.dims.map((_, i) => {
    const row = outputs.get(start + i);
    return row ? formatAffine(spell.expression(row)) : names[start + i]!;
  });
  const inputNames = names.slice(params.length, start);
  const tuples = piece.input
    ? `${spelledTuple(piece.input, inputNames)} -> ${spelledTuple(piece.output, output)}`
    : spelledTuple(piece.output, output);
  const rows = [
    ...system.equalities.filter((r) => r.some((v) => v !== 0)).map((r) => spell.equality(r)),
    ...boundsText(system, spell),
  ];
  const free = spell.freeNames();
  const condition = rows.join(" and ");
  const body = free.length > 0 ? `exists (${free.join(", ")}: ${condition || "true"})` : condition;
  return body === "" ? tuples : `${tuples} : ${body}`;
}

function spelledTuple({ name, dims, nested }: Tuple, entries: readonly string[]): string {
  if (nested === undefined) return `${name}[${entries.slice(0, dims.length).join(", ")}]`;
  const from = spelledTuple(nested.from, entries);
  return `${name}[${from} -> ${spelledTuple(nested.to, entries.slice(nested.from.dims.length))}]`;
}

/** Distinct names for all fixed columns; a repeated dimension name gets a prime, as in isl. */
function columnNames(params: readonly string[], piece: Piece): string[] {
  const names = [...params];
  for (const dim of [...(piece.input?.dims ?? []), ...piece.output.dims]) {
    let name = dim;
    while (names.includes(name)) name = `${name}'`;
    names.push(name);
  }
  return names;
}

/** Solves output dimensions of a map from equalities with coefficient 1 and removes those rows. */
function inlineOutputs(
  params: readonly string[],
  piece: Piece,
): { system: System; outputs: Map<number, Row> } {
  const system = toSystem(params, piece);
  const outputs = new Map<number, Row>();
  if (!piece.input) return { system, outputs };
  const end = system.fixed;
  const start = end - piece.output.dims.length;
  for (let column = start; column < end; column++) {
    const usable = system.locals.every((d) => !d || d.numerator[column] === 0);
    const row = system.equalities.find(
      (r) => Math.abs(r[column]!) === 1 && onlyOutput(system, r, column, [start, end]),
    );
    if (!usable || !row || usesFreeLocal(system, row)) continue;
    const value = eliminationRow(row, column);
    for (const [k, v] of outputs) outputs.set(k, substitute(v, column, value, "value"));
    outputs.set(column, value);
    substituteEverywhere(system, column, value);
  }
  return { system, outputs };
}

/** Whether a row uses no other output, directly or within a division. */
function onlyOutput(
  system: System,
  row: Row,
  column: number,
  [start, end]: readonly [number, number],
): boolean {
  for (let c = start; c < end; c++) {
    if (c !== column && (row[c] !== 0 || dependsOnColumn(system, row, c))) return false;
  }
  return true;
}

function usesFreeLocal(system: System, row: Row): boolean {
  return system.locals.some((d, i) => d === null && row[system.fixed + i] !== 0);
}

/** Spells rows, with divisions written out. */
class RowSpeller {
  readonly #names: readonly string[];
  readonly #locals: readonly Affine[];
  readonly #free: string[] = [];

  constructor(system: System, names: readonly string[]) {
    this.#names = names;
    const locals: Affine[] = [];
    this.#locals = locals;
    system.locals.forEach((d) => {
      locals.push(d ? floorDivide(this.expression(d.numerator), d.divisor) : this.#freeLocal());
    });
  }

  freeNames(): readonly string[] {
    return this.#free;
  }

  expression(row: Row): Affine {
    const n = this.#names.length;
    const terms: Affine[] = [];
    for (let c = 0; c < row.length - 1; c++) {
      if (row[c] === 0) continue;
      terms.push(scale(row[c]!, c < n ? named(this.#names[c]!) : this.#locals[c - n]!));
    }
    return add(row[row.length - 1]!, ...terms);
  }

  /** Positive terms on the left, negative ones on the right. */
  equality(row: Row): string {
    return this.#comparison(row, "=");
  }

  inequality(row: Row): string {
    return this.#comparison(row, ">=");
  }

  #comparison(row: Row, operator: string): string {
    const { constant, terms } = this.expression(row);
    const left: Affine = { constant: 0, terms: terms.filter((t) => t.coefficient > 0) };
    const right: Affine = {
      constant: constant === 0 ? 0 : -constant,
      terms: terms
        .filter((t) => t.coefficient < 0)
        .map((t) => ({ coefficient: -t.coefficient, atom: t.atom })),
    };
    return `${formatAffine(left)} ${operator} ${formatAffine(right)}`;
  }

  #freeLocal(): Affine {
    let name = `e${this.#free.length}`;
    while (this.#names.includes(name)) name = `${name}'`;
    this.#free.push(name);
    return named(name);
  }
}

function named(name: string): Affine {
  return { constant: 0, terms: [{ coefficient: 1, atom: name }] };
}

/** Inequalities; a lower and an upper bound of one column with unit coefficient become a chain. */
function boundsText(system: System, spell: RowSpeller): string[] {
  const rows = [...system.inequalities];
  const out: string[] = [];
  for (let column = 0; column < system.fixed; column++) {
    const bounds = (sign: number): number[] | undefined =>
      rows.find((r) => r[column] === sign && lastColumnUsed(r, system.fixed) === column);
    const low = bounds(1);
    const high = bounds(-1);
    if (!low || !high) continue;
    rows.splice(rows.indexOf(low), 1);
    rows.splice(rows.indexOf(high), 1);
    out.push(chain(low, high, column, spell));
  }
  return [...out, ...rows.map((r) => spell.inequality(r))];
}

function lastColumnUsed(row: Row, fixed: number): number {
  let last = -1;
  for (let c = 0; c < fixed; c++) if (row[c] !== 0) last = c;
  return last;
}

/** `low <= x <= high`, or `< high + 1` where that is shorter. */
function chain(low: Row, high: Row, column: number, spell: RowSpeller): string {
  const without = (row: Row): Row => row.map((v, c) => (c === column ? 0 : v));
  const lower = scale(-1, spell.expression(without(low)));
  const upper = spell.expression(without(high));
  const x = formatAffine(spell.expression(low.map((_, c) => (c === column ? 1 : 0))));
  if (upper.constant === -1 && upper.terms.length > 0) {
    return `${formatAffine(lower)} <= ${x} < ${formatAffine(add(upper, 1))}`;
  }
  return `${formatAffine(lower)} <= ${x} <= ${formatAffine(upper)}`;
}
