/**
 * Numbers of shape computations: fractions of index expressions. Exporters compute sizes with tensors
 * (Shape, Gather, Mul, Floor, Cast…), sometimes through floats (extent times 0.5, floored); a fraction
 * with a positive denominator follows them exactly. Every function gives undefined where the result is
 * not such a fraction or cannot be decided for all values of the symbols.
 */
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  indexEquals,
  max,
  min,
  mod,
  mul,
  sub,
} from "../../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf, simplify } from "../../../semantics/index-range.ts";

import { multipliesSafely } from "./extent-limits.ts";

export interface SymbolicNumber {
  readonly numerator: IndexExpr;
  /** Positive for all values of the symbols. */
  readonly denominator: IndexExpr;
}

const one = constant(1);
/** Enough for every float32 scale factor between 2^-6 and 2^16. */
const largestDenominator = 2 ** 30;
/** Products beyond this stay out of symbolic arithmetic, so that nothing overflows 2^53. */
const largestConstant = 2 ** 40;

export function wholeNumber(numerator: IndexExpr): SymbolicNumber {
  return { numerator, denominator: one };
}

/** A finite number as a fraction with a power of two below, that is at most `largest`. */
export function fromNumber(
  value: number,
  largest = largestDenominator,
): SymbolicNumber | undefined {
  for (let denominator = 1; denominator <= largest; denominator *= 2) {
    const numerator = value * denominator;
    if (Number.isInteger(numerator) && Math.abs(numerator) <= largestConstant) {
      return { numerator: constant(numerator + 0), denominator: constant(denominator) };
    }
  }
  return undefined;
}

/** The integer that the fraction is, if it is one. */
export function integerOf(a: SymbolicNumber): IndexExpr | undefined {
  return constantValue(a.denominator) === 1 ? a.numerator : undefined;
}

/** Arithmetic under the ranges of the symbols. */
export function symbolicArithmetic(ranges: IndexRanges) {
  const isSmall = (e: IndexExpr): boolean =>
    Math.abs(e.constant) <= largestConstant &&
    e.terms.length <= 64 &&
    e.terms.every((t) => Math.abs(t.coefficient) <= largestConstant && t.atoms.length <= 16);
  const isPositive = (e: IndexExpr): boolean => rangeOf(e, ranges).min > 0;
  const isNonNegative = (e: IndexExpr): boolean => rangeOf(e, ranges).min >= 0;

  /** Cancels what divides exactly; undefined when the result grew too large to compute with. */
  function reduce(numerator: IndexExpr, denominator: IndexExpr): SymbolicNumber | undefined {
    if (!isSmall(numerator) || !isSmall(denominator)) return undefined;
    const top = simplify(numerator, ranges);
    const bottom = simplify(denominator, ranges);
    const quotient = floorDiv(top, bottom);
    if (!multipliesSafely(quotient, bottom)) return { numerator: top, denominator: bottom };
    if (indexEquals(mul(quotient, bottom), top)) return wholeNumber(quotient);
    return { numerator: top, denominator: bottom };
  }

  function plus(a: SymbolicNumber, b: SymbolicNumber, sign: 1 | -1): SymbolicNumber | undefined {
    if (!multipliesSafely(b.numerator, a.denominator)) return undefined;
    if (!multipliesSafely(a.numerator, b.denominator)) return undefined;
    if (!multipliesSafely(a.denominator, b.denominator)) return undefined;
    const right = mul(sign, b.numerator, a.denominator);
    return reduce(add(mul(a.numerator, b.denominator), right), mul(a.denominator, b.denominator));
  }

  function times(a: SymbolicNumber, b: SymbolicNumber): SymbolicNumber | undefined {
    if (!multipliesSafely(a.numerator, b.numerator)) return undefined;
    if (!multipliesSafely(a.denominator, b.denominator)) return undefined;
    return reduce(mul(a.numerator, b.numerator), mul(a.denominator, b.denominator));
  }

  function divide(a: SymbolicNumber, b: SymbolicNumber): SymbolicNumber | undefined {
    if (!isPositive(b.numerator)) return undefined;
    return times(a, { numerator: b.denominator, denominator: b.numerator });
  }

  /** Division of integers that truncates. */
  function quotient(a: SymbolicNumber, b: SymbolicNumber): SymbolicNumber | undefined {
    const [x, y] = [integerOf(a), integerOf(b)];
    if (!x || !y || !isPositive(y) || !isNonNegative(x)) return undefined;
    return wholeNumber(floorDiv(x, y));
  }

  function remainder(a: SymbolicNumber, b: SymbolicNumber): SymbolicNumber | undefined {
    const [x, y] = [integerOf(a), integerOf(b)];
    return x && y && isPositive(y) ? wholeNumber(mod(x, y)) : undefined;
  }

  function extremum(
    pick: typeof min | typeof max,
    a: SymbolicNumber,
    b: SymbolicNumber,
  ): SymbolicNumber | undefined {
    if (!indexEquals(a.denominator, b.denominator)) return undefined;
    return reduce(simplify(pick(a.numerator, b.numerator), ranges), a.denominator);
  }

  /** The sign of a - b where it is the same for all values; "mixed" where it is not known. */
  function compare(a: SymbolicNumber, b: SymbolicNumber): "less" | "equal" | "greater" | "mixed" {
    if (!multipliesSafely(a.numerator, b.denominator)) return "mixed";
    if (!multipliesSafely(b.numerator, a.denominator)) return "mixed";
    const left = mul(a.numerator, b.denominator);
    const range = rangeOf(simplify(sub(left, mul(b.numerator, a.denominator)), ranges), ranges);
    if (range.min > 0) return "greater";
    if (range.max < 0) return "less";
    return range.min === 0 && range.max === 0 ? "equal" : "mixed";
  }

  return {
    add: (a: SymbolicNumber, b: SymbolicNumber) => plus(a, b, 1),
    sub: (a: SymbolicNumber, b: SymbolicNumber) => plus(a, b, -1),
    mul: times,
    divide,
    quotient,
    remainder,
    min: (a: SymbolicNumber, b: SymbolicNumber) => extremum(min, a, b),
    max: (a: SymbolicNumber, b: SymbolicNumber) => extremum(max, a, b),
    floor: (a: SymbolicNumber) => wholeNumber(floorDiv(a.numerator, a.denominator)),
    ceil: (a: SymbolicNumber) => wholeNumber(ceilDiv(a.numerator, a.denominator)),
    /** Towards zero. */
    truncate: (a: SymbolicNumber) =>
      integerOf(a)
        ? a
        : isNonNegative(a.numerator)
          ? wholeNumber(floorDiv(a.numerator, a.denominator))
          : undefined,
    compare,
    isNonNegative: (a: SymbolicNumber) => isNonNegative(a.numerator),
  };
}

export type SymbolicArithmetic = ReturnType<typeof symbolicArithmetic>;
