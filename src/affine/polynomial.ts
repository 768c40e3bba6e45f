/**
 * Polynomials with rational coefficients in the columns of a system, just enough for counting:
 * products, substitution of a column by an affine row, and sums of a polynomial over a range of one
 * column by Faulhaber's formula. Exact, on BigInt.
 */
import { invariant } from "../support/invariant.ts";
import type { Row } from "./row.ts";

/** A rational number in lowest terms with a positive denominator. */
export interface Rational {
  readonly n: bigint;
  readonly d: bigint;
}

/** Coefficients by monomial; the key lists the columns of the factors in order, "" for constants. */
export type Polynomial = ReadonlyMap<string, Rational>;

export const one: Polynomial = new Map([["", { n: 1n, d: 1n }]]);

function rational(n: bigint, d: bigint): Rational {
  let [a, b] = [n < 0n ? -n : n, d];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? { n: 0n, d: 1n } : { n: n / a, d: d / a };
}

function plus(a: Polynomial, b: Polynomial): Polynomial {
  const out = new Map(a);
  for (const [key, v] of b) {
    const old = out.get(key);
    const sum = old ? rational(old.n * v.d + v.n * old.d, old.d * v.d) : v;
    if (sum.n === 0n) out.delete(key);
    else out.set(key, sum);
  }
  return out;
}

function times(a: Polynomial, b: Polynomial): Polynomial {
  let out: Polynomial = new Map();
  for (const [ka, va] of a) {
    const part = new Map<string, Rational>();
    for (const [kb, vb] of b) part.set(joinKeys(ka, kb), rational(va.n * vb.n, va.d * vb.d));
    out = plus(out, part);
  }
  return out;
}

function joinKeys(a: string, b: string): string {
  if (a === "" || b === "") return a + b;
  return [...factors(a), ...factors(b)].sort((x, y) => x - y).join();
}

function factors(key: string): number[] {
  return key === "" ? [] : key.split(",").map(Number);
}

function scaled(a: Polynomial, by: Rational): Polynomial {
  const out = new Map<string, Rational>();
  if (by.n === 0n) return out;
  for (const [key, v] of a) out.set(key, rational(v.n * by.n, v.d * by.d));
  return out;
}

function fromRow(row: Row, shift: number): Polynomial {
  const out = new Map<string, Rational>();
  row.forEach((v, c) => {
    const value = c === row.length - 1 ? v + shift : v;
    if (value !== 0) out.set(c === row.length - 1 ? "" : `${c}`, { n: BigInt(value), d: 1n });
  });
  return out;
}

/** sum of `weight` for `column` from low to high (affine rows without the column, low <= high + 1). */
export function sumBetween(weight: Polynomial, column: number, low: Row, high: Row): Polynomial {
  let out: Polynomial = new Map();
  const top = fromRow(high, 0);
  const bottom = fromRow(low, -1);
  for (const [power, rest] of byPower(weight, column)) {
    const range = plus(powerSum(power, top), scaled(powerSum(power, bottom), { n: -1n, d: 1n }));
    out = plus(out, times(rest, range));
  }
  return out;
}

/** The polynomial with a column replaced by an affine row. */
export function substituteColumn(weight: Polynomial, column: number, by: Row): Polynomial {
  const value = fromRow(by, 0);
  let out: Polynomial = new Map();
  for (const [power, rest] of byPower(weight, column)) {
    let part = rest;
    for (let i = 0; i < power; i++) part = times(part, value);
    out = plus(out, part);
  }
  return out;
}

/** The monomials with the columns of their factors, each as often as its power. */
export function monomialsOf(
  p: Polynomial,
): { readonly coefficient: Rational; readonly columns: readonly number[] }[] {
  return [...p].map(([key, coefficient]) => ({ coefficient, columns: factors(key) }));
}

/** weight = sum rest_p * column^p. */
function byPower(weight: Polynomial, column: number): Map<number, Polynomial> {
  const out = new Map<number, Polynomial>();
  for (const [key, value] of weight) {
    const list = factors(key);
    const others = list.filter((c) => c !== column);
    const power = list.length - others.length;
    out.set(power, plus(out.get(power) ?? new Map(), new Map([[others.join(), value]])));
  }
  return out;
}

/**
 * P(n) with P(n) - P(m - 1) = sum of k^p for k = m..n: Faulhaber's formula
 * P(n) = 1/(p+1) * sum_{j=0..p} C(p+1, j) * B_j * n^(p+1-j) with B_1 = +1/2.
 */
function powerSum(p: number, n: Polynomial): Polynomial {
  let out: Polynomial = new Map();
  let power: Polynomial = n;
  for (let j = p; j >= 0; j--) {
    const b = bernoulli(j);
    const factor = rational(binomial(p + 1, j) * b.n, b.d * BigInt(p + 1));
    out = plus(out, scaled(power, factor));
    power = times(power, n);
  }
  return out;
}

function binomial(n: number, k: number): bigint {
  let out = 1n;
  for (let i = 1; i <= k; i++) out = (out * BigInt(n - k + i)) / BigInt(i);
  return out;
}

/** B_m with B_1 = +1/2, by the recurrence sum_{k=0..m} C(m+1, k) B_k = m + 1. */
function bernoulli(m: number): Rational {
  let sum: Rational = { n: BigInt(m + 1), d: 1n };
  for (let k = 0; k < m; k++) {
    const b = bernoulli(k);
    const term = rational(binomial(m + 1, k) * b.n, b.d);
    sum = rational(sum.n * term.d - term.n * sum.d, sum.d * term.d);
  }
  return rational(sum.n, sum.d * BigInt(m + 1));
}

/** The value where each column has the given one: a whole number, since it counts points. */
export function evaluateAt(p: Polynomial, values: readonly bigint[]): bigint {
  let sum: Rational = { n: 0n, d: 1n };
  for (const { coefficient, columns } of monomialsOf(p)) {
    const n = columns.reduce((product, c) => product * values[c]!, coefficient.n);
    sum = rational(sum.n * coefficient.d + n * sum.d, sum.d * coefficient.d);
  }
  invariant(sum.d === 1n, () => "a count is not a whole number");
  return sum.n;
}
