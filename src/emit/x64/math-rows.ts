/**
 * Transcendental functions of f32 lanes. Each row states the largest error in units in the last place
 * that math-rows.test.ts finds against float64; special values are those of JavaScript's Math, except
 * that subnormal numbers count as zero.
 *
 * Methods: exp by Cody-Waite reduction and a minimax polynomial on the reduced range; log by the series of
 * atanh(f / (2 + f)) with the correction term of fdlibm's e_log.c; tanh by its continued fraction
 * near zero; erf by its Taylor series below 1 and a Chebyshev fit on [1, 4], or by sixteen pieces where one
 * instruction finds a coefficient of each lane's (semantics/fits.ts).
 */
import { erfFit, erfOne, erfPieces, erfSeries, erfSteps, expFit } from "../../semantics/fits.ts";
import type { Register } from "./operand.ts";
import type { VectorCode } from "./vector-code.ts";

const high = 0.693359375;
const low = Math.LN2 - high;

/** Added and subtracted, it rounds a float below 2^22 to an integer, left in the low bits of the sum. */
const rounder = 12582912;
/** Below, e^x is no normal number; above the second, it is infinite. */
const leastExp = -87.33654;
const greatestExp = 88.72283172607422;

/** e^x = 2^n e^r with |r| <= ln(2) / 2. */
function exp(c: VectorCode, argument: Register): Register {
  if (c.evex) {
    const x = c.clamp(argument, -104, 89);
    const n = c.rounded(c.mul(x, c.constant(Math.LOG2E)), "round");
    return c.op("vscalefps", expNearZero(c, x, n), n);
  }
  const x = argument;
  const shifted = c.fma(x, c.constant(Math.LOG2E), c.constant(rounder));
  const n = c.sub(shifted, c.constant(rounder));
  // n is added to the exponent of e^r, which is that of 1 or of 1/2.
  const scaled = c.op("vpaddd", expNearZero(c, x, n), c.shl(shifted, 23));
  const value = c.and(scaled, c.compare("notLess", x, c.constant(leastExp)));
  // Infinite, or not a number as x is.
  const beyond = c.mul(x, c.constant(Number.POSITIVE_INFINITY));
  return c.select(c.compare("lessEqual", x, c.constant(greatestExp)), value, beyond);
}

/** e^r, r = x - n ln 2, with ln 2 in two parts; n times the first is exact. */
function expNearZero(c: VectorCode, x: Register, n: Register): Register {
  const part = c.fma(n, c.constant(-high), x);
  const r = c.fma(n, c.constant(-low), part);
  return c.polynomial(r, [1, 1, ...expFit]);
}

/** log x = e ln 2 + log(1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). */
function log(c: VectorCode, x: Register): Register {
  // Exponent relative to sqrt(1/2), so that the mantissa lies around 1.
  const offset = c.op("vpsubd", x, c.i32(0x3f3504f3));
  const exponent = c.sar(offset, 23);
  const mantissa = c.op("vpsubd", x, c.shl(exponent, 23));
  const f = c.sub(mantissa, c.constant(1));
  const e = c.op("vcvtdq2ps", exponent);
  const s = c.div(f, c.add(f, c.constant(2)));
  const z = c.mul(s, s);
  const series = c.mul(z, c.polynomial(z, [2 / 3, 2 / 5, 2 / 7, 2 / 9]));
  const half = c.mul(c.mul(f, f), c.constant(0.5));
  const correction = c.fma(s, c.add(half, series), c.mul(e, c.constant(low)));
  const result = c.fma(e, c.constant(high), c.sub(f, c.sub(half, correction)));
  const zero = c.constant(0);
  const infinite = c.compare("equal", x, c.constant(Number.POSITIVE_INFINITY));
  const positive = c.select(infinite, x, result);
  const isZero = c.compare("equal", x, zero);
  const finite = c.select(isZero, c.constant(Number.NEGATIVE_INFINITY), positive);
  const valid = c.compare("greaterEqual", x, zero);
  return c.select(valid, finite, c.constant(Number.NaN));
}

function withSignOf(c: VectorCode, size: Register, x: Register): Register {
  return c.or(size, c.and(x, c.signs()));
}

/** Below 1: x (135135 + 17325 z + 378 z^2 + z^3) / (135135 + 62370 z + 3150 z^2 + 28 z^3), z = x^2. */
function tanh(c: VectorCode, x: Register): Register {
  const size = c.abs(x);
  const power = exp(c, c.add(size, size));
  const large = c.sub(c.constant(1), c.div(c.constant(2), c.add(power, c.constant(1))));
  const signed = withSignOf(c, large, x);
  const z = c.mul(x, x);
  const top = c.mul(x, c.polynomial(z, [1, 17325 / 135135, 378 / 135135, 1 / 135135]));
  const bottom = c.polynomial(z, [1, 62370 / 135135, 3150 / 135135, 28 / 135135]);
  return c.select(c.compare("less", size, c.constant(1)), c.div(top, bottom), signed);
}

/** 1 / (1 + e^-|x|), times e^-|x| for negative x, so that small results keep their digits. */
function sigmoid(c: VectorCode, x: Register): Register {
  const e = exp(c, c.or(x, c.signs()));
  const positive = c.compare("greaterEqual", x, c.constant(0));
  return c.div(c.select(positive, c.constant(1), e), c.add(e, c.constant(1)));
}

/** By pieces, where a register holds a coefficient of all of them: half the instructions, and a third of the chain. */
function erfByPieces(c: VectorCode, x: Register): Register {
  const size = c.minOrSecond(c.constant(erfOne), c.abs(x));
  const at = c.mul(size, c.constant(erfSteps));
  const piece = c.add(at, c.constant(rounder));
  const r = c.sub(at, c.sub(piece, c.constant(rounder)));
  const [last, ...rest] = erfPieces.toReversed().map((table) => c.lookUp(table, piece));
  const slope = rest.reduce((sum, k) => c.fma(sum, r, k), last!);
  return withSignOf(c, c.minOrSecond(c.constant(1), c.mul(size, slope)), x);
}

function erf(c: VectorCode, x: Register): Register {
  if (c.evex) return erfByPieces(c, x);
  const size = c.clamp(c.abs(x), 0, 4);
  const z = c.mul(size, size);
  const small = c.mul(size, c.polynomial(z, erfSeries));
  const u = c.mul(c.sub(size, c.constant(2.5)), c.constant(1 / 1.5));
  const fit = c.minOrSecond(c.constant(1), c.polynomial(u, erfFit));
  const value = c.select(c.compare("less", size, c.constant(1)), small, fit);
  return withSignOf(c, value, x);
}

export interface MathRow {
  readonly name: "exp" | "log" | "tanh" | "sigmoid" | "erf";
  readonly body: (c: VectorCode, x: Register) => Register;
  readonly maxUlp: number;
}

/** Rows with the largest error in ulp that is allowed for them, over the whole f32 range. */
export const mathRows: readonly MathRow[] = [
  { name: "exp", body: exp, maxUlp: 2 },
  { name: "log", body: log, maxUlp: 2 },
  { name: "tanh", body: tanh, maxUlp: 3 },
  { name: "sigmoid", body: sigmoid, maxUlp: 3 },
  { name: "erf", body: erf, maxUlp: 4 },
];

export function findMathRow(name: string): MathRow | undefined {
  return mathRows.find((r) => r.name === name);
}
