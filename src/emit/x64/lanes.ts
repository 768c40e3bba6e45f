/**
 * How values of the program form are held in x86-64 registers. A scalar float is lane 0 of an xmm
 * register (floats narrower than f32 as f32 on their own grid), a scalar integer a general register
 * extended from its width, bool 0 or 1. A vector is one or more vector registers, its chunks, with lanes
 * as wide as the arithmetic is: narrow floats in f32 lanes, integers below a byte in 32-bit lanes, bool in
 * 32-bit lanes of all ones or zeros, other integers in lanes of their own width. The last chunk may be used in its low lanes only; what the
 * others hold does not matter.
 */
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import type { RegisterBits } from "./operand.ts";

type Holding = "f32" | "f64" | "i32" | "i64" | "i16" | "i8";

const holdings: Readonly<Record<DType, Holding>> = {
  ...{ f64: "f64", f32: "f32", f16: "f32", bf16: "f32" },
  ...{ i64: "i64", u64: "i64", i32: "i32", u32: "i32", bool: "i32" },
  ...{ i16: "i16", u16: "i16", i8: "i8", u8: "i8" },
  ...{ f8e4m3fn: "f32", f8e4m3fnuz: "f32", f8e5m2: "f32", f8e5m2fnuz: "f32", e8m0: "f32" },
  ...{ f4e2m1: "f32", i4: "i32", u4: "i32", i2: "i32", u2: "i32" },
} as const;

export function holdingOf(dtype: DType): Holding {
  return holdings[dtype];
}

export function laneBytes(holding: Holding): number {
  return Number(holding.slice(1)) / 8;
}

export function isFloat(dtype: DType): boolean {
  const holding = holdings[dtype];
  return holding === "f32" || holding === "f64";
}

export function isUnsigned(dtype: DType): boolean {
  return dtypes[dtype].kind === "uint";
}

/** Floats that are computed with in f32, each result rounded to their grid. */
export function isNarrowFloat(dtype: DType): boolean {
  return isFloatDType(dtype) && dtypes[dtype].bits < 32;
}

/** Floats of at most a byte. */
export function isTinyFloat(dtype: DType): boolean {
  return isFloatDType(dtype) && dtypes[dtype].bits <= 8;
}

/** Elements of which several share a byte. */
export function isPacked(dtype: DType): boolean {
  return dtypes[dtype].bits < 8;
}

export function storageBytes(dtype: DType): number {
  return dtypes[dtype].bits / 8;
}

/** One register of a vector value. */
export interface Chunk {
  readonly first: number;
  readonly lanes: number;
  readonly bits: RegisterBits;
}

/** The registers of a vector of `lanes` lanes: full ones, then the smallest that holds the rest. */
export function chunksOf(holding: Holding, lanes: number, vectorBits: 256 | 512): readonly Chunk[] {
  const bytes = laneBytes(holding);
  const each = vectorBits / 8 / bytes;
  const chunks: Chunk[] = [];
  for (let first = 0; first < lanes; first += each) {
    const held = Math.min(each, lanes - first);
    const bits = ([128, 256, 512] as const).find((b) => b / 8 >= held * bytes)!;
    chunks.push({ first, lanes: held, bits });
  }
  return chunks;
}

/** Width of the general register of a scalar integer. */
export function scalarBits(dtype: DType): 32 | 64 {
  return holdings[dtype] === "i64" ? 64 : 32;
}
