/**
 * How values of the program form are held in WebAssembly. A scalar is one local: floats narrower than
 * f32 as f32 on their own grid, integers up to 32 bits as i32 extended from their width, bool as 0 or
 * 1. A vector is one or more v128 chunks, with lanes as wide as the arithmetic is: narrow floats in f32
 * lanes, integers below a byte in i32 lanes, bool as a 32-bit mask of all ones or zeros; other integers in lanes of their own width. The
 * last chunk may be used in its low lanes only; what the others hold does not matter.
 */
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { integerRange } from "../../semantics/integer.ts";
import type { FunctionBuilder } from "./function-builder.ts";
import type { LaneOp, PlainOp } from "./opcodes.ts";

export type Shape = "f32x4" | "f64x2" | "i32x4" | "i64x2" | "i16x8" | "i8x16";

interface Representation {
  readonly shape: Shape;
  readonly scalar: "i32" | "i64" | "f32" | "f64";
}

const f32: Representation = { shape: "f32x4", scalar: "f32" };
const f64: Representation = { shape: "f64x2", scalar: "f64" };
const i32: Representation = { shape: "i32x4", scalar: "i32" };
const i64: Representation = { shape: "i64x2", scalar: "i64" };
const i16: Representation = { shape: "i16x8", scalar: "i32" };
const i8: Representation = { shape: "i8x16", scalar: "i32" };

const representations: Readonly<Record<DType, Representation>> = {
  ...{ f64, f32, f16: f32, bf16: f32 },
  ...{ i64, u64: i64, i32, u32: i32, bool: i32 },
  ...{ i16, u16: i16, i8, u8: i8 },
  ...{ f8e4m3fn: f32, f8e4m3fnuz: f32, f8e5m2: f32, f8e5m2fnuz: f32, f4e2m1: f32, e8m0: f32 },
  ...{ i4: i32, u4: i32, i2: i32, u2: i32 },
};

export function findRepresentation(dtype: DType): Representation | undefined {
  return representations[dtype];
}

/** Lanes of one chunk. */
export function chunkLanes(shape: Shape): number {
  return Number(shape.slice(shape.indexOf("x") + 1));
}

/** Chunks that a vector of `lanes` lanes takes; the last may be partly used. */
export function chunkCount(shape: Shape, lanes: number): number {
  return Math.ceil(lanes / chunkLanes(shape));
}

export function storageBytes(dtype: DType): number {
  return dtypes[dtype].bits / 8;
}

/** Floats that are computed with in f32, each result rounded to their grid. */
export function isNarrowFloat(dtype: DType): boolean {
  return isFloatDType(dtype) && dtypes[dtype].bits < 32;
}

export function isUnsigned(dtype: DType): boolean {
  return dtypes[dtype].kind === "uint";
}

/** Extends an i32 that an operation left outside its width; nothing for 32-bit types. */
export function pushNormalized(f: FunctionBuilder, dtype: DType): void {
  if (dtype === "i8") f.op("i32.extend8_s");
  else if (dtype === "i16") f.op("i32.extend16_s");
  else if (dtype === "u8") f.i32Const(0xff).op("i32.and");
  else if (dtype === "u16") f.i32Const(0xffff).op("i32.and");
  else pushNormalizedBits(f, dtype);
}

function pushNormalizedBits(f: FunctionBuilder, dtype: DType): void {
  const { bits, kind } = dtypes[dtype];
  if (bits >= 8) return;
  if (kind === "uint") f.i32Const(2 ** bits - 1).op("i32.and");
  else {
    f.i32Const(32 - bits).op("i32.shl");
    f.i32Const(32 - bits).op("i32.shr_s");
  }
}

/** A constant of any dtype as a scalar. */
export function pushScalarLiteral(f: FunctionBuilder, dtype: DType, value: number | bigint): void {
  const scalar = representations[dtype]!.scalar;
  if (scalar === "i64") f.i64Const(BigInt(value));
  else if (scalar === "i32") f.i32Const(Number(value));
  else if (scalar === "f32") f.f32Const(Number(value));
  else f.f64Const(Number(value));
}

/** A constant of any dtype in all lanes of a chunk. */
export function pushSplatLiteral(f: FunctionBuilder, dtype: DType, value: number | bigint): void {
  const shape = representations[dtype]!.shape;
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  const step = 16 / chunkLanes(shape);
  const lane = dtype === "bool" ? (value ? -1 : 0) : value;
  for (let at = 0; at < 16; at += step) setLane(view, at, shape, lane);
  f.v128Const(bytes);
}

function setLane(view: DataView, at: number, shape: Shape, value: number | bigint): void {
  if (shape === "i64x2") view.setBigInt64(at, BigInt(value), true);
  else if (shape === "f64x2") view.setFloat64(at, Number(value), true);
  else if (shape === "f32x4") view.setFloat32(at, Number(value), true);
  else if (shape === "i32x4") view.setInt32(at, Number(value), true);
  else if (shape === "i16x8") view.setInt16(at, Number(value), true);
  else view.setInt8(at, Number(value));
}

export function splatOp(shape: Shape): PlainOp {
  return `${shape}.splat`;
}

/** Replaces the vector on the stack by one of its lanes as a scalar of the dtype. */
export function pushExtractedLane(f: FunctionBuilder, dtype: DType, lane: number): void {
  const { shape } = representations[dtype]!;
  if (shape === "i16x8" || shape === "i8x16") {
    f.lane(`${shape}.extract_lane_${isUnsigned(dtype) ? "u" : "s"}`, lane);
    return;
  }
  f.lane(`${shape}.extract_lane`, lane);
  if (dtype === "bool") f.i32Const(1).op("i32.and");
}

/** Puts the scalar on top of the stack into a lane of the vector below it. */
export function pushReplacedLane(f: FunctionBuilder, dtype: DType, lane: number): void {
  if (dtype === "bool") f.i32Const(-1).op("i32.mul");
  f.lane(`${representations[dtype]!.shape}.replace_lane` as LaneOp, lane);
}

/** Clamps the i64 on the stack, which holds any integer but u64 beyond 2^63, to a dtype's range. */
export function pushClamped(f: FunctionBuilder, dtype: DType): void {
  const { min, max } = integerRange(dtype);
  const value = f.local("i64");
  const limit = (bound: bigint, beyond: PlainOp) => {
    f.set(value).i64Const(bound).get(value).get(value).i64Const(bound).op(beyond).op("select");
  };
  limit(min, "i64.lt_s");
  if (max < 1n << 63n) limit(max, "i64.gt_s");
  f.release(value);
}
