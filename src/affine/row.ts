/**
 * Rows: integer vectors that stand for `sum row[i] * variable[i] + row[last]`, the currency of every
 * algorithm here. Arithmetic is on doubles with each product and sum checked against 2^53; a row that
 * leaves that range is recomputed in BigInt and divided by the gcd of its coefficients, which brings
 * practically all of them back; what stays too large gives up with "overflow" (never a wrong number).
 */
import { reject } from "../support/diagnostic.ts";
import { GiveUp } from "./work.ts";

export type Row = readonly number[];

const limit = Number.MAX_SAFE_INTEGER;
/** The sum of two products up to this is exact. */
const half = 2 ** 52 - 1;

export function gcd(a: number, b: number): number {
  let x = Math.abs(a);
  let y = Math.abs(b);
  while (y !== 0) {
    const r = x % y;
    x = y;
    y = r;
  }
  return x;
}

/** AFF002 for a value from outside that rows cannot hold. */
export function requireInteger(value: number): void {
  if (Number.isSafeInteger(value)) return;
  reject("AFF002", `${value} is not an integer within ±(2^53 - 1)`, {
    help: "points and parameters have integer values",
  });
}

/** floor(a / b) for b > 0 and safe integers. */
export function floorDiv(a: number, b: number): number {
  const rest = a % b;
  // With the sign of a, what is left never leaves the exact integers.
  const towardsZero = (a - rest) / b;
  return rest < 0 ? towardsZero - 1 : towardsZero;
}

/** a mod b in [0, b) for b > 0. */
export function modulo(a: number, b: number): number {
  const r = a % b;
  return r < 0 ? r + b : r === 0 ? 0 : r;
}

export function isZeroRow(row: Row, columns: number): boolean {
  for (let i = 0; i < columns; i++) if (row[i] !== 0) return false;
  return true;
}

/** The gcd of the coefficients, without the constant; 0 when there are none. */
export function coefficientGcd(row: Row): number {
  let g = 0;
  for (let i = 0; i < row.length - 1; i++) {
    const c = row[i]!;
    if (c === 0) continue;
    if (c === 1 || c === -1) return 1;
    g = g === 0 ? Math.abs(c) : gcd(g, c);
    if (g === 1) return 1;
  }
  return g;
}

/** What a row means: `row >= 0`, `row = 0`, or a value that must not be rescaled. */
export type RowKind = "inequality" | "equality" | "value";

/** a*x + b*y, exactly; an inequality or equality may come back divided by a common factor. */
export function combine(a: number, x: Row, b: number, y: Row, kind: RowKind): number[] {
  const n = x.length;
  const out = new Array<number>(n);
  let large = false;
  for (let i = 0; i < n; i++) {
    const p = a * x[i]!;
    const q = b * y[i]!;
    out[i] = p + q + 0;
    if (p > half || p < -half || q > half || q < -half) large = true;
  }
  return large ? combineExactly(a, x, b, y, kind) : out;
}

function combineExactly(a: number, x: Row, b: number, y: Row, kind: RowKind): number[] {
  const row = x.map((v, i) => BigInt(a) * BigInt(v) + BigInt(b) * BigInt(y[i]!));
  const last = row.length - 1;
  let g = 0n;
  for (let i = 0; i < last; i++) g = bigGcd(g, row[i]!);
  if (kind !== "value" && g > 1n) {
    const constant = row[last]!;
    const rest = ((constant % g) + g) % g;
    // g divides every coefficient: an equality then needs g | constant, an inequality rounds down.
    if (kind === "equality" && rest !== 0n) return [...new Array<number>(last).fill(0), 1];
    for (let i = 0; i < last; i++) row[i]! /= g;
    row[last] = (constant - rest) / g;
  }
  return row.map(toSafeNumber);
}

function bigGcd(a: bigint, b: bigint): bigint {
  let x = a < 0n ? -a : a;
  let y = b < 0n ? -b : b;
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

/** The scalar product, exactly. */
export function dotProduct(a: Row, b: Row): number {
  let sum = 0;
  let worst = 0;
  for (let i = 0; i < a.length; i++) {
    const p = a[i]! * b[i]!;
    sum += p;
    worst = Math.max(worst, Math.abs(p), Math.abs(sum));
  }
  if (worst <= limit) return sum;
  let exact = 0n;
  for (let i = 0; i < a.length; i++) exact += BigInt(a[i]!) * BigInt(b[i]!);
  return toSafeNumber(exact);
}

function toSafeNumber(value: bigint): number {
  const n = Number(value);
  if (!Number.isSafeInteger(n)) throw new GiveUp("overflow");
  return n;
}

/** The row's value at `values`: one per coefficient, the last ones may be missing where those are 0. */
export function evaluateRow(row: Row, values: readonly number[]): number {
  let sum = row[row.length - 1]!;
  let worst = Math.abs(sum);
  for (let i = 0; i < row.length - 1; i++) {
    const c = row[i]!;
    if (c === 0) continue;
    const p = c * values[i]!;
    sum += p;
    worst = Math.max(worst, Math.abs(p), Math.abs(sum));
  }
  if (worst <= limit) return sum;
  let exact = BigInt(row[row.length - 1]!);
  for (let i = 0; i < row.length - 1; i++) {
    if (row[i] !== 0) exact += BigInt(row[i]!) * BigInt(values[i]!);
  }
  return toSafeNumber(exact);
}

/**
 * The inequality divided by the gcd of its coefficients, its constant rounded down (exact over the
 * integers); the row itself where that is 1. undefined when it always holds, null when it never does.
 */
export function tightInequality(row: Row): number[] | undefined | null {
  const g = coefficientGcd(row);
  if (g === 1) return row as number[];
  const last = row.length - 1;
  if (g === 0) return row[last]! >= 0 ? undefined : null;
  const out = new Array<number>(row.length);
  for (let i = 0; i < last; i++) out[i] = row[i]! / g + 0;
  out[last] = floorDiv(row[last]!, g);
  return out;
}

/** The equality divided by the gcd of its coefficients; undefined and null as for inequalities. */
export function tightEquality(row: Row): number[] | undefined | null {
  const g = coefficientGcd(row);
  if (g === 1) return row as number[];
  const last = row.length - 1;
  if (g === 0) return row[last] === 0 ? undefined : null;
  if (row[last]! % g !== 0) return null;
  const out = new Array<number>(row.length);
  for (let i = 0; i <= last; i++) out[i] = row[i]! / g + 0;
  return out;
}

/**
 * Replaces column `column` of `row` by the expression `by` (of the same width; its own entry at
 * `column` may be 0, or 1 for a change of variable), exactly. Rescales as `combine` may.
 */
export function substitute(row: Row, column: number, by: Row, kind: RowKind): number[] {
  const c = row[column]!;
  if (c === 0) return row as number[];
  const n = row.length;
  const out = new Array<number>(n);
  let large = false;
  for (let i = 0; i < n; i++) {
    const p = c * by[i]!;
    const q = i === column ? 0 : row[i]!;
    out[i] = p + q + 0;
    if (p > half || p < -half || q > half || q < -half) large = true;
  }
  if (!large) return out;
  const cleared = row.slice();
  cleared[column] = 0;
  return combineExactly(1, cleared, c, by, kind);
}

/** -1 - row: the integer negation of `row >= 0`. */
export function negateInequality(row: Row): number[] {
  const out = negateRow(row);
  out[out.length - 1]! -= 1;
  return out;
}

export function negateRow(row: Row): number[] {
  const out = new Array<number>(row.length);
  for (let i = 0; i < row.length; i++) out[i] = 0 - row[i]!;
  return out;
}

export function zeroRow(width: number): number[] {
  const row = new Array<number>(width);
  for (let i = 0; i < width; i++) row[i] = 0;
  return row;
}

/** A row that is `value` at `column` and zero elsewhere. */
export function unitRow(width: number, column: number, value = 1): number[] {
  const row = zeroRow(width);
  row[column] = value;
  return row;
}
