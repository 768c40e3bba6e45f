/**
 * Interval reasoning about index expressions: what values can it take when each variable lies in a
 * known range. Bounds are sound (never narrower than the truth) and exact for expressions that use
 * each variable once; ends may be infinite. Used to prove shapes, drop guards and size buffers.
 */
import {
  add,
  atomOperands,
  constant,
  constantValue,
  floorDiv,
  fromTerms,
  type IndexAtom,
  type IndexExpr,
  type IndexLike,
  mul,
  rebuildAtom,
  sub,
  toIndex,
} from "./index-expr.ts";

/** Inclusive integer range; `min` may be -Infinity and `max` Infinity. */
export interface IndexRange {
  readonly min: number;
  readonly max: number;
}

export type IndexRanges = ReadonlyMap<string, IndexRange>;

const everything: IndexRange = { min: -Infinity, max: Infinity };

/** A range that contains every value of `expr`; variables without a range are unbounded. */
export function rangeOf(expr: IndexExpr, ranges: IndexRanges): IndexRange {
  let min = expr.constant;
  let max = expr.constant;
  for (const { coefficient, atoms } of expr.terms) {
    let product = rangeOfAtom(atoms[0]!, ranges);
    for (let i = 1; i < atoms.length; i++)
      product = multiply(product, rangeOfAtom(atoms[i]!, ranges));
    min += coefficient * (coefficient > 0 ? product.min : product.max);
    max += coefficient * (coefficient > 0 ? product.max : product.min);
  }
  return { min, max };
}

/** Whether `a <= b` for all values in range; false means "not proved". */
export function provesAtMost(a: IndexLike, b: IndexLike, ranges: IndexRanges): boolean {
  return rangeOf(sub(b, a), ranges).min >= 0;
}

/** Whether `a < b` for all values in range; false means "not proved". */
export function provesLess(a: IndexLike, b: IndexLike, ranges: IndexRanges): boolean {
  return rangeOf(sub(b, a), ranges).min >= 1;
}

/** Drops divisions, remainders, minima and maxima that the ranges decide. */
export function simplify(expr: IndexExpr, ranges: IndexRanges): IndexExpr {
  if (isSimple(expr, ranges)) return expr;
  const parts: IndexLike[] = [expr.constant];
  for (const term of expr.terms) {
    parts.push(mul(term.coefficient, ...term.atoms.map((a) => simplifyAtom(a, ranges))));
  }
  return add(...parts);
}

/** Whether there is nothing that ranges could decide. */
function isSimple({ terms }: IndexExpr, ranges: IndexRanges): boolean {
  for (const { atoms } of terms) {
    for (const atom of atoms) {
      if (atom.kind !== "variable") return false;
      const range = ranges.get(atom.name);
      if (range && range.min === range.max) return false;
    }
  }
  return true;
}

function simplifyAtom(atom: IndexAtom, ranges: IndexRanges): IndexExpr {
  const operands = atomOperands(atom).map((p) => simplify(p, ranges));
  if (atom.kind === "variable") {
    const range = ranges.get(atom.name);
    return range && range.min === range.max ? constant(range.min) : rebuildAtom(atom, []);
  }
  if (atom.kind === "min" || atom.kind === "max") {
    const beats = (a: IndexExpr, b: IndexExpr): boolean =>
      atom.kind === "min" ? provesAtMost(a, b, ranges) : provesAtMost(b, a, ranges);
    const kept: IndexExpr[] = [];
    for (const p of operands) {
      if (kept.some((k) => beats(k, p))) continue;
      const left = kept.filter((k) => !beats(p, k));
      kept.splice(0, kept.length, ...left, p);
    }
    return rebuildAtom(atom, kept);
  }
  const [numerator, denominator] = operands as [IndexExpr, IndexExpr];
  const divisor = constantValue(denominator);
  if (divisor !== undefined) {
    const range = rangeOf(numerator, ranges);
    const quotient = Math.floor(range.min / divisor);
    if (Number.isFinite(quotient) && quotient === Math.floor(range.max / divisor)) {
      return atom.kind === "floorDiv" ? constant(quotient) : sub(numerator, quotient * divisor);
    }
  }
  return rebuildAtom(atom, [numerator, denominator]);
}

/**
 * The expression with quotients of what decides them alone: floor((8 t + l) / 32) is floor(8 t / 32) where l is below
 * 8, as the lanes of a vector are that all lie in one block.
 */
export function withoutRemainders(expr: IndexExpr, ranges: IndexRanges): IndexExpr {
  const parts = expr.terms.map(({ coefficient, atoms }) =>
    mul(coefficient, ...atoms.map((atom) => withoutRemainder(atom, ranges))),
  );
  return add(expr.constant, ...parts);
}

function withoutRemainder(atom: IndexAtom, ranges: IndexRanges): IndexExpr {
  const operands = atomOperands(atom).map((p) => withoutRemainders(p, ranges));
  const divisor = atom.kind === "floorDiv" ? constantValue(operands[1]!) : undefined;
  if (divisor === undefined) return rebuildAtom(atom, operands);
  const { constant: start, terms } = operands[0]!;
  const steps = terms.map((t) => gcd(Math.abs(t.coefficient), divisor));
  for (const step of [...new Set(steps)].sort((a, b) => b - a)) {
    const fine = terms.filter((_, i) => steps[i]! % step !== 0);
    const rest = fromTerms(((start % step) + step) % step, fine);
    const { min, max } = rangeOf(rest, ranges);
    if (min >= 0 && max < step) return floorDiv(sub(operands[0]!, rest), divisor);
  }
  return rebuildAtom(atom, operands);
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

function rangeOfAtom(atom: IndexAtom, ranges: IndexRanges): IndexRange {
  if (atom.kind === "variable") return ranges.get(atom.name) ?? everything;
  const parts = atomOperands(atom).map((p) => rangeOf(p, ranges));
  if (atom.kind === "min" || atom.kind === "max") {
    const pick = atom.kind === "min" ? Math.min : Math.max;
    return { min: pick(...parts.map((p) => p.min)), max: pick(...parts.map((p) => p.max)) };
  }
  const [a, b] = parts as [IndexRange, IndexRange];
  if (atom.kind === "mod") {
    const inside = a.min >= 0 && a.max < b.min;
    return inside ? a : { min: 0, max: a.min >= 0 ? Math.min(a.max, b.max - 1) : b.max - 1 };
  }
  const low = Math.max(1, b.min);
  const ends = [a.min / low, a.min / b.max, a.max / low, a.max / b.max].map(floorEnd);
  return { min: Math.min(...ends), max: Math.max(...ends) };
}

function floorEnd(value: number): number {
  return Number.isNaN(value) ? 0 : Math.floor(value);
}

function multiply(a: IndexRange, b: IndexRange): IndexRange {
  const ends = [a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max];
  const finite = ends.map((e) => (Number.isNaN(e) ? 0 : e));
  return { min: Math.min(...finite), max: Math.max(...finite) };
}

/** The range of a loop variable that runs over 0 <= v < extent. */
export function loopRange(extent: IndexLike, ranges: IndexRanges): IndexRange {
  return { min: 0, max: Math.max(0, rangeOf(toIndex(extent), ranges).max - 1) };
}
