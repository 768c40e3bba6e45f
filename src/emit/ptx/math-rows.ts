/**
 * Transcendental functions. f32: exp, log, tanh, sigmoid, erf, sin and cos by argument reduction and
 * polynomials with fused multiply-adds (ex2.approx on the reduced argument: PTX ISA, 2^-22 relative);
 * the rest through f64. f64: exp and the logarithm by Cody-Waite reduction and Taylor series, sine and
 * cosine with pi / 2 in three parts, the arc tangent by halving its argument; the rest from these.
 *
 * `maxUlp` is the largest error in units in the last place against float64 (f32) or against a wider
 * evaluation (f64) that the device check allows (bench/device/ptx-values.ts), over the arguments where
 * the function is neither zero, subnormal, infinite nor, for sine and cosine, above 10^5.
 */
import { erfFit, erfSeries, inverseFactorials } from "../../semantics/fits.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { FloatCode } from "./float-code.ts";
import type { Operand, PtxCode } from "./ptx-code.ts";

type Unary = (c: FloatCode, x: Operand) => Operand;
type Binary = (c: FloatCode, x: Operand, y: Operand) => Operand;

/** Added and subtracted, it rounds to an integer, left in the low mantissa bits. */
const rounders = { 32: 12582912, 64: 6755399441055744 } as const;
const _signBits = { 32: "0x80000000", 64: "0x8000000000000000" } as const;

/** 2^n of an integer register, for normal results. */
function powerOfTwo(c: FloatCode, n: Operand): Operand {
  const { bits } = c;
  const [bias, shift] = bits === 32 ? [127, 23] : [1023, 52];
  return c.int(`shl.b${bits}`, c.int(`add.s${bits}`, n, bias), shift);
}

/** value * 2^n in two steps, so that subnormal results come out right. */
function scaled(c: FloatCode, value: Operand, n: Operand): Operand {
  const half = c.int(`shr.s${c.bits}`, n, 1);
  const rest = c.int(`sub.s${c.bits}`, n, half);
  return c.mul(c.mul(value, powerOfTwo(c, half)), powerOfTwo(c, rest));
}

/** The nearest integer to x * factor, as a float and as an integer. */
function nearest(c: FloatCode, x: Operand, factor: number): readonly [Operand, Operand] {
  const rounder = rounders[c.bits];
  const shifted = c.fma(x, factor, rounder);
  const whole = c.int(`sub.s${c.bits}`, shifted, c.operand(rounder).replace(/^0[fd]/, "0x"));
  return [c.sub(shifted, rounder), whole];
}

/** NaN stays. */
function clamp(c: FloatCode, x: Operand, low: number, high: number): Operand {
  return c.op("max.NaN", c.op("min.NaN", x, high), low);
}

/** ln 2 as a sum of two floats. */
const ln2Parts = [Math.fround(Math.LN2), Math.LN2 - Math.fround(Math.LN2)] as const;

/**
 * 2^t. In kernels whose warps pass registers on with subnormal results: in the shorter form the assembler (ptxas 13.0)
 * runs so many elements into each other that it spills.
 */
function quickPower(c: FloatCode, t: Operand): Operand {
  return c.code.op(c.code.isCallFree ? "ex2.approx.f32" : "ex2.approx.ftz.f32", "r", t);
}

/**
 * e^x as 2^t for t = x log2 e, times 1 + r for what the rounding of t lost: r = x - t ln 2. Up to 2^-22 of the
 * instruction itself, which gives infinity, and zero for subnormal results, as CPUs do (docs/cpu.md): those would
 * take three more instructions of each.
 */
function exp32(c: FloatCode, argument: Operand): Operand {
  const x = clamp(c, argument, -104, 89);
  const t = c.mul(x, Math.LOG2E);
  return c.mul(quickPower(c, t), c.add(lostOf(c, x, t), 1));
}

function lostOf(c: FloatCode, x: Operand, t: Operand): Operand {
  return c.fma(t, -ln2Parts[1], c.fma(t, -ln2Parts[0], x));
}

/** ln 2 in two parts; n times the first is exact for n below 2^11. */
const ln2High = 0.6931471803691238;
const ln2Low = 1.9082149292705877e-10;
const moreFactorials = [...inverseFactorials];
for (let k = moreFactorials.length; k <= 18; k++) moreFactorials.push(moreFactorials[k - 1]! / k);

function clamp64(c: FloatCode, x: Operand, low: number, high: number): Operand {
  const inside = c.max(c.min(x, high), low);
  return c.select(c.test("nan", x, x), x, inside);
}

function exp64(c: FloatCode, argument: Operand): Operand {
  const x = clamp64(c, argument, -746, 710);
  const [n, whole] = nearest(c, x, Math.LOG2E);
  const r = c.fma(n, -ln2Low, c.fma(n, -ln2High, x));
  return scaled(c, c.polynomial(r, moreFactorials.slice(0, 14)), whole);
}

/** log x = e ln 2 + log(1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), by the series of atanh(f / (2 + f)). */
function logarithm(c: FloatCode, x: Operand): Operand {
  const wide = c.bits === 64;
  const tiny = c.test("lt", x, wide ? 2 ** -1022 : 2 ** -126);
  const lift = wide ? 54 : 23;
  const lifted = c.select(tiny, c.mul(x, 2 ** lift), x);
  const root = wide ? "0x3fe6a09e667f3bcd" : "0x3f3504f3";
  const offset = c.int(`sub.s${c.bits}`, lifted, root);
  const exponent = c.int(`shr.s${c.bits}`, offset, wide ? 52 : 23);
  const mantissa = c.int(
    `sub.s${c.bits}`,
    lifted,
    c.int(`shl.b${c.bits}`, exponent, wide ? 52 : 23),
  );
  const f = c.sub(mantissa, 1);
  const e = c.sub(
    c.code.op(`cvt.rn.f${c.bits}.s${c.bits}`, c.kind, exponent),
    c.select(tiny, lift, 0),
  );
  const s = c.div(f, c.add(f, 2));
  const z = c.mul(s, s);
  const count = wide ? 11 : 4;
  const terms = Array.from({ length: count }, (_, i) => 2 / (2 * i + 3));
  const series = c.mul(z, c.polynomial(z, terms));
  const half = c.mul(c.mul(f, f), 0.5);
  const high = wide ? ln2High : 0.693359375;
  const low = c.mul(e, wide ? ln2Low : Math.LN2 - high);
  const correction = c.fma(s, c.add(half, series), low);
  const result = c.sub(c.mul(e, high), c.sub(c.sub(half, correction), f));
  const infinite = c.test("eq", x, Number.POSITIVE_INFINITY);
  const zero = c.test("eq", x, 0);
  const valid = c.test("ge", x, 0);
  const positive = c.select(infinite, x, result);
  return c.select(valid, c.select(zero, Number.NEGATIVE_INFINITY, positive), Number.NaN);
}

/** Beyond it tanh is 1 in f32. */
const largestTanh = 10;

/**
 * (e^2x - 1) / (e^2x + 1); below 1: x (135135 + 17325 z + 378 z^2 + z^3) / (135135 + 62370 z + 3150 z^2 + 28 z^3),
 * z = x^2. One quotient for both, up to 2 ulp of it.
 */
function tanh32(c: FloatCode, x: Operand): Operand {
  const size = c.op("min.NaN", c.abs(x), largestTanh);
  const double = c.add(size, size);
  const t = c.mul(double, Math.LOG2E);
  const power = c.code.op("ex2.approx.ftz.f32", "r", t);
  const whole = c.fma(power, lostOf(c, double, t), power);
  const z = c.mul(size, size);
  const top = c.mul(size, c.polynomial(z, [1, 17325 / 135135, 378 / 135135, 1 / 135135]));
  const bottom = c.polynomial(z, [1, 62370 / 135135, 3150 / 135135, 28 / 135135]);
  const isSmall = c.test("lt", size, 1);
  const [over, under] = [c.sub(whole, 1), c.add(whole, 1)];
  const quotient = c.op("div.full", c.select(isSmall, top, over), c.select(isSmall, bottom, under));
  return c.copySign(quotient, x);
}

/** 1 / (1 + e^-|x|), times e^-|x| for negative x, so that small results keep their digits. */
function sigmoid(c: FloatCode, x: Operand): Operand {
  const e = expOf(c, c.neg(c.abs(x)));
  const top = c.select(c.test("ge", x, 0), 1, e);
  return c.div(top, c.add(e, 1));
}

function erf32(c: FloatCode, x: Operand): Operand {
  const size = c.op("min.NaN", c.abs(x), 4);
  const z = c.mul(size, size);
  const small = c.mul(size, c.polynomial(z, erfSeries));
  const u = c.mul(c.sub(size, 2.5), 1 / 1.5);
  const fit = c.op("min.NaN", c.polynomial(u, erfFit), 1);
  return c.copySign(c.select(c.test("lt", size, 1), small, fit), x);
}

/** Series of 2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (2n+1)!! below 3, continued fraction of erfc above. */
function erf64(c: FloatCode, x: Operand): Operand {
  const size = c.select(c.test("nan", x, x), x, c.min(c.abs(x), 6));
  const z = c.mul(size, size);
  const decay = exp64(c, c.neg(z));
  const result = c.variable(0);
  c.when(
    c.test("lt", size, 3),
    () => {
      let coefficient = 1;
      const terms = [1];
      for (let n = 1; n < 60; n++) {
        coefficient *= 2 / (2 * n + 1);
        terms.push(coefficient);
      }
      const sum = c.mul(size, c.polynomial(z, terms));
      c.set(result, c.mul(c.mul(sum, decay), 2 / Math.sqrt(Math.PI)));
    },
    () => {
      let tail: Operand = size;
      for (let n = 40; n >= 1; n--) tail = c.add(size, c.div(n / 2, tail));
      const rest = c.div(decay, c.mul(tail, Math.sqrt(Math.PI)));
      c.set(result, c.sub(1, rest));
    },
  );
  return c.copySign(result, x);
}

/** pi / 2 as a sum of three floats each. */
const halfPi = {
  32: [1.5707963705062866, -4.371138828673793e-8, -1.7151245100059e-15],
  64: [1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33],
} as const;

/** sin(x + quarters * pi / 2), by the Taylor series on [-pi / 4, pi / 4]. */
function trigonometric(c: FloatCode, x: Operand, quarters: number): Operand {
  const [n, whole] = nearest(c, x, 2 / Math.PI);
  const r = halfPi[c.bits].reduce<Operand>((rest, part) => c.fma(n, -part, rest), x);
  const z = c.mul(r, r);
  const depth = c.bits === 64 ? 8 : 4;
  const term = (k: number, i: number): number => (i % 2 ? 1 : -1) * moreFactorials[k]!;
  const sinTerms = Array.from({ length: depth }, (_, i) => term(2 * i + 3, i));
  const cosTerms = Array.from({ length: depth }, (_, i) => -term(2 * i + 4, i));
  const sine = c.fma(c.mul(r, z), c.polynomial(z, sinTerms), r);
  const cosine = c.fma(c.mul(z, z), c.polynomial(z, cosTerms), c.fma(z, -0.5, 1));
  const quarter = c.int(`add.s${c.bits}`, whole, quarters);
  const odd = c.code.op(`setp.ne.s${c.bits}`, "p", c.int(`and.b${c.bits}`, quarter, 1), "0");
  const sign = c.int(`shl.b${c.bits}`, c.int(`and.b${c.bits}`, quarter, 2), c.bits - 2);
  return c.int(`xor.b${c.bits}`, c.select(odd, cosine, sine), sign);
}

/** Arguments from here on go through f64. */
const largestReduced = 8192;

function trigonometric32(c: FloatCode, x: Operand, quarters: number): Operand {
  const result = c.variable(0);
  c.when(
    c.test("lt", c.abs(x), largestReduced),
    () => c.set(result, trigonometric(c, x, quarters)),
    () =>
      c.set(
        result,
        throughWide(c, [x], (w, y) => trigonometric(w, y, quarters)),
      ),
  );
  return result;
}

/** atan |x| <= 1 by halving the argument twice, then the Taylor series. */
function atan64(c: FloatCode, x: Operand): Operand {
  const size = c.abs(x);
  const inverted = c.test("gt", size, 1);
  const inner = c.select(inverted, c.div(1, size), size);
  const halve = (y: Operand): Operand => c.div(y, c.add(1, c.sqrt(c.fma(y, y, 1))));
  const y = halve(halve(inner));
  const z = c.mul(y, y);
  const terms = Array.from({ length: 14 }, (_, i) => (i % 2 ? -1 : 1) / (2 * i + 1));
  const angle = c.mul(c.mul(y, c.polynomial(z, terms)), 4);
  const whole = c.select(inverted, c.sub(Math.PI / 2, angle), angle);
  return c.copySign(whole, x);
}

function atan2(c: FloatCode, y: Operand, x: Operand): Operand {
  const ratio = c.div(c.abs(y), c.abs(x));
  // Two zeros or two infinities: the quotient is NaN, the angle 0 or pi / 4.
  const lost = c.test("nan", ratio, ratio);
  const both = c.select(c.test("eq", x, 0), 0, Math.PI / 4);
  const unordered = c.test("nan", x, y);
  const first = c.select(lost, both, atan64(c, ratio));
  const negative = c.code.op("setp.lt.s64", "p", x, "0");
  const angle = c.select(negative, c.sub(Math.PI, first), first);
  return c.select(unordered, Number.NaN, c.copySign(angle, y));
}

/** e^x - 1: Taylor series where the difference would lose digits. */
function expm1(c: FloatCode, x: Operand): Operand {
  const series = c.mul(x, c.polynomial(x, moreFactorials.slice(1, 16)));
  const small = c.test("lt", c.abs(x), 0.5);
  return c.select(small, series, c.sub(exp64(c, x), 1));
}

function sinh64(c: FloatCode, x: Operand): Operand {
  const size = c.abs(x);
  const u = expm1(c, size);
  const small = c.mul(c.add(u, c.div(u, c.add(u, 1))), 0.5);
  const half = exp64(c, c.mul(size, 0.5));
  const large = c.mul(c.mul(half, 0.5), half);
  return c.copySign(c.select(c.test("gt", size, 40), large, small), x);
}

function cosh64(c: FloatCode, x: Operand): Operand {
  const half = exp64(c, c.mul(c.abs(x), 0.5));
  const e = c.mul(half, half);
  const small = c.fma(c.div(0.5, e), 1, c.mul(e, 0.5));
  const large = c.mul(c.mul(half, 0.5), half);
  return c.select(c.test("gt", c.abs(x), 40), large, small);
}

function tanh64(c: FloatCode, x: Operand): Operand {
  const size = c.op("min", c.abs(x), 30);
  const u = expm1(c, c.add(size, size));
  const result = c.copySign(c.div(u, c.add(u, 2)), x);
  return c.select(c.test("nan", x, x), x, result);
}

/** log(1 + x): the rounding of 1 + x is made good by its quotient with the difference (Kahan). */
function log1p(c: FloatCode, x: Operand): Operand {
  const u = c.add(x, 1);
  const d = c.sub(u, 1);
  const corrected = c.div(c.mul(logarithm(c, u), x), d);
  const inside = c.test("neu", d, 0);
  const infinite = c.test("eq", u, Number.POSITIVE_INFINITY);
  return c.select(infinite, u, c.select(inside, corrected, x));
}

function asinh64(c: FloatCode, x: Operand): Operand {
  const size = c.abs(x);
  const z = c.mul(size, size);
  const near = log1p(c, c.add(size, c.div(z, c.add(1, c.sqrt(c.add(z, 1))))));
  const far = c.add(logarithm(c, size), Math.LN2);
  return c.copySign(c.select(c.test("gt", size, 2 ** 28), far, near), x);
}

function acosh64(c: FloatCode, x: Operand): Operand {
  const t = c.sub(x, 1);
  const near = log1p(c, c.add(t, c.sqrt(c.fma(t, t, c.add(t, t)))));
  const far = c.add(logarithm(c, x), Math.LN2);
  const real = c.select(c.test("gt", x, 2 ** 28), far, near);
  return c.select(c.test("ge", x, 1), real, Number.NaN);
}

function atanh64(c: FloatCode, x: Operand): Operand {
  const size = c.abs(x);
  const value = c.mul(log1p(c, c.div(c.add(size, size), c.sub(1, size))), 0.5);
  return c.copySign(value, x);
}

/** asin x = atan2(x, sqrt((1 - x)(1 + x))) */
function legOf(c: FloatCode, x: Operand): Operand {
  return c.sqrt(c.mul(c.sub(1, x), c.add(1, x)));
}

/** Integers to which a float is equal: whether it is one, and whether it is odd. */
function integerTests(c: FloatCode, y: Operand): { whole: Operand; odd: Operand } {
  const whole = c.test("eq", c.code.op("cvt.rzi.f64.f64", "d", y), y);
  const half = c.mul(y, 0.5);
  const even = c.test("eq", c.code.op("cvt.rzi.f64.f64", "d", half), half);
  return { whole, odd: c.code.op("and.pred", "p", whole, c.code.op("not.pred", "p", even)) };
}

/** |x|^y = e^(y log |x|): what the logarithm lost counts as often as the exponent is large. */
function pow64(c: FloatCode, x: Operand, y: Operand): Operand {
  const size = c.abs(x);
  const { whole, odd } = integerTests(c, y);
  const log = logarithm(c, size);
  const high = c.mul(y, log);
  const error = c.fma(y, log, c.neg(high));
  const finite = c.test("lt", c.abs(high), 746);
  const tail = c.select(finite, error, 0);
  const power = exp64(c, high);
  const value = c.fma(power, tail, power);
  const magnitude = c.select(c.test("lt", power, Number.POSITIVE_INFINITY), value, power);
  const negative = c.code.op("setp.lt.s64", "p", x, "0");
  const flips = c.code.op("and.pred", "p", negative, odd);
  const signed = c.select(flips, c.neg(magnitude), magnitude);
  const below = c.test("lt", x, 0);
  const finiteBase = c.test("lt", size, Number.POSITIVE_INFINITY);
  const realBase = c.code.op("and.pred", "p", below, finiteBase);
  const finiteY = c.test("lt", c.abs(y), Number.POSITIVE_INFINITY);
  const notWhole = c.code.op("and.pred", "p", finiteY, c.code.op("not.pred", "p", whole));
  const invalid = c.code.op("and.pred", "p", realBase, notWhole);
  const real = c.select(invalid, Number.NaN, signed);
  // |x| = 1 with an infinite exponent is NaN in JavaScript unless x is 1; x^0 and 1^y are 1.
  const unit = c.test("eq", size, 1);
  const infinite = c.test("eq", c.abs(y), Number.POSITIVE_INFINITY);
  const undecided = c.code.op("and.pred", "p", unit, infinite);
  const some = c.select(undecided, Number.NaN, real);
  const trivial = c.code.op("or.pred", "p", c.test("eq", y, 0), c.test("eq", x, 1));
  const nan = c.test("nan", x, y);
  return c.select(trivial, 1, c.select(nan, Number.NaN, some));
}

const unary64: Partial<Record<ScalarOp, Unary>> = {
  exp: exp64,
  log: logarithm,
  tanh: tanh64,
  sigmoid,
  erf: erf64,
  sin: (c, x) => trigonometric(c, x, 0),
  cos: (c, x) => trigonometric(c, x, 1),
  tan: (c, x) => c.div(trigonometric(c, x, 0), trigonometric(c, x, 1)),
  asin: (c, x) => atan2(c, x, legOf(c, x)),
  acos: (c, x) => atan2(c, legOf(c, x), x),
  atan: atan64,
  sinh: sinh64,
  cosh: cosh64,
  asinh: asinh64,
  acosh: acosh64,
  atanh: atanh64,
};

const binary64: Partial<Record<ScalarOp, Binary>> = { pow: pow64, atan2 };

const unary32: Partial<Record<ScalarOp, Unary>> = {
  exp: exp32,
  log: logarithm,
  tanh: tanh32,
  sigmoid,
  erf: erf32,
  sin: (c, x) => trigonometric32(c, x, 0),
  cos: (c, x) => trigonometric32(c, x, 1),
};

function expOf(c: FloatCode, x: Operand): Operand {
  return c.bits === 32 ? exp32(c, x) : exp64(c, x);
}

/**
 * Operators on f32 whose result is rounded to f16 or bf16 afterwards: what the instructions leave out is far
 * below that rounding. A quotient of bf16 is rounded as if it were exact: it is no nearer than 2^-17 to where
 * the rounding changes, and the instruction is off by 2^-22.
 */
const narrowRows: Readonly<
  Record<
    "f16" | "bf16",
    Partial<Record<ScalarOp, (c: FloatCode, x: Operand, y: Operand) => Operand>>
  >
> = {
  f16: { exp: expNarrow, sigmoid: sigmoidNarrow },
  bf16: {
    exp: expNarrow,
    sigmoid: sigmoidNarrow,
    tanh: (c, x) => c.code.op("tanh.approx.f32", "r", x),
    div: (c, x, y) => c.op("div.full", x, y),
    sqrt: (c, x) => c.op("sqrt.approx", x),
  },
};

function expNarrow(c: FloatCode, x: Operand): Operand {
  return quickPower(c, c.mul(x, Math.LOG2E));
}

function sigmoidNarrow(c: FloatCode, x: Operand): Operand {
  const e = expNarrow(c, c.neg(c.abs(x)));
  const top = c.select(c.test("ge", x, 0), 1, e);
  return c.mul(top, c.op("rcp.approx", c.add(e, 1)));
}

/** The operator where its result becomes a narrow float; undefined where it has no spelling of its own. */
export function narrowApply(
  code: PtxCode,
  op: ScalarOp,
  dtype: "f16" | "bf16",
  operands: readonly Operand[],
): Operand | undefined {
  const [x, y = ""] = operands as [Operand, Operand?];
  return narrowRows[dtype][op]?.(new FloatCode(code, 32), x, y);
}

/** Largest errors in ulp of the result's type. */
export const maxUlp: Readonly<
  Partial<Record<ScalarOp, { readonly f32: number; readonly f64: number }>>
> = {
  exp: { f32: 3, f64: 2 },
  log: { f32: 2, f64: 2 },
  tanh: { f32: 4, f64: 4 },
  sigmoid: { f32: 4, f64: 3 },
  erf: { f32: 4, f64: 12 },
  sin: { f32: 3, f64: 3 },
  cos: { f32: 3, f64: 3 },
  tan: { f32: 1, f64: 6 },
  asin: { f32: 1, f64: 6 },
  acos: { f32: 1, f64: 6 },
  atan: { f32: 1, f64: 4 },
  sinh: { f32: 1, f64: 6 },
  cosh: { f32: 1, f64: 4 },
  asinh: { f32: 1, f64: 6 },
  acosh: { f32: 1, f64: 6 },
  atanh: { f32: 1, f64: 6 },
  pow: { f32: 1, f64: 1024 },
  atan2: { f32: 1, f64: 4 },
};

/** Computes in f64 and rounds. */
function throughWide(
  c: FloatCode,
  operands: readonly Operand[],
  body: (w: FloatCode, x: Operand, y: Operand) => Operand,
): Operand {
  const wide = new FloatCode(c.code, 64);
  const [x, y = ""] = operands.map((o) => c.code.op("cvt.f64.f32", "d", o));
  return c.code.op("cvt.rn.f32.f64", "r", body(wide, x!, y));
}

/** The function on registers of `bits` bits; undefined where there is none of the name. */
export function mathApply(
  code: PtxCode,
  op: ScalarOp,
  bits: 32 | 64,
  operands: readonly Operand[],
): Operand | undefined {
  const c = new FloatCode(code, bits);
  const [x, y = ""] = operands as [Operand, Operand?];
  const own = bits === 32 ? unary32[op] : unary64[op];
  if (own) return own(c, x);
  const wide = unary64[op] ?? binary64[op];
  if (!wide) return undefined;
  return bits === 64 ? wide(c, x, y) : throughWide(c, operands, wide);
}
