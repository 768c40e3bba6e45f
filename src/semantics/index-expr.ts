/**
 * Integer expressions over named variables: symbolic tensor dimensions, loop extents, access maps,
 * guards, buffer addresses. One language from the graph to the emitters.
 *
 * A value is kept in canonical form: a constant plus a sum of integer coefficients times products of
 * atoms, where an atom is a variable or an opaque floorDiv, mod, min or max whose arguments are again
 * canonical. Two expressions that are equal as polynomials over their atoms therefore have the same
 * `key`, which is also the text form. Division rounds towards minus infinity and `mod` has the sign
 * of its (positive) divisor, as in isl. Coefficients are exact integers below 2^53; overflow of a
 * constant is an InternalError, sizes from files are range-checked by the importer.
 *
 * Reasoning with ranges (bounds, proofs, simplification) is in index-range.ts, parsing in
 * index-text.ts.
 */
import { InternalError, invariant } from "../support/invariant.ts";

export type IndexAtom =
  | { readonly kind: "variable"; readonly name: string; readonly key: string }
  | {
      readonly kind: "floorDiv" | "mod";
      readonly numerator: IndexExpr;
      readonly denominator: IndexExpr;
      readonly key: string;
    }
  | {
      readonly kind: "min" | "max";
      /** Two or more, sorted by key, none constant but possibly the first. */
      readonly operands: readonly IndexExpr[];
      readonly key: string;
    };

/** `coefficient` (non-zero) times the product of one or more atoms, sorted by key. */
export interface IndexTerm {
  readonly coefficient: number;
  readonly atoms: readonly IndexAtom[];
  readonly key: string;
}

export interface IndexExpr {
  readonly constant: number;
  /** Sorted by key, no two with the same key. */
  readonly terms: readonly IndexTerm[];
  /** Canonical text; equal keys mean equal expressions. */
  readonly key: string;
}

/** What every function below accepts where an expression is wanted. */
export type IndexLike = IndexExpr | number;

export function constant(value: number): IndexExpr {
  if (!Number.isSafeInteger(value)) overflow(`index constant ${value}`);
  return { constant: value, terms: [], key: String(value) };
}

export function variable(name: string): IndexExpr {
  return fromAtom({ kind: "variable", name, key: name });
}

/** The expression for a number or an expression. */
export function toIndex(value: IndexLike): IndexExpr {
  return typeof value === "number" ? constant(value) : value;
}

/** The value of a constant expression, else undefined. */
export function constantValue(value: IndexLike): number | undefined {
  if (typeof value === "number") return value;
  return value.terms.length === 0 ? value.constant : undefined;
}

/** The name of an expression that is one variable and nothing else, as most extents are, else undefined. */
export function variableName({ constant, terms }: IndexExpr): string | undefined {
  if (constant !== 0 || terms.length !== 1) return undefined;
  const { coefficient, atoms } = terms[0]!;
  const atom = atoms[0]!;
  return coefficient === 1 && atoms.length === 1 && atom.kind === "variable"
    ? atom.name
    : undefined;
}

export function indexEquals(a: IndexLike, b: IndexLike): boolean {
  return toIndex(a).key === toIndex(b).key;
}

export function add(...parts: readonly IndexLike[]): IndexExpr {
  let total = 0;
  let only: IndexExpr | undefined;
  let terms: IndexTerm[] | undefined;
  for (const part of parts) {
    if (typeof part === "number") {
      total += part;
      continue;
    }
    total += part.constant;
    if (part.terms.length === 0) continue;
    if (!only) only = part;
    else terms = terms ? pushAll(terms, part.terms) : [...only.terms, ...part.terms];
  }
  if (terms) return build(total, terms);
  if (!only) return constant(total);
  // The terms of one summand are in order already.
  return total === only.constant ? only : sumOf(total, only.terms);
}

export function negate(a: IndexLike): IndexExpr {
  return scale(toIndex(a), -1);
}

export function sub(a: IndexLike, b: IndexLike): IndexExpr {
  return add(a, negate(b));
}

export function mul(...parts: readonly IndexLike[]): IndexExpr {
  let product: IndexExpr | undefined;
  for (const part of parts) {
    const factor = toIndex(part);
    product = product ? mulTwo(product, factor) : factor;
  }
  return product ?? constant(1);
}

/** floor(a / b); `b` must be positive wherever the expression is evaluated. */
export function floorDiv(a: IndexLike, b: IndexLike): IndexExpr {
  const numerator = toIndex(a);
  const denominator = toIndex(b);
  const divisor = constantValue(denominator);
  if (divisor === undefined) return floorDivSymbolic(numerator, denominator);
  invariant(divisor > 0, () => `floorDiv by ${divisor}`);
  if (divisor === 1) return numerator;
  const [whole, rest] = splitMultiples(numerator, divisor);
  if (rest.terms.length === 0) return add(whole, Math.floor(rest.constant / divisor));
  // floor(floor(x / p) / q) = floor(x / (p q)); the constant inside stays where it is.
  const inner = rest.terms.length === 1 && rest.constant === 0 ? rest.terms[0]! : undefined;
  const atom = inner?.coefficient === 1 && inner.atoms.length === 1 ? inner.atoms[0]! : undefined;
  if (atom?.kind === "floorDiv" && constantValue(atom.denominator) !== undefined) {
    return add(whole, floorDiv(atom.numerator, mul(atom.denominator, divisor)));
  }
  const common = reduceFraction(rest, divisor);
  if (common) return add(whole, floorDiv(common[0], common[1]));
  return add(whole, divisionAtom("floorDiv", rest, denominator));
}

/** ceil(a / b) for positive `b`. */
export function ceilDiv(a: IndexLike, b: IndexLike): IndexExpr {
  return floorDiv(add(a, b, -1), b);
}

/** a - b * floor(a / b) for positive `b`. */
export function mod(a: IndexLike, b: IndexLike): IndexExpr {
  const numerator = toIndex(a);
  const denominator = toIndex(b);
  const divisor = constantValue(denominator);
  if (divisor === undefined) {
    return numerator.key === denominator.key || numerator.key === "0"
      ? constant(0)
      : divisionAtom("mod", numerator, denominator);
  }
  invariant(divisor > 0, () => `mod by ${divisor}`);
  if (divisor === 1) return constant(0);
  const rest = splitMultiples(numerator, divisor)[1];
  if (rest.terms.length === 0) return constant(positiveMod(rest.constant, divisor));
  return divisionAtom("mod", rest, denominator);
}

export function min(...parts: readonly IndexLike[]): IndexExpr {
  return extremum("min", parts);
}

export function max(...parts: readonly IndexLike[]): IndexExpr {
  return extremum("max", parts);
}

/** What takes the place of variables: a map, or what is worked out when it is asked for. */
export interface IndexBindings {
  readonly get: (name: string) => IndexLike | undefined;
}

/** Replaces variables; names absent from `bindings` stay. */
export function substitute(expr: IndexExpr, bindings: IndexBindings): IndexExpr {
  const { terms } = expr;
  const first = terms[0];
  if (!first) return expr;
  if (terms.length === 1 && expr.constant === 0) return substituteTerm(first, bindings);
  let total = expr.constant;
  let isSame = true;
  const found: IndexTerm[] = [];
  for (const term of terms) {
    const atom = term.atoms.length === 1 ? term.atoms[0]! : undefined;
    const bound =
      atom?.kind === "variable" ? bindings.get(atom.name) : substituteTerm(term, bindings);
    if (bound === undefined) {
      found.push(term);
      continue;
    }
    isSame = false;
    const factor = atom?.kind === "variable" ? term.coefficient : 1;
    if (typeof bound === "number") {
      total += exactProduct(bound, factor);
    } else {
      total += exactProduct(bound.constant, factor);
      pushScaled(found, bound.terms, factor);
    }
  }
  return isSame ? expr : build(total, found);
}

/** Terms times a factor that is not zero. */
function pushScaled(into: IndexTerm[], terms: readonly IndexTerm[], factor: number): void {
  for (const term of terms) into.push(factor === 1 ? term : withCoefficient(term, factor));
}

function withCoefficient({ coefficient, atoms, key }: IndexTerm, factor: number): IndexTerm {
  return { coefficient: coefficient * factor, atoms, key };
}

function pushAll(into: IndexTerm[], terms: readonly IndexTerm[]): IndexTerm[] {
  for (const term of terms) into.push(term);
  return into;
}

function exactProduct(value: number, factor: number): number {
  const product = value * factor;
  if (!Number.isSafeInteger(product)) overflow(`index constant ${product}`);
  return product;
}

function substituteTerm({ coefficient, atoms }: IndexTerm, bindings: IndexBindings): IndexExpr {
  let product = substituteAtom(atoms[0]!, bindings);
  if (coefficient !== 1) product = scale(product, coefficient);
  for (let i = 1; i < atoms.length; i++) {
    product = mulTwo(substituteAtom(atoms[i]!, bindings), product);
  }
  return product;
}

/** The value under an assignment of every variable; an unbound variable is a bug of the caller. */
export function evaluate(expr: IndexExpr, bindings: ReadonlyMap<string, number>): number {
  let total = expr.constant;
  for (const term of expr.terms) {
    let product = term.coefficient;
    for (const atom of term.atoms) product *= evaluateAtom(atom, bindings);
    total += product;
  }
  return total;
}

/** Adds the names of the variables of `expr` to `into`, in order of first appearance. */
export function collectVariables(expr: IndexExpr, into: Set<string>): void {
  for (const term of expr.terms) {
    for (const atom of term.atoms) {
      if (atom.kind === "variable") into.add(atom.name);
      else for (const part of atomOperands(atom)) collectVariables(part, into);
    }
  }
}

export function variablesOf(...exprs: readonly IndexExpr[]): Set<string> {
  const names = new Set<string>();
  for (const expr of exprs) collectVariables(expr, names);
  return names;
}

/** The sub-expressions of an atom: none for a variable. */
export function atomOperands(atom: IndexAtom): readonly IndexExpr[] {
  if (atom.kind === "variable") return [];
  if ("operands" in atom) return atom.operands;
  return [atom.numerator, atom.denominator];
}

/**
 * The expression as `coefficient * name + rest` with `rest` free of `name`; undefined when `name`
 * stands inside a product or an opaque atom.
 */
export function splitLinear(
  expr: IndexExpr,
  name: string,
): { readonly coefficient: number; readonly rest: IndexExpr } | undefined {
  const coefficient = linearCoefficient(expr, name);
  if (coefficient === undefined) return undefined;
  if (coefficient === 0) return { coefficient, rest: expr };
  const rest = expr.terms.filter((term) => term.key !== name);
  return { coefficient, rest: sumOf(expr.constant, rest) };
}

/** What `name` is multiplied by in an expression that is linear in it; 0 where it does not occur. */
export function linearCoefficient(expr: IndexExpr, name: string): number | undefined {
  let coefficient = 0;
  for (const term of expr.terms) {
    if (term.key === name) coefficient = term.coefficient;
    else if (mentionsIn(term, name)) return undefined;
  }
  return coefficient;
}

/** Whether a variable occurs in an expression. */
export function mentionsVariable(expr: IndexExpr, name: string): boolean {
  for (const term of expr.terms) if (mentionsIn(term, name)) return true;
  return false;
}

/** Rebuilds an atom around new operands, simplifying as the constructors do. */
export function rebuildAtom(atom: IndexAtom, operands: readonly IndexExpr[]): IndexExpr {
  switch (atom.kind) {
    case "variable":
      return fromAtom(atom);
    case "floorDiv":
      return floorDiv(operands[0]!, operands[1]!);
    case "mod":
      return mod(operands[0]!, operands[1]!);
    case "min":
      return min(...operands);
    case "max":
      return max(...operands);
  }
}

export function positiveMod(a: number, b: number): number {
  return a - b * Math.floor(a / b);
}

function mentionsIn({ atoms }: IndexTerm, name: string): boolean {
  for (const atom of atoms) {
    if (atom.kind === "variable") {
      if (atom.name === name) return true;
    } else {
      for (const part of atomOperands(atom)) if (mentionsVariable(part, name)) return true;
    }
  }
  return false;
}

function fromAtom(atom: IndexAtom): IndexExpr {
  return { constant: 0, terms: [{ coefficient: 1, atoms: [atom], key: atom.key }], key: atom.key };
}

function divisionAtom(
  kind: "floorDiv" | "mod",
  numerator: IndexExpr,
  denominator: IndexExpr,
): IndexExpr {
  const key = `${kind}(${numerator.key}, ${denominator.key})`;
  return fromAtom({ kind, numerator, denominator, key });
}

/** The sum of a constant and of terms in any order. */
export function fromTerms(total: number, terms: readonly IndexTerm[]): IndexExpr {
  return build(total, terms);
}

/** Sums, merges equal keys, drops zeros and sorts: the only place that makes an IndexExpr of terms. */
function build(total: number, terms: readonly IndexTerm[]): IndexExpr {
  const merged: IndexTerm[] = [];
  let zeros = false;
  for (const term of terms) {
    // Terms mostly come sorted: the place is looked for from the end.
    let at = merged.length;
    while (at > 0 && merged[at - 1]!.key > term.key) at--;
    const seen = at > 0 ? merged[at - 1]! : undefined;
    if (seen?.key !== term.key) {
      if (at === merged.length) merged.push(term);
      else merged.splice(at, 0, term);
      zeros ||= term.coefficient === 0;
    } else {
      const coefficient = seen.coefficient + term.coefficient;
      merged[at - 1] = { coefficient, atoms: seen.atoms, key: seen.key };
      zeros ||= coefficient === 0;
    }
  }
  return sumOf(total, zeros ? merged.filter((t) => t.coefficient !== 0) : merged);
}

/** The expression of terms that are sorted, distinct and not zero. */
function sumOf(total: number, terms: readonly IndexTerm[]): IndexExpr {
  if (terms.length === 0) return constant(total);
  if (!Number.isSafeInteger(total)) overflow(`index constant ${total}`);
  for (const { coefficient, key } of terms) {
    if (!Number.isSafeInteger(coefficient)) overflow(`coefficient of ${key}`);
  }
  return { constant: total, terms, key: printSum(total, terms) };
}

/** A coefficient left the exact integers: our bug, unless what we computed with came from outside. */
class IndexOverflow extends InternalError {}

function overflow(what: string): never {
  throw new IndexOverflow(`${what} is no integer below 2^53`);
}

/** The result of computing with expressions from outside; what `refuse` gives where one overflows. */
export function withinExactIntegers<T>(compute: () => T, refuse: (why: string) => T): T {
  try {
    return compute();
  } catch (error) {
    if (!(error instanceof IndexOverflow)) throw error;
    return refuse(error.message);
  }
}

function printSum(total: number, terms: readonly IndexTerm[]): string {
  let text = "";
  for (const { coefficient, key } of terms) {
    const size = Math.abs(coefficient);
    const spelled = size === 1 ? key : `${size}*${key}`;
    if (text === "") text = coefficient < 0 ? `-${spelled}` : spelled;
    else text += coefficient < 0 ? ` - ${spelled}` : ` + ${spelled}`;
  }
  if (total > 0) text += ` + ${total}`;
  if (total < 0) text += ` - ${-total}`;
  return text;
}

function scale(a: IndexExpr, factor: number): IndexExpr {
  if (factor === 1) return a;
  if (factor === 0 || a.terms.length === 0) return constant(a.constant * factor + 0);
  const terms: IndexTerm[] = [];
  pushScaled(terms, a.terms, factor);
  return sumOf(a.constant * factor + 0, terms);
}

function mulTwo(a: IndexExpr, b: IndexExpr): IndexExpr {
  if (b.terms.length === 0) return scale(a, b.constant);
  if (a.terms.length === 0) return scale(b, a.constant);
  const terms: IndexTerm[] = [...scale(a, b.constant).terms, ...scale(b, a.constant).terms];
  for (const s of a.terms) {
    for (const t of b.terms) {
      const atoms = [...s.atoms, ...t.atoms].sort((x, y) => (x.key < y.key ? -1 : 1));
      const key = atoms.map((x) => x.key).join("*");
      terms.push({ coefficient: s.coefficient * t.coefficient, atoms, key });
    }
  }
  return build(a.constant * b.constant + 0, terms);
}

/** `e = whole * divisor + rest` where `rest` keeps the terms that `divisor` does not divide. */
function splitMultiples(e: IndexExpr, divisor: number): readonly [IndexExpr, IndexExpr] {
  const whole: IndexTerm[] = [];
  const rest: IndexTerm[] = [];
  for (const term of e.terms) {
    const quotient = Math.floor(term.coefficient / divisor);
    const remainder = term.coefficient - quotient * divisor;
    const { atoms, key } = term;
    if (remainder === term.coefficient) rest.push(term);
    else if (remainder !== 0) rest.push({ coefficient: remainder, atoms, key });
    if (quotient !== 0) whole.push({ coefficient: quotient, atoms, key });
  }
  const wholeConstant = Math.floor(e.constant / divisor);
  return [sumOf(wholeConstant, whole), sumOf(positiveMod(e.constant, divisor), rest)];
}

/** floor((g x + c) / (g d)) = floor((x + floor(c / g)) / d): divides by the common factor g. */
function reduceFraction(
  rest: IndexExpr,
  divisor: number,
): readonly [IndexExpr, number] | undefined {
  let common = divisor;
  for (const term of rest.terms) common = gcd(common, Math.abs(term.coefficient));
  if (common === 1) return undefined;
  const terms = rest.terms.map((t) => ({ ...t, coefficient: t.coefficient / common }));
  return [build(Math.floor(rest.constant / common), terms), divisor / common];
}

function floorDivSymbolic(numerator: IndexExpr, denominator: IndexExpr): IndexExpr {
  if (numerator.key === denominator.key) return constant(1);
  if (numerator.key === "0") return numerator;
  const exact = divideExactly(numerator, denominator);
  return exact ?? divisionAtom("floorDiv", numerator, denominator);
}

/** numerator / denominator when the denominator is one monomial that divides every term. */
function divideExactly(numerator: IndexExpr, denominator: IndexExpr): IndexExpr | undefined {
  if (denominator.constant !== 0 || denominator.terms.length !== 1) return undefined;
  if (numerator.constant !== 0) return undefined;
  const by = denominator.terms[0]!;
  const parts: IndexExpr[] = [];
  for (const term of numerator.terms) {
    if (term.coefficient % by.coefficient !== 0) return undefined;
    const left = [...term.atoms];
    for (const atom of by.atoms) {
      const at = left.findIndex((x) => x.key === atom.key);
      if (at < 0) return undefined;
      left.splice(at, 1);
    }
    parts.push(mul(term.coefficient / by.coefficient, ...left.map((a) => fromAtom(a))));
  }
  return add(...parts);
}

function extremum(kind: "min" | "max", parts: readonly IndexLike[]): IndexExpr {
  const pick = kind === "min" ? Math.min : Math.max;
  const flat = parts.map(toIndex).flatMap((p) => sameExtremum(kind, p) ?? [p]);
  const constants = flat.flatMap((p) => constantValue(p) ?? []);
  const unique = new Map(flat.filter((p) => p.terms.length > 0).map((p) => [p.key, p]));
  if (constants.length > 0) {
    const folded = constant(pick(...constants));
    unique.set(folded.key, folded);
  }
  const operands = [...unique.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  invariant(operands.length > 0, () => `${kind} of nothing`);
  if (operands.length === 1) return operands[0]!;
  const offset = commonDifference(kind, operands);
  if (offset) return offset;
  return fromAtom({ kind, operands, key: `${kind}(${operands.map((p) => p.key).join(", ")})` });
}

/** Operands that differ only by constants: the extremum is one of them. */
function commonDifference(
  kind: "min" | "max",
  operands: readonly IndexExpr[],
): IndexExpr | undefined {
  let best = operands[0]!;
  for (const other of operands.slice(1)) {
    const difference = constantValue(sub(other, best));
    if (difference === undefined) return undefined;
    if (kind === "min" ? difference < 0 : difference > 0) best = other;
  }
  return best;
}

function sameExtremum(kind: "min" | "max", p: IndexExpr): readonly IndexExpr[] | undefined {
  const term = p.terms[0];
  if (p.constant !== 0 || p.terms.length !== 1 || term?.coefficient !== 1) return undefined;
  const atom = term.atoms.length === 1 ? term.atoms[0]! : undefined;
  return atom?.kind === kind ? atom.operands : undefined;
}

function substituteAtom(atom: IndexAtom, bindings: IndexBindings): IndexExpr {
  if (atom.kind === "variable") {
    const bound = bindings.get(atom.name);
    return bound === undefined ? fromAtom(atom) : toIndex(bound);
  }
  return rebuildAtom(
    atom,
    atomOperands(atom).map((p) => substitute(p, bindings)),
  );
}

function evaluateAtom(atom: IndexAtom, bindings: ReadonlyMap<string, number>): number {
  if (atom.kind === "variable") {
    const value = bindings.get(atom.name);
    invariant(value !== undefined, () => `index variable ${atom.name} is unbound`);
    return value;
  }
  if ("numerator" in atom) {
    const a = evaluate(atom.numerator, bindings);
    const b = evaluate(atom.denominator, bindings);
    return atom.kind === "floorDiv" ? Math.floor(a / b) : positiveMod(a, b);
  }
  const pick = atom.kind === "min" ? Math.min : Math.max;
  let found = evaluate(atom.operands[0]!, bindings);
  for (let i = 1; i < atom.operands.length; i++) {
    found = pick(found, evaluate(atom.operands[i]!, bindings));
  }
  return found;
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** The expression less its constant term. */
export function withoutConstant(expr: IndexExpr): IndexExpr {
  return expr.constant === 0 ? expr : add(expr, -expr.constant);
}
