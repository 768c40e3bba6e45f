/**
 * Axes of which one is the quotient and another the remainder of one number, as rows of a product are that are split
 * into heads: floorDiv(e, d) along the one and mod(e, d) along the other. In: where an access touches each axis. Out:
 * sums of multiples of these axes along which it touches a window at e. Elements of one place along the axes are of
 * one place along such a sum too, so it is to separation a further axis.
 */
import {
  add,
  constantValue,
  floorDiv,
  fromTerms,
  type IndexExpr,
  type IndexTerm,
  mod,
  mul,
  withinExactIntegers,
} from "../../semantics/index-expr.ts";
import { soleAtom } from "./index-terms.ts";

/** A sum of axes, each `weights` times (0 or more), and the window that an access touches along it. */
export interface AxisSum {
  readonly weights: readonly number[];
  readonly index: IndexExpr;
  readonly span: number;
}

const mostSums = 16;

/** The axes themselves, and behind them what is joined of them and of joined ones. */
export function axisSums(
  index: readonly IndexExpr[],
  spans: readonly number[],
): readonly AxisSum[] {
  const sums: AxisSum[] = index.map((e, axis) => ({
    weights: index.map((_, other) => (other === axis ? 1 : 0)),
    index: e,
    span: spans[axis]!,
  }));
  // A sum may be the quotient or the remainder of yet another axis.
  for (let last = 1; last < sums.length; last++) {
    for (const other of sums.slice(0, last)) {
      for (const [high, low] of [
        [other, sums[last]!],
        [sums[last]!, other],
      ] as const) {
        const sum = joined(high, low);
        const isNew = sum && sums.every((s) => s.weights.join() !== sum.weights.join());
        if (isNew && sums.length < mostSums) sums.push(sum);
      }
    }
  }
  return sums;
}

/** The sum along which the quotient in `high` and the remainder in `low` are one number. */
function joined(high: AxisSum, low: AxisSum): AxisSum | undefined {
  // An axis is a digit of a number once.
  if (high.weights.some((w, axis) => w > 0 && low.weights[axis]! > 0)) return undefined;
  for (const remainder of low.index.terms) {
    for (const quotient of high.index.terms) {
      const sum = withinExactIntegers(
        () => sumOf({ high, low, quotient, remainder }),
        () => undefined,
      );
      if (sum) return sum;
    }
  }
  return undefined;
}

interface Whole {
  readonly whole: IndexExpr;
  readonly divisor: number;
}

/** `whole` = divisor * (atom of the quotient) + (atom of the remainder). */
function wholeOf(quotient: IndexTerm, remainder: IndexTerm): Whole | undefined {
  if (quotient.coefficient < 0 !== remainder.coefficient < 0) return undefined;
  const [high, low] = [soleAtom(quotient), soleAtom(remainder)];
  if (low?.kind !== "mod" || (high?.kind !== "mod" && high?.kind !== "floorDiv")) return undefined;
  const divisor = constantValue(low.denominator);
  if (divisor === undefined) return undefined;
  const { key } = floorDiv(low.numerator, divisor);
  if (high.key === key) return { whole: low.numerator, divisor };
  if (high.kind !== "mod") return undefined;
  const turns = constantValue(high.denominator);
  if (turns === undefined) return undefined;
  // mod(rest + floorDiv(e, d), n) is the quotient of mod(d rest + e, d n).
  const own = high.numerator.terms.find((t) => t.key === key && t.coefficient === 1);
  if (!own) return undefined;
  const number = add(mul(divisor, without(high.numerator, own)), low.numerator);
  return { whole: mod(number, divisor * turns), divisor };
}

function without({ constant, terms }: IndexExpr, term: IndexTerm): IndexExpr {
  return fromTerms(
    constant,
    terms.filter((t) => t !== term),
  );
}

interface Join {
  readonly high: AxisSum;
  readonly low: AxisSum;
  readonly quotient: IndexTerm;
  readonly remainder: IndexTerm;
}

function sumOf({ high, low, quotient, remainder }: Join): AxisSum | undefined {
  const found = wholeOf(quotient, remainder);
  if (!found) return undefined;
  const { whole, divisor } = found;
  const [q, r] = [Math.abs(quotient.coefficient), Math.abs(remainder.coefficient)];
  // high * a + low * b with q a = divisor * r b.
  const common = gcd(divisor * r, q);
  const [a, b] = [(divisor * r) / common, q / common];
  return {
    weights: high.weights.map((w, axis) => a * w + b * low.weights[axis]!),
    index: add(
      mul(a, without(high.index, quotient)),
      mul(b, without(low.index, remainder)),
      mul(b * remainder.coefficient, whole),
    ),
    span: a * (high.span - 1) + b * (low.span - 1) + 1,
  };
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
