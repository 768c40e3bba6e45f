/**
 * Integer arithmetic of fixed width: wrapping to a dtype (two's complement), saturating to it, and
 * its exact range. Up to 32 bits the values are numbers, i64 and u64 are BigInts. Conversions from
 * floats truncate toward zero first; NaN becomes 0.
 */
import { type DType, dtypes } from "./dtype.ts";

/** Smallest and largest value of an integer dtype, exact. */
export function integerRange(dtype: DType): { readonly min: bigint; readonly max: bigint } {
  const { bits, kind } = dtypes[dtype];
  if (kind === "bool") return { min: 0n, max: 1n };
  if (kind === "uint") return { min: 0n, max: (1n << BigInt(bits)) - 1n };
  return { min: -(1n << BigInt(bits - 1)), max: (1n << BigInt(bits - 1)) - 1n };
}

/** `x`, an integer of magnitude below 2^53, modulo the width of an integer dtype of <= 32 bits. */
export function wrapInteger(dtype: DType, x: number): number {
  if (dtype === "i32") return x | 0;
  if (dtype === "u32") return x >>> 0;
  const { bits, kind } = dtypes[dtype];
  const shift = 32 - bits;
  // `<<` takes the low 32 bits of any integer, so the width's low bits survive.
  return kind === "int" ? (x << shift) >> shift : (x << shift) >>> shift;
}

/** `x` modulo the width of i64 or u64. */
export function wrapBig(dtype: DType, x: bigint): bigint {
  return dtype === "i64" ? BigInt.asIntN(64, x) : BigInt.asUintN(64, x);
}

/** `x` truncated toward zero and clamped to the range of an integer dtype of <= 32 bits. */
export function saturateInteger(dtype: DType, x: number): number {
  const { min, max } = dtypes[dtype];
  if (Number.isNaN(x)) return 0;
  return Math.min(max, Math.max(min, Math.trunc(x))) + 0;
}

/** A float truncated toward zero and clamped to the range of i64 or u64. */
export function saturateBig(dtype: DType, x: number): bigint {
  const { min, max } = integerRange(dtype);
  if (Number.isNaN(x)) return 0n;
  if (x >= Number(max)) return max;
  if (x <= Number(min)) return min;
  return BigInt(Math.trunc(x));
}

/** A BigInt clamped to the range of any integer dtype. */
export function clampBig(dtype: DType, x: bigint): bigint {
  const { min, max } = integerRange(dtype);
  return x < min ? min : x > max ? max : x;
}
