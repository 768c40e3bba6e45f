/**
 * The element types as one data table: width, kind, and for floats the encoding (exponent and
 * mantissa bits, bias, what infinities and NaNs look like, range). Sources: IEEE 754-2019 for f16,
 * f32, f64; the OCP FP8 and MX specifications for f8e4m3fn, f8e5m2, f4e2m1, e8m0; the ONNX
 * documentation ("Float stored in 8 bits") for the FNUZ pair. Conversions are in float-codec.ts and
 * integer.ts, storage in packing.ts and tensor.ts.
 */

/** Bit fields of a float format, sign first, then exponent, then mantissa. */
export interface FloatFormat {
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly bias: number;
  /** Whether the all-ones exponent with zero mantissa means infinity. */
  readonly hasInfinity: boolean;
  /**
   * Where NaNs are: `ieee` all-ones exponent with non-zero mantissa, `allOnes` only the all-ones
   * pattern of each sign, `negativeZero` only the pattern of -0 (so there is no -0), `none`.
   */
  readonly nan: "ieee" | "allOnes" | "negativeZero" | "none";
}

interface DTypeRow {
  readonly bits: number;
  readonly kind: "float" | "int" | "uint" | "bool" | "exponent";
  /** Largest finite value; `i64` and `u64` have exact bounds in `integerRange` (integer.ts). */
  readonly max: number;
  /** Lowest finite value. */
  readonly min: number;
  readonly format?: FloatFormat;
}

function float(
  exponentBits: number,
  mantissaBits: number,
  bias: number,
  nan: FloatFormat["nan"] = "ieee",
): DTypeRow {
  const hasInfinity = nan === "ieee";
  const topExponent = 2 ** exponentBits - 1 - bias - (hasInfinity ? 1 : 0);
  const lostUlps = nan === "allOnes" ? 2 : 1;
  const max = 2 ** topExponent * (2 - lostUlps * 2 ** -mantissaBits);
  const format = { exponentBits, mantissaBits, bias, hasInfinity, nan };
  return { bits: 1 + exponentBits + mantissaBits, kind: "float", max, min: -max, format };
}

function int(bits: number): DTypeRow {
  return { bits, kind: "int", max: 2 ** (bits - 1) - 1, min: -(2 ** (bits - 1)) };
}

function uint(bits: number): DTypeRow {
  return { bits, kind: "uint", max: 2 ** bits - 1, min: 0 };
}

const table = {
  f64: float(11, 52, 1023),
  f32: float(8, 23, 127),
  f16: float(5, 10, 15),
  bf16: float(8, 7, 127),
  f8e4m3fn: float(4, 3, 7, "allOnes"),
  f8e4m3fnuz: float(4, 3, 8, "negativeZero"),
  f8e5m2: float(5, 2, 15),
  f8e5m2fnuz: float(5, 2, 16, "negativeZero"),
  f4e2m1: float(2, 1, 1, "none"),
  // An unsigned power of two 2^(bits - 127); 0xff is NaN; there is no zero.
  e8m0: { bits: 8, kind: "exponent", max: 2 ** 127, min: 2 ** -127 },
  i2: int(2),
  i4: int(4),
  i8: int(8),
  i16: int(16),
  i32: int(32),
  i64: int(64),
  u2: uint(2),
  u4: uint(4),
  u8: uint(8),
  u16: uint(16),
  u32: uint(32),
  u64: uint(64),
  // Computed with as 0 or 1; stored as one byte.
  bool: { bits: 8, kind: "bool", max: 1, min: 0 },
} as const satisfies Record<string, DTypeRow>;

export type DType = keyof typeof table;

/** A row of the dtype table. */
export interface DTypeInfo extends DTypeRow {
  readonly name: DType;
}

/** Every dtype in table order. */
export const allDTypes = Object.keys(table) as readonly DType[];

/** The table: what is known of each dtype. */
export const dtypes: Readonly<Record<DType, DTypeInfo>> = Object.fromEntries(
  allDTypes.map((name) => [name, { name, ...table[name] }]),
) as Record<DType, DTypeInfo>;

/** Dtypes whose reference values are BigInts. */
export type BigDType = "i64" | "u64";

export function isDType(name: string): name is DType {
  return Object.hasOwn(table, name);
}

/** Whether values are real numbers: a float format or e8m0. */
export function isFloatDType(dtype: DType): boolean {
  return dtypes[dtype].kind === "float" || dtypes[dtype].kind === "exponent";
}

/** Whether values are floats of 16 bits, of either kind. */
export function isHalfDType(dtype: DType): boolean {
  return dtype === "f16" || dtype === "bf16";
}

/** Whether values are signed or unsigned integers (bool is neither). */
export function isIntegerDType(dtype: DType): boolean {
  return dtypes[dtype].kind === "int" || dtypes[dtype].kind === "uint";
}

export function isBigDType(dtype: DType): dtype is BigDType {
  return dtype === "i64" || dtype === "u64";
}

/** Zero as the values of a dtype are held. */
export function zeroOf(dtype: DType): number | bigint {
  return isBigDType(dtype) ? 0n : 0;
}

/** Bytes that `count` elements occupy in storage; sub-byte types are packed. */
export function storageBytes(dtype: DType, count: number): number {
  return Math.ceil((count * dtypes[dtype].bits) / 8);
}

/** Whether every number of one type is a number of the other. */
export function holdsAll(to: DType, from: DType): boolean {
  const [wide, narrow] = [dtypes[to], dtypes[from]];
  if (to === from) return true;
  if (narrow.kind === "bool") return wide.kind !== "bool";
  if (wide.kind === "float" && wide.format) {
    // Above the smallest numbers a type with as many bits in both parts has all of the other.
    if (narrow.kind === "float" && narrow.format) {
      const [a, b] = [wide.format, narrow.format];
      return a.mantissaBits > b.mantissaBits && a.exponentBits >= b.exponentBits;
    }
    return narrow.kind !== "float" && narrow.bits <= wide.format.mantissaBits;
  }
  if (wide.kind === "float" || narrow.kind === "float") return false;
  return wide.min <= narrow.min && wide.bits > narrow.bits;
}
