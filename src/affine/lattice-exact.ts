/**
 * Using up equalities where the numbers in between leave the range of doubles: the same changes of columns
 * as in omega.ts, in BigInt, and then a basis in which the rows are small again (lattice-plan.ts makes it).
 */
import type { Row } from "./row.ts";

export type ExactRow = readonly bigint[];

/** Rows at least 0 and images over free integers. */
export interface ExactLattice {
  readonly rows: readonly ExactRow[];
  readonly images: readonly ExactRow[];
}

export function exactRows(rows: readonly Row[]): ExactRow[] {
  return rows.map((r) => r.map(BigInt));
}

/** Rows and images where the equalities hold, without the columns that they give; undefined: nowhere. */
export function solvedExactly(
  equalities: readonly ExactRow[],
  lattice: ExactLattice,
): ExactLattice | undefined {
  let pending = equalities.slice();
  let { rows, images } = lattice;
  for (let next = pending.pop(); next; next = pending.pop()) {
    const row = divided(next);
    if (row === undefined) return undefined;
    const column = smallest(row);
    if (column < 0) continue;
    const value = standIn(row, column);
    if (magnitude(row[column]!) !== 1n) pending.push(row);
    const change = (r: ExactRow): ExactRow => substituted(r, column, value);
    pending = pending.map(change);
    rows = rows.map(change);
    images = images.map(change);
  }
  const width = rows[0]?.length ?? images[0]?.length ?? 1;
  const all = [...rows, ...images];
  const used = Array.from({ length: width }, (_, c) => c).filter(
    (c) => c === width - 1 || all.some((r) => r[c] !== 0n),
  );
  const cut = (r: ExactRow): ExactRow => used.map((c) => r[c]!);
  return { rows: rows.map(cut), images: images.map(cut) };
}

/** Divided by what the coefficients share; undefined where the constant does not. */
function divided(row: ExactRow): ExactRow | undefined {
  let g = 0n;
  for (let c = 0; c < row.length - 1; c++) g = greatestCommon(g, row[c]!);
  const constant = row.at(-1)!;
  if (g === 0n) return constant === 0n ? row : undefined;
  return constant % g === 0n ? row.map((v) => v / g) : undefined;
}

function greatestCommon(a: bigint, b: bigint): bigint {
  let [x, y] = [magnitude(a), magnitude(b)];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

function magnitude(v: bigint): bigint {
  return v < 0n ? -v : v;
}

/** -1 where there is none. */
function smallest(row: ExactRow): number {
  let best = -1;
  for (let c = 0; c < row.length - 1; c++) {
    if (row[c] === 0n) continue;
    if (best < 0 || magnitude(row[c]!) < magnitude(row[best]!)) best = c;
  }
  return best;
}

/** What stands for the column: the rest where its coefficient is a unit, else a change of variable. */
function standIn(row: ExactRow, column: number): ExactRow {
  const a = row[column]!;
  const size = magnitude(a);
  return row.map((v, c) => {
    if (c === column) return size === 1n ? 0n : 1n;
    const quotient = floorDivided(v, size);
    return a > 0n ? -quotient : quotient;
  });
}

function floorDivided(a: bigint, b: bigint): bigint {
  const rest = a % b;
  return (a - (rest < 0n ? rest + b : rest)) / b;
}

function substituted(row: ExactRow, column: number, by: ExactRow): ExactRow {
  const times = row[column]!;
  if (times === 0n) return row;
  return row.map((v, c) => (c === column ? 0n : v) + times * by[c]!);
}

/** An inequality divided by what its coefficients share, rounded inwards. */
export function tightened(row: ExactRow): ExactRow {
  let g = 0n;
  for (let c = 0; c < row.length - 1; c++) g = greatestCommon(g, row[c]!);
  return g > 1n ? row.map((v) => floorDivided(v, g)) : row;
}
