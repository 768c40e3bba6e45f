/**
 * Conversions between float64 numbers and the bit patterns of every float format, rounding to
 * nearest, ties to even, in one step (no intermediate format, so no double rounding). The idea: scale
 * by the power of two that makes the target's unit in the last place equal 1, round to an integer
 * by adding and subtracting 2^52 (exact ties-to-even in float64), and put the fields together by
 * addition, so that a carry out of the mantissa moves into the exponent by itself.
 * Overflow: to infinity or NaN ("special") or to the largest finite value ("saturate"), as ONNX
 * Cast does. Bit patterns are non-negative integers; f64 has no pattern here (it is the number).
 */
import { invariant } from "../support/invariant.ts";
import { type DType, dtypes, type FloatFormat } from "./dtype.ts";

/** What a value beyond the largest finite one becomes. */
export type Overflow = "special" | "saturate";

const scratchDouble = new Float64Array(1);
const scratchWords = new Uint32Array(scratchDouble.buffer);

/** floor(log2 |x|) of a finite non-zero normal float64; -1023 for zero and subnormals. */
function exponentOf(x: number): number {
  scratchDouble[0] = x;
  return ((scratchWords[1]! >>> 20) & 0x7ff) - 1023;
}

/** 2^e for the exponent of a normal float64; much faster than `**`. */
function powerOfTwo(e: number): number {
  scratchWords[0] = 0;
  scratchWords[1] = (e + 1023) << 20;
  return scratchDouble[0]!;
}

/** 2^52: adding it to 0 <= q < 2^52 rounds q to an integer, ties to even. */
const roundingMagic = 4503599627370496;

function roundHalfEvenPositive(q: number): number {
  return q + roundingMagic - roundingMagic;
}

/** Rounds any float64 to an integer, ties to even. */
export function roundHalfEven(x: number): number {
  if (!(Math.abs(x) < roundingMagic)) return x;
  const magnitude = roundHalfEvenPositive(Math.abs(x));
  return x < 0 || Object.is(x, -0) ? -magnitude : magnitude;
}

/** Derived constants of a format, computed once. */
interface Codec {
  readonly format: FloatFormat;
  /** Exponent of the smallest normal. */
  readonly minExponent: number;
  readonly mantissaScale: number;
  readonly signBit: number;
  readonly maxBits: number;
  readonly max: number;
  readonly nanBits: number;
  readonly infinityBits: number;
}

function makeCodec(dtype: DType): Codec {
  const { format, max, bits } = dtypes[dtype];
  invariant(format, () => `${dtype} has no float format`);
  const mantissaScale = 2 ** format.mantissaBits;
  const signBit = 2 ** (bits - 1);
  const topField = (2 ** format.exponentBits - 1) * mantissaScale;
  const nanBits = {
    ieee: topField + mantissaScale / 2, // the quiet bit
    allOnes: signBit - 1,
    negativeZero: signBit,
    // No NaN to give: -0, as the conformance data of ONNX Cast to FLOAT4E2M1 has it.
    none: signBit,
  }[format.nan];
  const maxBits = {
    ieee: topField - 1,
    allOnes: signBit - 2,
    negativeZero: signBit - 1,
    none: signBit - 1,
  };
  return {
    format,
    minExponent: 1 - format.bias,
    mantissaScale,
    signBit,
    maxBits: maxBits[format.nan],
    max,
    nanBits,
    infinityBits: format.hasInfinity ? topField : nanBits,
  };
}

const codecs = new Map<DType, Codec>();

function codecOf(dtype: DType): Codec {
  let codec = codecs.get(dtype);
  if (!codec) {
    codec = makeCodec(dtype);
    codecs.set(dtype, codec);
  }
  return codec;
}

function encodeWith(codec: Codec, x: number, overflow: Overflow): number {
  // The sign of a NaN is not kept: JavaScript does not show it.
  if (Number.isNaN(x)) return codec.nanBits;
  const negative = x < 0 || Object.is(x, -0);
  const sign = negative ? codec.signBit : 0;
  const magnitude = Math.abs(x);
  let bits = magnitude === Infinity ? codec.maxBits + 1 : 0;
  if (magnitude > 0 && magnitude < Infinity) {
    const exponent = Math.max(exponentOf(magnitude), codec.minExponent);
    const scale = powerOfTwo(codec.format.mantissaBits - exponent);
    bits = (exponent - codec.minExponent) * codec.mantissaScale;
    bits += roundHalfEvenPositive(magnitude * scale);
  }
  if (bits > codec.maxBits) return overflowBits(codec, sign, overflow);
  if (bits === 0 && codec.format.nan === "negativeZero") return 0;
  return sign + bits;
}

function overflowBits(codec: Codec, sign: number, overflow: Overflow): number {
  if (overflow === "saturate" || codec.format.nan === "none") return sign + codec.maxBits;
  return codec.format.nan === "negativeZero" ? codec.nanBits : sign + codec.infinityBits;
}

function decodeWith(codec: Codec, bits: number): number {
  const { format, mantissaScale, signBit } = codec;
  const negative = bits >= signBit;
  const magnitudeBits = negative ? bits - signBit : bits;
  if (format.nan === "negativeZero" && bits === signBit) return Number.NaN;
  if (magnitudeBits > codec.maxBits) {
    return format.hasInfinity && magnitudeBits === codec.infinityBits
      ? negative
        ? -Infinity
        : Infinity
      : Number.NaN;
  }
  const field = Math.floor(magnitudeBits / mantissaScale);
  const mantissa = magnitudeBits - field * mantissaScale;
  const exponent = Math.max(field, 1) - format.bias - format.mantissaBits;
  const magnitude = (mantissa + (field > 0 ? mantissaScale : 0)) * 2 ** exponent;
  return negative ? -magnitude : magnitude;
}

/**
 * e8m0 from a magnitude, rounded up to a power of two (the default of ONNX Cast; with `u` the result,
 * rounding down is `u > x ? u / 2 : u`, to the nearest `x < 3/4 u ? u / 2 : u`). NaN and infinity give
 * NaN, the sign is ignored, underflow gives 2^-127.
 */
export function encodeExponent(x: number, overflow: Overflow): number {
  const magnitude = Math.abs(x);
  if (!(magnitude < Infinity)) return 0xff;
  const floorExponent = exponentOf(magnitude);
  const isPower = magnitude === 2 ** floorExponent;
  const field = (isPower ? floorExponent : floorExponent + 1) + 127;
  if (field > 254) return overflow === "saturate" ? 254 : 0xff;
  return Math.max(field, 0);
}

/** The bit pattern of `x` in a float format of at most 32 bits, or in e8m0. */
export function encodeFloat(dtype: DType, x: number, overflow: Overflow = "special"): number {
  if (dtype === "e8m0") return encodeExponent(x, overflow);
  invariant(dtype !== "f64", () => "f64 is not encoded through a bit pattern");
  return encodeWith(codecOf(dtype), x, overflow);
}

/** The value of a bit pattern in a float format of at most 32 bits, or in e8m0. */
export function decodeFloat(dtype: DType, bits: number): number {
  if (dtype === "e8m0") return bits === 0xff ? Number.NaN : 2 ** (bits - 127);
  invariant(dtype !== "f64", () => "f64 is not decoded from a bit pattern");
  return decodeWith(codecOf(dtype), bits);
}

/** What decoding the encoding of `x` gives, without the detour over bits where `x` is in range. */
function roundWith(codec: Codec, x: number, overflow: Overflow): number {
  const magnitude = Math.abs(x);
  if (magnitude > 0 && magnitude <= codec.max) {
    const exponent = Math.max(exponentOf(magnitude), codec.minExponent);
    const scale = powerOfTwo(codec.format.mantissaBits - exponent);
    const rounded =
      roundHalfEvenPositive(magnitude * scale) * powerOfTwo(exponent - codec.format.mantissaBits);
    if (rounded > 0) return x < 0 ? -rounded : rounded;
  }
  return decodeWith(codec, encodeWith(codec, x, overflow));
}

/** `x` rounded to the nearest value of the format (as a float64). */
export function roundToFloat(dtype: DType, x: number, overflow: Overflow = "special"): number {
  if (dtype === "f64") return x;
  if (dtype === "f32" && overflow === "special") return Math.fround(x);
  if (dtype === "e8m0") return decodeFloat(dtype, encodeExponent(x, overflow));
  return roundWith(codecOf(dtype), x, overflow);
}

/** Rounds every element in place to the grid of a float dtype. */
export function roundArrayToFloat(dtype: DType, values: Float64Array): void {
  if (dtype === "f64") return;
  if (dtype === "f32") {
    for (let i = 0; i < values.length; i++) values[i] = Math.fround(values[i]!);
    return;
  }
  if (dtype === "e8m0") {
    for (let i = 0; i < values.length; i++) values[i] = roundToFloat(dtype, values[i]!);
    return;
  }
  const codec = codecOf(dtype);
  for (let i = 0; i < values.length; i++) values[i] = roundWith(codec, values[i]!, "special");
}

const decodeTables = new Map<DType, Float64Array>();

/** All values of a float dtype of at most 16 bits, indexed by bit pattern. */
export function decodeTableOf(dtype: DType): Float64Array {
  let values = decodeTables.get(dtype);
  if (!values) {
    invariant(dtypes[dtype].bits <= 16, () => `no decode table for ${dtype}`);
    values = Float64Array.from({ length: 2 ** dtypes[dtype].bits }, (_, bits) =>
      decodeFloat(dtype, bits),
    );
    decodeTables.set(dtype, values);
  }
  return values;
}

/** Encodes a whole array into 8- or 16-bit patterns. */
export function encodeFloatArray(
  dtype: DType,
  from: ArrayLike<number>,
  to: Uint8Array | Uint16Array,
  overflow: Overflow = "special",
): void {
  if (dtype === "e8m0") {
    for (let i = 0; i < from.length; i++) to[i] = encodeExponent(from[i]!, overflow);
    return;
  }
  const codec = codecOf(dtype);
  for (let i = 0; i < from.length; i++) to[i] = encodeWith(codec, from[i]!, overflow);
}

/** Decodes a whole array of 8- or 16-bit patterns. */
export function decodeFloatArray(
  dtype: DType,
  from: ArrayLike<number>,
  to: Float32Array | Float64Array,
): void {
  const values = decodeTableOf(dtype);
  for (let i = 0; i < from.length; i++) to[i] = values[from[i]!]!;
}
