/**
 * Four lanes between f32 and the patterns of floats of at most 8 bits (in the low bits of i32 lanes):
 * `load` widens, `store` narrows a value that is on the grid, `round` brings values onto it by rounding
 * to nearest even, `saturate` too but with the largest finite value in the place of what lies beyond.
 * A format is its row of the dtype table: exponent and mantissa widths, bias, infinities, NaNs. e8m0 is
 * a power of two, rounded up.
 */
import type { DType } from "../../semantics/dtype.ts";
import { type TinyFloat, tinyFloat } from "../../semantics/tiny-float.ts";
import type { LibraryRow } from "./library.ts";
import { type V, VectorCode } from "./vector-code.ts";

const f32Infinity = 0x7f800000;
const f32Nan = 0x7fc00000;
const allButSign = 0x7fffffff;
const f32Bias = 127;
const f32Mantissa = 23;

const patternOf = (value: number): number =>
  new DataView(Float32Array.of(value).buffer).getInt32(0, true);

function vectorRow(body: (c: VectorCode, x: V) => V): LibraryRow {
  return {
    signature: { params: ["v128"], results: ["v128"] },
    body: (f) => {
      const c = new VectorCode(f);
      body(c, c.param(0))();
    },
  };
}

function load(t: TinyFloat) {
  return (c: VectorCode, h: V): V => {
    const magnitude = c.keep(c.and(h, c.i32(t.signBit - 1)));
    const scaled = c.mul(c.shift("shl", magnitude, t.spare), c.f32(2 ** (f32Bias - t.bias)));
    const sign = c.shift("shl", c.and(h, c.i32(t.signBit)), 31 - Math.log2(t.signBit));
    return c.or(c.or(scaled, sign), specialMask(c, t, h, magnitude));
  };
}

/** Bits that make an infinity or NaN of what the pattern's magnitude was read as. */
function specialMask(c: VectorCode, t: TinyFloat, h: V, magnitude: V): V {
  if (t.nan === "none") return c.i32(0);
  if (t.nan === "negativeZero") {
    return c.and(c.op("i32x4.eq", h, c.i32(t.signBit)), c.i32(f32Nan));
  }
  if (t.nan === "allOnes") {
    return c.and(c.op("i32x4.eq", magnitude, c.i32(t.signBit - 1)), c.i32(f32Nan));
  }
  const top = (2 ** t.exponentBits - 1) * 2 ** t.mantissaBits;
  return c.and(c.op("i32x4.ge_s", magnitude, c.i32(top)), c.i32(f32Infinity));
}

function round(t: TinyFloat, saturate: boolean) {
  return (c: VectorCode, x: V): V => {
    const bits = c.keep(c.and(x, c.i32(allButSign)));
    const odd = c.and(c.shift("shr_u", bits, t.spare), c.i32(1));
    const up = c.op("i32x4.add", c.op("i32x4.add", bits, odd), c.i32(2 ** (t.spare - 1) - 1));
    const normal = c.and(up, c.i32(-(2 ** t.spare)));
    const small = c.sub(c.add(bits, c.f32(t.magic)), c.f32(t.magic));
    const isSmall = c.op("i32x4.lt_s", bits, c.i32(patternOf(t.smallestNormal)));
    const finite = c.keep(c.select(isSmall, small, normal));
    const isBeyond = c.op("i32x4.gt_s", finite, c.i32(patternOf(t.max)));
    const bounded = c.keep(c.select(isBeyond, c.i32(beyond(t, saturate)), finite));
    const sign = c.and(x, c.i32(-(2 ** 31)));
    const isNan = c.op("i32x4.gt_s", bits, c.i32(f32Infinity));
    if (t.nan === "none") return c.select(isNan, c.i32(-(2 ** 31)), c.or(bounded, sign));
    const signed = t.nan === "negativeZero" ? c.and(sign, nonZero(c, bounded)) : sign;
    return c.select(isNan, c.i32(f32Nan), c.or(bounded, signed));
  };
}

const nonZero = (c: VectorCode, bits: V): V => c.op("i32x4.ne", bits, c.i32(0));

function beyond(t: TinyFloat, saturate: boolean): number {
  if (saturate || t.nan === "none") return patternOf(t.max);
  return t.hasInfinity ? f32Infinity : f32Nan;
}

function store(t: TinyFloat) {
  return (c: VectorCode, x: V): V => {
    const bits = c.keep(c.and(x, c.i32(allButSign)));
    const rebias = (f32Bias - t.bias) * 2 ** t.mantissaBits;
    const normal = c.op("i32x4.sub", c.shift("shr_u", bits, t.spare), c.i32(rebias));
    const small = c.op("i32x4.sub", c.add(bits, c.f32(t.magic)), c.i32(patternOf(t.magic)));
    const isSmall = c.op("i32x4.lt_s", bits, c.i32(patternOf(t.smallestNormal)));
    const finite = c.select(isSmall, small, normal);
    const sign = c.and(c.shift("shr_u", x, 31 - Math.log2(t.signBit)), c.i32(t.signBit));
    const signed = c.or(storedSpecials(c, t, bits, finite), sign);
    if (t.nan !== "negativeZero") return signed;
    const isNan = c.op("i32x4.gt_s", bits, c.i32(f32Infinity));
    return c.select(isNan, c.i32(t.signBit), c.and(signed, nonZero(c, bits)));
  };
}

/** Infinities and NaN in the place of what their bits would be shifted to. */
function storedSpecials(c: VectorCode, t: TinyFloat, bits: V, finite: V): V {
  if (t.nan === "none" || t.nan === "negativeZero") return finite;
  const isSpecial = c.op("i32x4.ge_s", bits, c.i32(f32Infinity));
  if (t.nan === "allOnes") return c.select(isSpecial, c.i32(t.signBit - 1), finite);
  const top = (2 ** t.exponentBits - 1) * 2 ** t.mantissaBits;
  const isNan = c.op("i32x4.gt_s", bits, c.i32(f32Infinity));
  const special = c.select(isNan, c.i32(top + 2 ** (t.mantissaBits - 1)), c.i32(top));
  return c.select(isSpecial, special, finite);
}

const smallestPower = 0x00400000;
const largestPower = 0x7f000000;

function loadPower(c: VectorCode, h: V): V {
  const bits = c.keep(c.shift("shl", h, f32Mantissa));
  const zero = c.op("i32x4.eq", bits, c.i32(0));
  const small = c.and(zero, c.i32(smallestPower));
  const isNan = c.op("i32x4.eq", bits, c.i32(f32Infinity));
  return c.or(c.or(bits, small), c.and(isNan, c.i32(f32Nan)));
}

function roundPower(saturate: boolean) {
  return (c: VectorCode, x: V): V => {
    const bits = c.keep(c.and(x, c.i32(allButSign)));
    const next = c.and(c.op("i32x4.add", bits, c.i32(2 ** f32Mantissa - 1)), c.i32(f32Infinity));
    const isSmall = c.op("i32x4.le_s", bits, c.i32(smallestPower));
    const power = c.keep(c.select(isSmall, c.i32(smallestPower), next));
    const isBeyond = c.op("i32x4.gt_s", power, c.i32(largestPower));
    const limit = c.i32(saturate ? largestPower : f32Nan);
    const bounded = c.select(isBeyond, limit, power);
    const isSpecial = c.op("i32x4.ge_s", bits, c.i32(f32Infinity));
    return c.select(isSpecial, c.i32(f32Nan), bounded);
  };
}

function rowsOf(dtype: DType): readonly (readonly [string, LibraryRow])[] {
  const t = tinyFloat(dtype);
  return [
    [`load.${dtype}x4`, vectorRow(load(t))],
    [`store.${dtype}x4`, vectorRow(store(t))],
    [`round.${dtype}x4`, vectorRow(round(t, false))],
    [`saturate.${dtype}x4`, vectorRow(round(t, true))],
  ];
}

export const tinyFloats = [
  ...(["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"] as const),
] as const;

export const tinyFloatRows: readonly (readonly [string, LibraryRow])[] = [
  ...tinyFloats.flatMap(rowsOf),
  ["load.e8m0x4", vectorRow(loadPower)],
  ["store.e8m0x4", vectorRow((c, x) => c.shift("shr_u", x, f32Mantissa))],
  ["round.e8m0x4", vectorRow(roundPower(false))],
  ["saturate.e8m0x4", vectorRow(roundPower(true))],
];
