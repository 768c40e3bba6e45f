/**
 * Loads and stores between linear memory and the representation of lanes.ts: f16, bf16 and bool are
 * wider in lanes than in memory, short vectors move 4 or 8 bytes.
 */
import type { Expr } from "../../program/statement.ts";
import type { DType } from "../../semantics/dtype.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";
import type { KernelContext, MemoryPlace } from "./kernel-context.ts";
import {
  chunkLanes,
  findRepresentation,
  isNarrowFloat,
  pushExtractedLane,
  pushReplacedLane,
  pushSplatLiteral,
  storageBytes,
} from "./lanes.ts";
import type { MemoryOp } from "./opcodes.ts";
import { isPacked, pushPackedLoad, writePacked } from "./packed-memory.ts";

const byteFloats = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "e8m0"] as const;

const scalarLoads: Partial<Record<DType, MemoryOp>> = {
  ...Object.fromEntries(byteFloats.map((dtype) => [dtype, "i32.load8_u" as const])),
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
  ...Object.fromEntries(byteFloats.map((dtype) => [dtype, "i32.store8" as const])),
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
  if (isPacked(e.dtype)) {
    pushPackedChunk(context, place, e, chunk);
    return;
  }
  const address = context.address(place, e.index);
  if (e.lanes === 1) {
    f.memory(scalarLoads[e.dtype]!, scope.pushAddress(address));
    if (isNarrowFloat(e.dtype)) library.call(f, `load.${e.dtype}`);
    return;
  }
  const { at, bytes } = chunkSpan(e.dtype, e.lanes, chunk);
  if (isNarrowFloat(e.dtype) && bytes === 8 && storageBytes(e.dtype) === 2) {
    f.memory("v128.load16x4_u", scope.pushAddress(address) + at);
    library.call(f, `load.${e.dtype}x4`);
    return;
  }
  pushBytes(context, address, at, bytes);
  if (isNarrowFloat(e.dtype)) {
    if (storageBytes(e.dtype) === 1) f.op("i16x8.extend_low_i8x16_u");
    f.op("i32x4.extend_low_i16x8_u");
    library.call(f, `load.${e.dtype}x4`);
  } else if (e.dtype === "bool") {
    f.op("i16x8.extend_low_i8x16_u").op("i32x4.extend_low_i16x8_u");
    f.v128Const(new Uint8Array(16)).op("i32x4.ne");
  }
}

/** Pushes an element below a byte, or a chunk of them, one after another. */
function pushPackedChunk(
  context: KernelContext,
  place: MemoryPlace,
  e: Extract<Expr, { kind: "load" }>,
  chunk: number,
): void {
  if (e.lanes === 1) {
    pushPackedLoad(context, place, e.index, 0);
    return;
  }
  const each = chunkLanes(findRepresentation(e.dtype)!.shape);
  pushSplatLiteral(context.f, e.dtype, 0);
  for (let lane = 0; lane < Math.min(each, e.lanes - chunk * each); lane++) {
    pushPackedLoad(context, place, e.index, chunk * each + lane);
    pushReplacedLane(context.f, e.dtype, lane);
  }
}

function writePackedChunks(
  context: KernelContext,
  place: MemoryPlace,
  index: readonly IndexExpr[],
  { dtype, lanes, push }: Parameters<typeof writeMemory>[3],
): void {
  const { f } = context;
  if (lanes === 1) {
    writePacked(context, place, index, { lane: 0, push: () => push(0) });
    return;
  }
  const each = chunkLanes(findRepresentation(dtype)!.shape);
  const vector = f.local("v128");
  for (let lane = 0; lane < lanes; lane++) {
    if (lane % each === 0) {
      push(lane / each);
      f.set(vector);
    }
    const pushLane = () => {
      f.get(vector);
      pushExtractedLane(f, dtype, lane % each);
    };
    writePacked(context, place, index, { lane, push: pushLane });
  }
  f.release(vector);
}

/** Pushes a vector whose low `bytes` bytes come from memory. */
function pushBytes(
  { f, scope }: KernelContext,
  address: IndexExpr,
  at: number,
  bytes: number,
): void {
  if (bytes === 16) {
    f.memory("v128.load", scope.pushAddress(address) + at);
    return;
  }
  const vector = f.local("v128");
  for (const { bits, from, lane } of piecesOf(bytes)) {
    const offset = scope.pushAddress(address) + at + from;
    if (from === 0 && bits >= 32) f.memory(`v128.load${bits as 32 | 64}_zero`, offset);
    else {
      if (from === 0) f.v128Const(new Uint8Array(16));
      else f.get(vector);
      f.memoryLane(`v128.load${bits as 8 | 16 | 32 | 64}_lane`, lane, offset);
    }
    f.set(vector);
  }
  f.get(vector).release(vector);
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
  if (isPacked(dtype)) {
    writePackedChunks(context, place, index, value);
    return;
  }
  const address = context.address(place, index);
  const chunks = context.chunks(dtype, lanes);
  for (let chunk = 0; chunk < chunks; chunk++) {
    if (lanes === 1) {
      const start = scope.pushAddress(address);
      value.push(chunk);
      if (isNarrowFloat(dtype)) library.call(f, `store.${dtype}`);
      f.memory(scalarStores[dtype]!, start);
      continue;
    }
    const { at, bytes } = chunkSpan(dtype, lanes, chunk);
    const pieces = piecesOf(bytes);
    const [only] = pieces;
    const start = pieces.length === 1 ? scope.pushAddress(address) + at : 0;
    value.push(chunk);
    narrowChunk(context, dtype);
    if (pieces.length > 1) storePieces(context, address, at, pieces);
    else if (only!.bits === 128) f.memory("v128.store", start);
    else f.memoryLane(`v128.store${only!.bits}_lane`, 0, start);
  }
}

/** Stores the low bytes of the vector on the stack, piece by piece. */
function storePieces(
  { f, scope }: KernelContext,
  address: IndexExpr,
  at: number,
  pieces: readonly Piece[],
): void {
  const vector = f.local("v128");
  f.set(vector);
  for (const { bits, from, lane } of pieces) {
    const offset = scope.pushAddress(address) + at + from;
    f.get(vector);
    f.memoryLane(`v128.store${bits as 8 | 16 | 32 | 64}_lane`, lane, offset);
  }
  f.release(vector);
}

/** Part of a vector that one instruction moves: lane `lane` of lanes of `bits` bits. */
interface Piece {
  readonly bits: 8 | 16 | 32 | 64 | 128;
  readonly from: number;
  readonly lane: number;
}

/** `bytes` bytes as the largest pieces that fit, each aligned to its size within the vector. */
function piecesOf(bytes: number): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const bits of [128, 64, 32, 16, 8] as const) {
    if (bytes - from < bits / 8) continue;
    pieces.push({ bits, from, lane: from / (bits / 8) });
    from += bits / 8;
  }
  return pieces;
}

/** Where in memory a chunk of a vector lies, from the vector's first byte. */
function chunkSpan(dtype: DType, lanes: number, chunk: number): { at: number; bytes: number } {
  const each = chunkLanes(findRepresentation(dtype)!.shape);
  const held = Math.min(each, lanes - chunk * each);
  return { at: chunk * each * storageBytes(dtype), bytes: held * storageBytes(dtype) };
}

/** Packs lanes that are wider than their storage into the low bytes. */
function narrowChunk({ f, library }: KernelContext, dtype: DType): void {
  if (isNarrowFloat(dtype)) library.call(f, `store.${dtype}x4`);
  if (dtype === "bool") f.i32Const(31).op("i32x4.shr_u");
  if (!isNarrowFloat(dtype) && dtype !== "bool") return;
  const packed = f.local("v128");
  f.tee(packed).get(packed).op("i16x8.narrow_i32x4_u").release(packed);
  if (storageBytes(dtype) === 1) f.tee(packed).get(packed).op("i8x16.narrow_i16x8_u");
}
