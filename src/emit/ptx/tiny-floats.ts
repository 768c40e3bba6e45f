/**
 * Floats of at most 8 bits in registers: their pattern in the low bits of a word. Widened exactly by shifting the
 * fields into those of f32 and scaling by the difference of the biases; narrowed from f32 by rounding the bits
 * that are lost to nearest even, below the smallest normal by adding the power of two at whose last place the
 * format's lies. A format is its row of the dtype table: widths, bias, infinities, NaNs. e8m0 is a power of two,
 * rounded up.
 */
import { type DType, dtypes, type FloatFormat } from "../../semantics/dtype.ts";
import { encodeFloat } from "../../semantics/float-codec.ts";
import { invariant } from "../../support/invariant.ts";
import { f32Immediate, type Operand, type PtxCode } from "./ptx-code.ts";

const tinyFloats = [
  ...(["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1", "e8m0"] as const),
] as const;

export type TinyFloat = (typeof tinyFloats)[number];

export function isTinyFloat(dtype: DType): dtype is TinyFloat {
  return (tinyFloats as readonly DType[]).includes(dtype);
}

const [f32Bias, f32Mantissa] = [127, 23];
const [f32Infinity, f32Nan] = [0x7f800000, 0x7fc00000];

interface Format extends FloatFormat {
  /** Bits of the mantissa that f32 has more. */
  readonly spare: number;
  readonly signBit: number;
}

function formatOf(dtype: Exclude<TinyFloat, "e8m0">): Format {
  const { format, bits } = dtypes[dtype];
  invariant(format, () => `${dtype} has no float format`);
  return { ...format, spare: f32Mantissa - format.mantissaBits, signBit: 2 ** (bits - 1) };
}

const bitsOf = (value: number): number =>
  new DataView(Float32Array.of(value).buffer).getUint32(0, true);

/** The pattern as f32. */
export function widenTiny(code: PtxCode, dtype: TinyFloat, x: Operand): Operand {
  if (dtype === "e8m0") return widenPower(code, x);
  const { spare, bias, signBit } = formatOf(dtype);
  const magnitude = code.op("and.b32", "r", x, String(signBit - 1));
  const shifted = code.op("shl.b32", "r", magnitude, String(spare));
  const scaled = code.op("mul.rn.f32", "r", shifted, f32Immediate(2 ** (f32Bias - bias)));
  const bits = withSpecials(code, dtype, { pattern: x, magnitude, shifted, scaled });
  const sign = code.op("and.b32", "r", x, String(signBit));
  return code.op("or.b32", "r", bits, code.op("shl.b32", "r", sign, String(shiftOf(signBit))));
}

/** From the sign of a format to that of f32. */
const shiftOf = (signBit: number): number => 31 - Math.log2(signBit);

interface Widened {
  readonly pattern: Operand;
  readonly magnitude: Operand;
  readonly shifted: Operand;
  readonly scaled: Operand;
}

/** Infinities and NaNs in the place of what their patterns would be scaled to. */
function withSpecials(
  code: PtxCode,
  dtype: Exclude<TinyFloat, "e8m0">,
  { pattern, magnitude, shifted, scaled }: Widened,
): Operand {
  const { nan, signBit } = formatOf(dtype);
  if (nan === "none") return scaled;
  if (nan === "negativeZero") {
    const isNan = code.op("setp.eq.u32", "p", pattern, String(signBit));
    return code.op("selp.b32", "r", String(f32Nan), scaled, isNan);
  }
  const special = encodeFloat(dtype, Infinity, "special");
  const isSpecial = code.op("setp.ge.u32", "p", magnitude, String(special));
  // Where the format has infinities their mantissa is zero, and that of NaNs is not.
  const top = code.op("or.b32", "r", shifted, String(f32Infinity));
  return code.op("selp.b32", "r", top, scaled, isSpecial);
}

/** The pattern of an f32, rounded to nearest even; what lies beyond becomes the largest value, or is special. */
export function narrowTiny(
  code: PtxCode,
  dtype: TinyFloat,
  saturate: boolean,
  x: Operand,
): Operand {
  if (dtype === "e8m0") return narrowPower(code, saturate, x);
  const { signBit, nan } = formatOf(dtype);
  const magnitude = code.op("and.b32", "r", x, "0x7fffffff");
  const finite = roundedBits(code, dtype, magnitude);
  const largest = encodeFloat(dtype, dtypes[dtype].max);
  const isBeyond = code.op("setp.gt.u32", "p", finite, String(largest));
  const beyond = encodeFloat(dtype, Infinity, saturate ? "saturate" : "special");
  const bounded = code.op("selp.b32", "r", String(beyond), finite, isBeyond);
  const shifted = code.op("shr.u32", "r", x, String(shiftOf(signBit)));
  const sign = code.op("and.b32", "r", shifted, String(signBit));
  const signed = code.op("or.b32", "r", bounded, withoutNegativeZero(code, nan, bounded, sign));
  const isNan = code.op("setp.gt.u32", "p", magnitude, String(f32Infinity));
  const ofNan = String(encodeFloat(dtype, Number.NaN));
  if (nan === "ieee" || nan === "allOnes") {
    // A NaN keeps its sign, as the conversions of other machines do.
    const either = code.op("selp.b32", "r", ofNan, bounded, isNan);
    return code.op("or.b32", "r", either, sign);
  }
  return code.op("selp.b32", "r", ofNan, signed, isNan);
}

/** The sign, but of what is zero or NaN where the pattern of -0 is the NaN. */
function withoutNegativeZero(
  code: PtxCode,
  nan: FloatFormat["nan"],
  bounded: Operand,
  sign: Operand,
): Operand {
  if (nan !== "negativeZero") return sign;
  const isZero = code.op("setp.eq.u32", "p", bounded, "0");
  return code.op("selp.b32", "r", "0", sign, isZero);
}

/** The fields of a magnitude's bits, rounded; larger than the largest finite pattern where it is beyond. */
function roundedBits(code: PtxCode, dtype: Exclude<TinyFloat, "e8m0">, bits: Operand): Operand {
  const { spare, bias, mantissaBits } = formatOf(dtype);
  const smallest = 2 ** (1 - bias);
  const magic = smallest * 2 ** spare;
  const odd = code.op("bfe.u32", "r", bits, String(spare), "1");
  const even = code.op("add.u32", "r", bits, odd);
  const up = code.op("add.u32", "r", even, String(2 ** (spare - 1) - 1));
  const cut = code.op("shr.u32", "r", up, String(spare));
  const normal = code.op("sub.u32", "r", cut, String((f32Bias - bias) * 2 ** mantissaBits));
  const added = code.op("add.rn.f32", "r", bits, f32Immediate(magic));
  const small = code.op("sub.u32", "r", added, String(bitsOf(magic)));
  const isSmall = code.op("setp.lt.u32", "p", bits, String(bitsOf(smallest)));
  return code.op("selp.b32", "r", small, normal, isSmall);
}

/** 2^-127, which f32 has below its normal values, and 2^127. */
const [smallestPower, largestPower] = [0x00400000, 0x7f000000];

function widenPower(code: PtxCode, x: Operand): Operand {
  const bits = code.op("shl.b32", "r", x, String(f32Mantissa));
  const isSmall = code.op("setp.eq.u32", "p", bits, "0");
  const power = code.op("selp.b32", "r", String(smallestPower), bits, isSmall);
  const isNan = code.op("setp.eq.u32", "p", bits, String(f32Infinity));
  return code.op("selp.b32", "r", String(f32Nan), power, isNan);
}

function narrowPower(code: PtxCode, saturate: boolean, x: Operand): Operand {
  const bits = code.op("and.b32", "r", x, "0x7fffffff");
  const up = code.op("add.u32", "r", bits, String(2 ** f32Mantissa - 1));
  const isSmall = code.op("setp.le.u32", "p", bits, String(smallestPower));
  const field = code.op("shr.u32", "r", up, String(f32Mantissa));
  const power = code.op("selp.b32", "r", "0", field, isSmall);
  const isBeyond = code.op("setp.gt.u32", "p", power, String(largestPower >>> f32Mantissa));
  const limit = encodeFloat("e8m0", dtypes.f64.max, saturate ? "saturate" : "special");
  const bounded = code.op("selp.b32", "r", String(limit), power, isBeyond);
  const isSpecial = code.op("setp.ge.u32", "p", bits, String(f32Infinity));
  return code.op("selp.b32", "r", String(encodeFloat("e8m0", Number.NaN)), bounded, isSpecial);
}
