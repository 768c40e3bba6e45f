/**
 * The Omega test in BigInt, for systems whose elimination leaves the range of doubles: the decision
 * alone, by the same steps as omega.ts (which see), with nothing spent on speed.
 */
import type { Row } from "./row.ts";
import type { Work } from "./work.ts";

type BigRow = readonly bigint[];

/** A row formed here costs so many units. */
const rowCost = 20;

/** Whether the system has an integer solution. */
export function isInhabitedExactly(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  work: Work,
): boolean {
  const big = (rows: readonly Row[]): BigRow[] => rows.map((r) => r.map((v) => BigInt(v)));
  return solve(big(equalities), big(inequalities), work);
}

function solve(
  equalities: readonly BigRow[],
  inequalities: readonly BigRow[],
  work: Work,
): boolean {
  let rows = substituteEqualities(equalities, inequalities, work);
  for (;;) {
    rows = rows && tighten(rows);
    if (!rows) return false;
    if (rows.length === 0) return true;
    work.spend(rowCost * rows.length);
    const { column, exact } = chooseColumn(rows);
    if (!exact) return solveInexactly(rows, column, work);
    rows = shadow(rows, column, false, work);
  }
}

function solveInexactly(rows: readonly BigRow[], column: number, work: Work): boolean {
  if (solve([], shadow(rows, column, true, work), work)) return true;
  if (!solve([], shadow(rows, column, false, work), work)) return false;
  let a = 1n;
  for (const row of rows) if (-row[column]! > a) a = -row[column]!;
  for (const bound of rows.filter((r) => r[column]! > 0n)) {
    const b = bound[column]!;
    for (let j = 0n; j * a <= a * b - a - b; j++) {
      work.spend(rowCost);
      const pinned = bound.map((v, c) => (c === bound.length - 1 ? v - j : v));
      if (solve([pinned], rows, work)) return true;
    }
  }
  return false;
}

/** The inequalities once all equalities are used up; undefined when one has no solution. */
function substituteEqualities(
  equalities: readonly BigRow[],
  inequalities: readonly BigRow[],
  work: Work,
): BigRow[] | undefined {
  const pending = [...equalities];
  let rows = [...inequalities];
  for (let row = pending.pop(); row; row = pending.pop()) {
    work.spend(rowCost);
    const g = coefficientGcd(row);
    const constant = row.at(-1)!;
    if (g === 0n ? constant !== 0n : constant % g !== 0n) return undefined;
    if (g === 0n) continue;
    const reduced = row.map((v) => v / g);
    const column = smallestColumn(reduced);
    const a = reduced[column]!;
    const sign = a > 0n ? -1n : 1n;
    const size = abs(a);
    const value = reduced.map((v, c) => {
      if (c === column) return size === 1n ? 0n : 1n;
      return sign * (size === 1n ? v : floorDiv(v, size));
    });
    const replace = (r: BigRow): BigRow =>
      r.map((v, c) => (c === column ? 0n : v) + r[column]! * value[c]!);
    if (size > 1n) pending.push(reduced);
    for (let i = 0; i < pending.length; i++) pending[i] = replace(pending[i]!);
    rows = rows.map(replace);
  }
  return rows;
}

/** Rounded rows, the strongest of parallel ones; undefined when one can never hold. */
function tighten(rows: readonly BigRow[]): BigRow[] | undefined {
  const strongest = new Map<string, BigRow>();
  for (const row of rows) {
    const g = coefficientGcd(row);
    const constant = row.at(-1)!;
    if (g === 0n) {
      if (constant < 0n) return undefined;
      continue;
    }
    const reduced = row.map((v, c) => (c === row.length - 1 ? floorDiv(v, g) : v / g));
    const key = reduced.slice(0, -1).join();
    const old = strongest.get(key);
    if (!old || reduced.at(-1)! < old.at(-1)!) strongest.set(key, reduced);
  }
  return [...strongest.values()];
}

function chooseColumn(rows: readonly BigRow[]): { column: number; exact: boolean } {
  let best = { column: -1, exact: false, cost: Infinity };
  for (let column = 0; column < rows[0]!.length - 1; column++) {
    const lower = rows.filter((r) => r[column]! > 0n);
    const upper = rows.filter((r) => r[column]! < 0n);
    if (lower.length + upper.length === 0) continue;
    const units = (list: readonly BigRow[]): boolean => list.every((r) => abs(r[column]!) === 1n);
    const exact = units(lower) || units(upper);
    const cost = lower.length * upper.length - lower.length - upper.length;
    if ((exact && !best.exact) || (exact === best.exact && cost < best.cost)) {
      best = { column, exact, cost };
    }
  }
  return best;
}

function shadow(rows: readonly BigRow[], column: number, dark: boolean, work: Work): BigRow[] {
  const out = rows.filter((r) => r[column] === 0n);
  for (const low of rows.filter((r) => r[column]! > 0n)) {
    for (const high of rows.filter((r) => r[column]! < 0n)) {
      work.spend(rowCost);
      const a = low[column]!;
      const b = -high[column]!;
      const row = low.map((v, c) => b * v + a * high[c]!);
      if (dark) row[row.length - 1]! -= (a - 1n) * (b - 1n);
      out.push(row);
    }
  }
  return out;
}

function coefficientGcd(row: BigRow): bigint {
  let g = 0n;
  for (let c = 0; c < row.length - 1; c++) {
    let b = abs(row[c]!);
    while (b !== 0n) [g, b] = [b, g % b];
  }
  return g;
}

function smallestColumn(row: BigRow): number {
  let best = -1;
  for (let c = 0; c < row.length - 1; c++) {
    if (row[c] !== 0n && (best < 0 || abs(row[c]!) < abs(row[best]!))) best = c;
  }
  return best;
}

function floorDiv(a: bigint, b: bigint): bigint {
  const q = a / b;
  return a % b < 0n ? q - 1n : q;
}

function abs(v: bigint): bigint {
  return v < 0n ? -v : v;
}
