/**
 * f32 lanes and the patterns of floats of at most 8 bits (in the low bits of 32-bit lanes): `fromTinyPatterns` widens,
 * `tinyPatterns` narrows a value that is on the grid, `roundTiny` brings values onto it by rounding to nearest
 * even; what lies beyond becomes the largest finite value where it saturates. A format is its row of the dtype
 * table: exponent and mantissa widths, bias, infinities, NaNs. e8m0 is a power of two, rounded up. No step reads
 * a subnormal f32 as a number: programs run with these flushed to zero.
 */
import type { DType } from "../../semantics/dtype.ts";
import { type TinyFloat, tinyFloat } from "../../semantics/tiny-float.ts";
import type { Register } from "./operand.ts";
import { patternOfF32, type VectorCode } from "./vector-code.ts";

const f32Infinity = 0x7f800000;
const f32Nan = 0x7fc00000;
const allButSign = 0x7fffffff;
const f32Sign = -(2 ** 31);
const f32Bias = 127;
const f32Mantissa = 23;

/** Of 32-bit integers, all ones where it holds. */
function test(c: VectorCode, predicate: "equal" | "less" | "greater", a: Register, b: number) {
  return c.lanesOf(c.compareIntegers(predicate, a, c.i32(b), false));
}

/** `then` where 32-bit integers compare so. */
function choose(
  c: VectorCode,
  [predicate, a, b]: readonly ["less" | "greater", Register, number],
  then: Register,
  otherwise: Register,
): Register {
  return c.select(c.compareIntegers(predicate, a, c.i32(b), false), then, otherwise);
}

/** f32 from patterns. */
export function fromTinyPatterns(c: VectorCode, dtype: DType, h: Register): Register {
  if (dtype === "e8m0") return fromPowerPatterns(c, h);
  const t = tinyFloat(dtype);
  const magnitude = c.and(h, c.i32(t.signBit - 1));
  const rebias = (f32Bias - t.bias) * 2 ** f32Mantissa;
  const normal = c.op("vpaddd", c.shl(magnitude, t.spare), c.i32(rebias));
  const lastPlace = t.smallestNormal * 2 ** -t.mantissaBits;
  const small = c.mul(c.op("vcvtdq2ps", magnitude), c.constant(lastPlace));
  const finite = choose(c, ["less", magnitude, 2 ** t.mantissaBits], small, normal);
  const sign = c.shl(c.and(h, c.i32(t.signBit)), 31 - Math.log2(t.signBit));
  return withSpecials(c, t, { h, magnitude, value: c.or(finite, sign) });
}

/** With the infinities and NaNs that stand among the patterns. */
function withSpecials(
  c: VectorCode,
  t: TinyFloat,
  { h, magnitude, value }: Readonly<Record<"h" | "magnitude" | "value", Register>>,
): Register {
  switch (t.nan) {
    case "none":
      return value;
    case "negativeZero":
      return c.or(value, c.and(test(c, "equal", h, t.signBit), c.i32(f32Nan)));
    case "allOnes":
      return c.or(value, c.and(test(c, "equal", magnitude, t.signBit - 1), c.i32(f32Nan)));
    case "ieee": {
      // All ones in the exponent; a mantissa that is not zero stays one, so that NaN stays NaN.
      const top = (2 ** t.exponentBits - 1) * 2 ** t.mantissaBits;
      return c.or(value, c.and(test(c, "greater", magnitude, top - 1), c.i32(f32Infinity)));
    }
  }
}

/** f32 lanes rounded to the format. */
export function roundTiny(c: VectorCode, dtype: DType, x: Register, saturate: boolean): Register {
  if (dtype === "e8m0") return roundPower(c, x, saturate);
  const t = tinyFloat(dtype);
  const bits = c.and(x, c.i32(allButSign));
  const odd = c.and(c.shr(bits, t.spare), c.i32(1));
  const up = c.op("vpaddd", c.op("vpaddd", bits, odd), c.i32(2 ** (t.spare - 1) - 1));
  const normal = c.and(up, c.i32(-(2 ** t.spare)));
  const small = c.sub(c.add(bits, c.constant(t.magic)), c.constant(t.magic));
  const finite = choose(c, ["less", bits, patternOfF32(t.smallestNormal)], small, normal);
  const limit = c.i32(beyond(t, saturate));
  const bounded = choose(c, ["greater", finite, patternOfF32(t.max)], limit, finite);
  const sign = c.and(x, c.i32(f32Sign));
  if (t.nan === "none") {
    return choose(c, ["greater", bits, f32Infinity], c.i32(f32Sign), c.or(bounded, sign));
  }
  // A format without a negative zero gives zero.
  const signed = t.nan === "negativeZero" ? c.without(test(c, "equal", bounded, 0), sign) : sign;
  return choose(c, ["greater", bits, f32Infinity], c.i32(f32Nan), c.or(bounded, signed));
}

function beyond(t: TinyFloat, saturate: boolean): number {
  if (saturate || t.nan === "none") return patternOfF32(t.max);
  return t.hasInfinity ? f32Infinity : f32Nan;
}

/** Patterns of f32 lanes that are on the grid. */
export function tinyPatterns(c: VectorCode, dtype: DType, x: Register): Register {
  if (dtype === "e8m0") return c.shr(x, f32Mantissa);
  const t = tinyFloat(dtype);
  const bits = c.and(x, c.i32(allButSign));
  const rebias = (f32Bias - t.bias) * 2 ** t.mantissaBits;
  const normal = c.op("vpsubd", c.shr(bits, t.spare), c.i32(rebias));
  const shifted = c.add(bits, c.constant(t.magic));
  const small = c.op("vpsubd", shifted, c.i32(patternOfF32(t.magic)));
  const finite = choose(c, ["less", bits, patternOfF32(t.smallestNormal)], small, normal);
  const sign = c.and(c.shr(x, 31 - Math.log2(t.signBit)), c.i32(t.signBit));
  const signed = c.or(patternsOfSpecials(c, t, bits, finite), sign);
  if (t.nan !== "negativeZero") return signed;
  const whole = c.without(test(c, "equal", bits, 0), signed);
  return choose(c, ["greater", bits, f32Infinity], c.i32(t.signBit), whole);
}

/** Infinities and NaN in the place of what their bits would be shifted to. */
function patternsOfSpecials(
  c: VectorCode,
  t: TinyFloat,
  bits: Register,
  finite: Register,
): Register {
  if (t.nan === "none" || t.nan === "negativeZero") return finite;
  if (t.nan === "allOnes") {
    return choose(c, ["greater", bits, f32Infinity - 1], c.i32(t.signBit - 1), finite);
  }
  const top = (2 ** t.exponentBits - 1) * 2 ** t.mantissaBits;
  const quiet = c.i32(top + 2 ** (t.mantissaBits - 1));
  const special = choose(c, ["greater", bits, f32Infinity], quiet, c.i32(top));
  return choose(c, ["greater", bits, f32Infinity - 1], special, finite);
}

const smallestPower = 0x00400000;
const largestPower = 0x7f000000;

function fromPowerPatterns(c: VectorCode, h: Register): Register {
  const bits = c.shl(h, f32Mantissa);
  const small = c.and(test(c, "equal", bits, 0), c.i32(smallestPower));
  const nan = c.and(test(c, "equal", bits, f32Infinity), c.i32(f32Nan));
  return c.or(c.or(bits, small), nan);
}

function roundPower(c: VectorCode, x: Register, saturate: boolean): Register {
  const bits = c.and(x, c.i32(allButSign));
  const carried = c.op("vpaddd", bits, c.i32(2 ** f32Mantissa - 1));
  const next = c.and(carried, c.i32(f32Infinity));
  const power = choose(c, ["greater", bits, smallestPower], next, c.i32(smallestPower));
  const limit = c.i32(saturate ? largestPower : f32Nan);
  const bounded = choose(c, ["greater", power, largestPower], limit, power);
  return choose(c, ["less", bits, f32Infinity], bounded, c.i32(f32Nan));
}
