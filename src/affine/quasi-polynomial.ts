/**
 * Counts as values: sums of polynomials with rational coefficients in parameters and floors of them,
 * each under a condition on the parameters. The count at given parameters is the sum of the terms
 * whose condition holds. Printed in the manner of isl's quasi-polynomials.
 */
import { invariant } from "../support/invariant.ts";
import { contains } from "./compare.ts";
import {
  type Affine,
  add,
  affine,
  evaluateAffine,
  floorDivide,
  formatAffine,
  scale,
} from "./expression.ts";
import { formatPiece } from "./notation-print.ts";
import { projectOnto, toPiece } from "./piece.ts";
import { monomialsOf, type Rational } from "./polynomial.ts";
import { type Row, requireInteger } from "./row.ts";
import type { CountPart } from "./symbolic-count.ts";
import type { System } from "./system.ts";
import type { IntegerSet, Tuple } from "./types.ts";
import { type Answer, answer, GiveUp } from "./work.ts";

export interface Count {
  readonly params: readonly string[];
  readonly terms: readonly CountTerm[];
}

export interface CountTerm {
  /** Where the term counts, `[N] -> { [] : N >= 1 }`. */
  readonly where: IntegerSet;
  readonly monomials: readonly Monomial[];
}

/** coefficient * product of factors, each a parameter or a floor. */
export interface Monomial {
  readonly coefficient: Rational;
  readonly factors: readonly Affine[];
}

const noDims: Tuple = { name: "", dims: [] };

/** The sum of the parts; those with equal conditions become one term. */
export function countOfParts(params: readonly string[], parts: readonly CountPart[]): Count {
  const terms = new Map<string, { where: IntegerSet; monomials: Map<string, Monomial> }>();
  for (const part of parts) {
    const columns = params.map((_, i) => i);
    const piece = toPiece({ input: undefined, output: noDims }, projectOnto(part.system, columns));
    if (!piece) continue;
    const key = formatPiece(params, piece);
    const term = terms.get(key) ?? {
      where: { kind: "set", params, pieces: [piece] },
      monomials: new Map(),
    };
    terms.set(key, term);
    addMonomials(term.monomials, part, params);
  }
  const sums = [...terms.values()].map(({ where, monomials }) => ({
    where,
    monomials: [...monomials.values()].filter((m) => m.coefficient.n !== 0n),
  }));
  return { params, terms: sums.filter((t) => t.monomials.length > 0) };
}

function addMonomials(
  sum: Map<string, Monomial>,
  { system, weight }: CountPart,
  params: readonly string[],
): void {
  const atoms = atomsOf(system, params);
  for (const { coefficient, columns } of monomialsOf(weight)) {
    const factors = columns.map((c) => atoms.get(c)!).sort(bySpelling);
    const key = factors.map(formatAffine).join("*");
    const old = sum.get(key);
    const total = old ? addRationals(old.coefficient, coefficient) : coefficient;
    sum.set(key, { coefficient: total, factors });
  }
}

function bySpelling(a: Affine, b: Affine): number {
  const [x, y] = [formatAffine(a), formatAffine(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** What each column of a part stands for. */
function atomsOf({ fixed, locals }: System, params: readonly string[]): Map<number, Affine> {
  const atoms = new Map<number, Affine>(params.map((p, i) => [i, affine(p)]));
  const spelled = (row: Row): Affine => {
    const terms = row.slice(0, -1).flatMap((v, c) => (v === 0 ? [] : [scale(v, atoms.get(c)!)]));
    return add(row.at(-1)!, ...terms);
  };
  locals.forEach((d, i) => {
    if (d) atoms.set(fixed + i, floorDivide(spelled(d.numerator), d.divisor));
  });
  return atoms;
}

function addRationals(a: Rational, b: Rational): Rational {
  return { n: a.n * b.d + b.n * a.d, d: a.d * b.d };
}

/** The number of points at these parameter values. Throws AFF002 for one that is no exact integer. */
export function evaluateCount(
  count: Count,
  params: Readonly<Record<string, number>>,
): Answer<number> {
  for (const value of Object.values(params)) requireInteger(value);
  return answer(() => {
    let total: Rational = { n: 0n, d: 1n };
    for (const { where, monomials } of count.terms) {
      const inside = contains(where, params, []);
      if (inside === "unknown") throw new GiveUp("budget");
      if (inside === "no") continue;
      for (const m of monomials) total = addRationals(total, monomialAt(m, params));
    }
    invariant(total.n % total.d === 0n, () => "a count is not a whole number");
    const value = Number(total.n / total.d);
    if (!Number.isSafeInteger(value)) throw new GiveUp("overflow");
    return value;
  });
}

function monomialAt(
  { coefficient, factors }: Monomial,
  params: Readonly<Record<string, number>>,
): Rational {
  const value = factors.reduce((v, f) => v * BigInt(evaluateAffine(f, params)), coefficient.n);
  return { n: value, d: coefficient.d };
}

/** `[N] -> { 1/2*N + 1/2*N^2 : N >= 1 }` */
export function formatCount(count: Count): string {
  const params = count.params.length > 0 ? `[${count.params.join(", ")}] -> ` : "";
  const terms = count.terms.map(({ where, monomials }) => {
    const condition = formatPiece(count.params, where.pieces[0]!).replace(/^\[\]( : )?/, "");
    const value = monomials.map(formatMonomial).join(" + ").replaceAll("+ -", "- ");
    return condition === "" ? value : `${value} : ${condition}`;
  });
  return terms.length === 0 ? `${params}{ 0 }` : `${params}{ ${terms.join("; ")} }`;
}

function formatMonomial({ coefficient, factors }: Monomial): string {
  const { n, d } = lowestTerms(coefficient);
  const number = d === 1n ? `${n}` : `${n}/${d}`;
  if (factors.length === 0) return number;
  const powers = new Map<string, number>();
  for (const f of factors) powers.set(formatAffine(f), (powers.get(formatAffine(f)) ?? 0) + 1);
  const product = [...powers].map(([f, p]) => (p === 1 ? wrapped(f) : `${wrapped(f)}^${p}`));
  return number === "1" ? product.join("*") : `${number}*${product.join("*")}`;
}

/** A floor that carries its whole part along, `1 + floor(N/2)`, is a sum within a product. */
function wrapped(factor: string): string {
  return factor.includes(" + ") || factor.includes(" - ") ? `(${factor})` : factor;
}

function lowestTerms({ n, d }: Rational): Rational {
  let [a, b] = [n < 0n ? -n : n, d];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? { n: 0n, d: 1n } : { n: n / a, d: d / a };
}
