/**
 * Loads and stores between linear memory and the representation of lanes.ts: f16, bf16 and bool are
 * wider in lanes than in memory, short vectors move 4 or 8 bytes.
 */
import type { Expr } from "../../program/statement.ts";
import type { DType } from "../../semantics/dtype.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";
import type { KernelContext, MemoryPlace } from "./kernel-context.ts";
import { chunkLanes, findRepresentation, isNarrowFloat, storageBytes } from "./lanes.ts";
import type { MemoryOp } from "./opcodes.ts";

const scalarLoads: Partial<Record<DType, MemoryOp>> = {
  f64: "f64.load",
  f32: "f32.load",
  f16: "i32.load16_u",
  bf16: "i32.load16_u",
  i64: "i64.load",
  u64: "i64.load",
  i32: "i32.load",
  u32: "i32.load",
  i16: "i32.load16_s",
  u16: "i32.load16_u",
  i8: "i32.load8_s",
  u8: "i32.load8_u",
  bool: "i32.load8_u",
};

const scalarStores: Partial<Record<DType, MemoryOp>> = {
  f64: "f64.store",
  f32: "f32.store",
  f16: "i32.store16",
  bf16: "i32.store16",
  i64: "i64.store",
  u64: "i64.store",
  i32: "i32.store",
  u32: "i32.store",
  i16: "i32.store16",
  u16: "i32.store16",
  i8: "i32.store8",
  u8: "i32.store8",
  bool: "i32.store8",
};

/** Pushes an element, or chunk `chunk` of a vector, read at the load's place. */
export function pushMemoryLoad(
  context: KernelContext,
  place: MemoryPlace,
  e: Extract<Expr, { kind: "load" }>,
  chunk: number,
): void {
  const { f, library, scope } = context;
  const start = scope.pushAddress(context.address(place, e.index));
  if (e.lanes === 1) {
    f.memory(scalarLoads[e.dtype]!, start);
    if (isNarrowFloat(e.dtype)) library.call(f, `load.${e.dtype}`);
    return;
  }
  const bytes = chunkBytes(e.dtype, e.lanes);
  const offset = start + chunk * bytes;
  if (isNarrowFloat(e.dtype) && bytes === 8) {
    f.memory("v128.load16x4_u", offset);
    library.call(f, `load.${e.dtype}x4`);
    return;
  }
  if (bytes === 16) f.memory("v128.load", offset);
  else if (bytes === 8) f.memory("v128.load64_zero", offset);
  else if (bytes === 4) f.memory("v128.load32_zero", offset);
  else context.refuse(`${e.lanes} lanes of ${e.dtype}`);
  if (isNarrowFloat(e.dtype)) {
    f.op("i32x4.extend_low_i16x8_u");
    library.call(f, `load.${e.dtype}x4`);
  } else if (e.dtype === "bool") {
    f.op("i16x8.extend_low_i8x16_u").op("i32x4.extend_low_i16x8_u");
    f.v128Const(new Uint8Array(16)).op("i32x4.ne");
  }
}

/** Stores what `push` pushes for each chunk. */
export function writeMemory(
  context: KernelContext,
  place: MemoryPlace,
  index: readonly IndexExpr[],
  value: { readonly dtype: DType; readonly lanes: number; readonly push: (chunk: number) => void },
): void {
  const { f, library, scope } = context;
  const { dtype, lanes } = value;
  const address = context.address(place, index);
  const chunks = context.chunks(dtype, lanes);
  for (let chunk = 0; chunk < chunks; chunk++) {
    const start = scope.pushAddress(address);
    value.push(chunk);
    if (lanes === 1) {
      if (isNarrowFloat(dtype)) library.call(f, `store.${dtype}`);
      f.memory(scalarStores[dtype]!, start);
    } else {
      const bytes = chunkBytes(dtype, lanes);
      narrowChunk(context, dtype);
      const offset = start + chunk * bytes;
      if (bytes === 16) f.memory("v128.store", offset);
      else if (bytes === 8) f.memoryLane("v128.store64_lane", 0, offset);
      else if (bytes === 4) f.memoryLane("v128.store32_lane", 0, offset);
      else context.refuse(`${lanes} lanes of ${dtype}`);
    }
  }
}

/** Bytes in memory of one chunk of a vector. */
function chunkBytes(dtype: DType, lanes: number): number {
  const each = chunkLanes(findRepresentation(dtype)!.shape);
  return Math.min(lanes, each) * storageBytes(dtype);
}

/** Packs lanes that are wider than their storage into the low bytes. */
function narrowChunk({ f, library }: KernelContext, dtype: DType): void {
  if (isNarrowFloat(dtype)) library.call(f, `store.${dtype}x4`);
  if (dtype === "bool") f.i32Const(31).op("i32x4.shr_u");
  if (!isNarrowFloat(dtype) && dtype !== "bool") return;
  const packed = f.local("v128");
  f.tee(packed).get(packed).op("i16x8.narrow_i32x4_u").release(packed);
  if (dtype === "bool") f.tee(packed).get(packed).op("i8x16.narrow_i16x8_u");
}
