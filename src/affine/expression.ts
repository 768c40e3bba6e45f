/**
 * Quasi-affine expressions over named variables: integer combinations of names and of floors
 * `floor(e / d)` of such expressions, in a canonical form (terms merged, sorted by their spelling,
 * no zero coefficients), so that equal spelling means equal expression. Names are resolved against
 * dimensions and parameters when an expression enters a set or map (build.ts).
 */
import { reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { floorDiv, gcd, modulo, requireInteger } from "./row.ts";

/** `constant + sum coefficient * atom`. */
export interface Affine {
  readonly constant: number;
  readonly terms: readonly Term[];
}

export interface Term {
  readonly coefficient: number;
  readonly atom: Atom;
}

/** A variable's name, or floor(numerator / divisor) with a divisor of at least 2. */
export type Atom = string | Floor;

export interface Floor {
  readonly numerator: Affine;
  readonly divisor: number;
  /** Its spelling, by which terms are sorted and merged. */
  readonly key: string;
}

/** What the building functions take: a number, a variable's name, or an expression. */
export type AffineLike = number | string | Affine;

const variableName = /^[A-Za-z_][\w.$']*$/;

export function affine(value: AffineLike): Affine {
  if (typeof value === "number") {
    requireInteger(value);
    return { constant: value === 0 ? 0 : value, terms: [] };
  }
  if (typeof value !== "string") return value;
  invariant(variableName.test(value), () => `"${value}" is not a variable name`);
  return { constant: 0, terms: [{ coefficient: 1, atom: value }] };
}

/** The sum of any number of expressions. */
export function add(...values: readonly AffineLike[]): Affine {
  return addAll(values);
}

export function addAll(values: readonly AffineLike[]): Affine {
  if (values.length > fewValues) return addMany(values);
  let sum = affine(values[0] ?? 0);
  for (let i = 1; i < values.length; i++) sum = addTwo(sum, affine(values[i]!));
  return sum;
}

/** More values than this are added up by a table. */
const fewValues = 16;

function addMany(values: readonly AffineLike[]): Affine {
  let constant = 0;
  const sums = new Map<string, Term>();
  for (const value of values) {
    const e = affine(value);
    constant = checked(constant + e.constant);
    for (const { coefficient, atom } of e.terms) {
      const key = atomKey(atom);
      const before = sums.get(key)?.coefficient ?? 0;
      sums.set(key, { coefficient: checked(before + coefficient), atom });
    }
  }
  const kept = [...sums].filter(([, t]) => t.coefficient !== 0);
  kept.sort(([a], [b]) => (a < b ? -1 : 1));
  return { constant, terms: kept.map(([, t]) => t) };
}

/** Both lists of terms are sorted, so they are merged. */
function addTwo(a: Affine, b: Affine): Affine {
  const constant = checked(a.constant + b.constant);
  if (b.terms.length === 0) return { constant, terms: a.terms };
  const terms: Term[] = [];
  let next = 0;
  for (const term of b.terms) {
    const key = atomKey(term.atom);
    while (next < a.terms.length && atomKey(a.terms[next]!.atom) < key)
      terms.push(a.terms[next++]!);
    const same = a.terms[next];
    if (same === undefined || atomKey(same.atom) !== key) {
      terms.push(term);
      continue;
    }
    next++;
    const coefficient = checked(same.coefficient + term.coefficient);
    if (coefficient !== 0) terms.push({ coefficient, atom: term.atom });
  }
  while (next < a.terms.length) terms.push(a.terms[next++]!);
  return { constant, terms };
}

/** A coefficient that can be represented, or AFF002: the nearest `attempt` or budget makes it an answer. */
function checked(value: number): number {
  if (!Number.isSafeInteger(value)) {
    reject("AFF002", `an affine coefficient of ${value} leaves ±(2^53 - 1)`, {
      help: "use smaller factors",
    });
  }
  return value === 0 ? 0 : value;
}

export function scale(factor: number, value: AffineLike): Affine {
  const e = affine(value);
  if (factor === 0) return affine(0);
  return {
    constant: checked(e.constant * factor),
    terms: e.terms.map((t) => ({ coefficient: checked(t.coefficient * factor), atom: t.atom })),
  };
}

/** a - b. */
export function minus(a: AffineLike, b: AffineLike): Affine {
  return add(a, scale(-1, b));
}

/** floor(value / divisor), with whole multiples of the divisor taken out. */
export function floorDivide(value: AffineLike, divisor: number): Affine {
  requireInteger(divisor);
  if (divisor < 1) reject("AFF001", `division by ${divisor}`, { help: "divide by at least 1" });
  const e = affine(value);
  const whole: Term[] = [];
  const rest: Term[] = [];
  for (const { coefficient, atom } of e.terms) {
    const left = modulo(coefficient, divisor);
    if (left !== 0) rest.push({ coefficient: left, atom });
    if (left !== coefficient) whole.push({ coefficient: (coefficient - left) / divisor, atom });
  }
  const constant = modulo(e.constant, divisor);
  const quotient: Affine = { constant: (e.constant - constant) / divisor, terms: whole };
  if (rest.length === 0) return quotient;
  const atom = reducedFloor({ constant, terms: rest }, divisor);
  return addTwo(quotient, { constant: 0, terms: [{ coefficient: 1, atom }] });
}

/** Divides numerator and divisor by their common factor (the constant rounds down, exactly). */
function reducedFloor(numerator: Affine, divisor: number): Floor {
  let g = divisor;
  for (const t of numerator.terms) g = gcd(g, t.coefficient);
  if (g === 1) return makeFloor(numerator, divisor);
  const reduced: Affine = {
    constant: floorDiv(numerator.constant, g),
    terms: numerator.terms.map((t) => ({ coefficient: t.coefficient / g, atom: t.atom })),
  };
  return makeFloor(reduced, divisor / g);
}

function makeFloor(numerator: Affine, divisor: number): Floor {
  return { numerator, divisor, key: `floor((${formatAffine(numerator)})/${divisor})` };
}

/** ceil(value / divisor). */
export function ceilDivide(value: AffineLike, divisor: number): Affine {
  return floorDivide(add(value, divisor - 1), divisor);
}

/** value - divisor * floor(value / divisor), in [0, divisor). */
export function remainder(value: AffineLike, divisor: number): Affine {
  return minus(value, scale(divisor, floorDivide(value, divisor)));
}

export function affineEquals(a: Affine, b: Affine): boolean {
  return formatAffine(a) === formatAffine(b);
}

/** All variable names, in order of first use. */
export function variablesOf(value: AffineLike): string[] {
  const seen = new Set<string>();
  const visit = (e: Affine): void => {
    for (const { atom } of e.terms) {
      if (typeof atom === "string") seen.add(atom);
      else visit(atom.numerator);
    }
  };
  visit(affine(value));
  return [...seen];
}

/** The expression with variables replaced; names without an entry stay. */
export function replaceVariables(
  value: AffineLike,
  by: Readonly<Record<string, AffineLike>>,
): Affine {
  const e = affine(value);
  const parts = e.terms.map(({ coefficient, atom }) => {
    if (typeof atom === "string") return scale(coefficient, by[atom] ?? atom);
    return scale(coefficient, floorDivide(replaceVariables(atom.numerator, by), atom.divisor));
  });
  return addAll([e.constant, ...parts]);
}

/** The value at given numbers for all variables. */
export function evaluateAffine(
  value: AffineLike,
  numbers: Readonly<Record<string, number>>,
): number {
  const e = affine(value);
  let sum = e.constant;
  let largest = Math.abs(sum);
  for (const { coefficient, atom } of e.terms) {
    const part = coefficient * atomValue(atom, numbers);
    sum += part;
    largest = Math.max(largest, Math.abs(part), Math.abs(sum));
  }
  if (!(largest <= Number.MAX_SAFE_INTEGER)) return evaluateExactly(e, numbers);
  return sum === 0 ? 0 : sum;
}

/** The value where parts of it leave what numbers hold exactly; AFF002 where it does so itself. */
function evaluateExactly(
  { constant, terms }: Affine,
  numbers: Readonly<Record<string, number>>,
): number {
  let sum = BigInt(constant);
  for (const { coefficient, atom } of terms) {
    sum += BigInt(coefficient) * BigInt(atomValue(atom, numbers));
  }
  const value = Number(sum);
  if (!Number.isSafeInteger(value)) {
    reject("AFF002", `a value of ${sum} leaves ±(2^53 - 1)`, {
      help: "use smaller coefficients or a point nearer to 0",
    });
  }
  return value;
}

function atomValue(atom: Atom, numbers: Readonly<Record<string, number>>): number {
  if (typeof atom !== "string") {
    return floorDiv(evaluateAffine(atom.numerator, numbers), atom.divisor);
  }
  const value = numbers[atom];
  invariant(value !== undefined, () => `no value for variable ${atom}`);
  return value;
}

/** The spelling of an atom, which tells atoms apart. */
export function atomKey(atom: Atom): string {
  return typeof atom === "string" ? atom : atom.key;
}

/** isl's notation, `2i - j + floor((k + 1)/4) - 3`. */
export function formatAffine(e: Affine): string {
  let text = "";
  for (const { coefficient, atom } of e.terms) {
    const size = Math.abs(coefficient);
    const key = atomKey(atom);
    const spelled =
      size === 1 ? key : typeof atom === "string" ? `${size}${key}` : `${size}*${key}`;
    text += joinTerm(text, coefficient < 0, spelled);
  }
  if (e.constant !== 0 || text === "") {
    text += joinTerm(text, e.constant < 0, String(Math.abs(e.constant)));
  }
  return text;
}

function joinTerm(before: string, negative: boolean, spelled: string): string {
  if (before === "") return negative ? `-${spelled}` : spelled;
  return negative ? ` - ${spelled}` : ` + ${spelled}`;
}
