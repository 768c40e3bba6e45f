/**
 * Loads and stores between memory and the representation of lanes.ts. What one instruction moves is
 * moved by one; what is left of a vector in 32-bit lanes goes under a mask, other pieces through a stack
 * slot, so that no byte outside the vector is touched.
 */
import type { DType } from "../../semantics/dtype.ts";
import { offsetBy } from "./function-code.ts";
import { brainPatterns, fromBrainPatterns } from "./half-rows.ts";
import { flagOf } from "./integer-ops.ts";
import type { KernelContext } from "./kernel-context.ts";
import {
  type Chunk,
  holdingOf,
  isNarrowFloat,
  isTinyFloat,
  laneBytes,
  storageBytes,
} from "./lanes.ts";
import { type Memory, type Register, type RegisterBits, sized } from "./operand.ts";
import { fromTinyPatterns, tinyPatterns } from "./tiny-float-rows.ts";
import type { VectorCode } from "./vector-code.ts";

export function loadScalar(context: KernelContext, dtype: DType, from: Memory): Register {
  const { f } = context;
  const r = context.newScalar(dtype);
  switch (dtype) {
    case "f64":
      f.emit("vmovsd", r, from);
      return r;
    case "f32":
      f.emit("vmovss", r, from);
      return r;
    case "f16":
    case "bf16": {
      const bits = f.gpr(32);
      f.emit("movzx16", bits, from);
      if (dtype === "bf16") f.emit("shl", bits, 16).emit("vmovd", r, bits);
      else f.emit("vmovd", r, bits).emit("vcvtph2ps", r, r);
      return r;
    }
    case "bool": {
      f.emit("movzx8", r, from).emit("test", r, r);
      return flagOf(f, "ne");
    }
    default: {
      if (isTinyFloat(dtype)) {
        const bits = f.gpr(32);
        f.emit("movzx8", bits, from).emit("vmovd", r, bits);
        return fromTinyPatterns(context.vectorCode(128, "f32"), dtype, r);
      }
      f.emit(`${integerLoads[dtype] ?? "mov"}`, r, from);
      return r;
    }
  }
}

const integerLoads: Partial<Record<DType, string>> = {
  ...{ i8: "movsx8", u8: "movzx8", i16: "movsx16", u16: "movzx16" },
};

export function storeScalar(context: KernelContext, dtype: DType, to: Memory, x: Register): void {
  const { f } = context;
  switch (dtype) {
    case "f64":
      f.emit("vmovsd", to, x);
      return;
    case "f32":
      f.emit("vmovss", to, x);
      return;
    case "f16": {
      const [half, bits] = [f.vec(128), f.gpr(32)];
      f.emit("vcvtps2ph", half, x, 0).emit("vmovd", bits, half).emit("mov", to, sized(bits, 16));
      return;
    }
    case "bf16": {
      const bits = f.gpr(32);
      f.emit("vmovd", bits, brainPatterns(context.vectorCode(128, "f32"), x));
      f.emit("mov", to, sized(bits, 16));
      return;
    }
    default: {
      if (isTinyFloat(dtype)) {
        const bits = f.gpr(32);
        f.emit("vmovd", bits, tinyPatterns(context.vectorCode(128, "f32"), dtype, x));
        f.emit("mov", to, sized(bits, 8));
        return;
      }
      f.emit("mov", to, sized(x, (8 * storageBytes(dtype)) as RegisterBits));
    }
  }
}

/** One chunk of a vector; `from` is the first byte of the whole vector. */
export function loadChunk(
  context: KernelContext,
  dtype: DType,
  chunk: Chunk,
  from: Memory,
): Register {
  const { f } = context;
  const bytes = chunk.lanes * storageBytes(dtype);
  const at = offsetBy(from, chunk.first * storageBytes(dtype));
  const r = f.vec(chunk.bits);
  const stored = (chunk.bits / 8 / laneBytes(holdingOf(dtype))) * storageBytes(dtype);
  if (dtype === "f32" || dtype === "i32" || dtype === "u32") {
    if (bytes === stored) f.emit("vmovups", r, at);
    else loadMasked(context, r, at, chunk.lanes);
    return r;
  }
  const piece = shortMoves[bytes];
  if (keepsBits(dtype) && bytes < stored && piece) {
    f.emit(piece, r, at);
    return r;
  }
  const single = keepsBits(dtype) ? shortLoads[bytes] : undefined;
  if (single) {
    // A whole register out of a stack slot would wait for the short store into it.
    const word = f.gpr(32);
    f.emit(single, word, at).emit("vmovd", sized(r, 128), word);
    return r;
  }
  const whole = bytes === stored ? at : copied(context, at, bytes);
  const c = context.vectorCode(chunk.bits, "f32");
  switch (dtype) {
    case "f16":
      f.emit("vcvtph2ps", r, whole);
      return r;
    case "bf16":
      f.emit("vpmovzxwd", r, whole);
      return fromBrainPatterns(c, r);
    case "bool":
      f.emit("vpmovzxbd", r, whole);
      return c.lanesOf(c.compareIntegers("notEqual", r, c.i32(0), false));
    default:
      if (isTinyFloat(dtype)) {
        f.emit("vpmovzxbd", r, whole);
        return fromTinyPatterns(c, dtype, r);
      }
      f.emit("vmovups", r, whole);
      return r;
  }
}

/** Moves of the low 4 or 8 bytes of a register. */
const shortMoves: Readonly<Record<number, string>> = { 4: "vmovss", 8: "vmovsd" };

/** Loads of one or two bytes into a general register, the rest of it cleared. */
const shortLoads: Readonly<Record<number, string>> = { 1: "movzx8", 2: "movzx16" };

/** Lanes stand in memory as they do in registers. */
function keepsBits(dtype: DType): boolean {
  return !isNarrowFloat(dtype) && dtype !== "bool";
}

/** A copy of `bytes` bytes on the stack, where a whole register may be read. */
function copied({ f }: KernelContext, from: Memory, bytes: number): Memory {
  const slot = f.slot(64);
  copyBytes(f, slot, from, bytes);
  return slot;
}

function copyBytes(f: KernelContext["f"], to: Memory, from: Memory, bytes: number): void {
  const r = f.gpr();
  for (let at = 0; at < bytes; ) {
    const piece = ([8, 4, 2, 1] as const).find((p) => p <= bytes - at)!;
    const part = sized(r, (piece * 8) as RegisterBits);
    if (piece >= 4) f.emit("mov", part, offsetBy(from, at));
    else f.emit(piece === 2 ? "movzx16" : "movzx8", sized(r, 32), offsetBy(from, at));
    f.emit("mov", offsetBy(to, at), part);
    at += piece;
  }
}

function lowLanes({ f }: KernelContext, lanes: number): Register {
  const [bits, mask] = [f.gpr(32), f.mask()];
  f.emit("mov", bits, 2 ** lanes - 1).emit("kmovw", mask, bits);
  return mask;
}

/** The first `lanes` of 32-bit lanes as a vector mask. */
function lowLaneVector({ f }: KernelContext, lanes: number, bits: RegisterBits): Register {
  const bytes = new Uint8Array(bits / 8);
  bytes.fill(255, 0, 4 * lanes);
  return f.constantVector(bytes, bits);
}

function loadMasked(context: KernelContext, r: Register, at: Memory, lanes: number): void {
  const { f, features } = context;
  if (features.evex) f.masked(lowLanes(context, lanes), true, "vmovups", r, at);
  else f.emit("vmaskmovps", r, lowLaneVector(context, lanes, r.bits), at);
}

/** Stores one chunk of a vector whose first byte goes to `to`. */
export function storeChunk(
  context: KernelContext,
  dtype: DType,
  chunk: Chunk,
  to: Memory,
  x: Register,
): void {
  const { f, features } = context;
  const bytes = chunk.lanes * storageBytes(dtype);
  const at = offsetBy(to, chunk.first * storageBytes(dtype));
  const whole = chunk.lanes * laneBytes(holdingOf(dtype)) * 8 === chunk.bits;
  if (dtype === "f32" || dtype === "i32" || dtype === "u32") {
    if (whole) f.emit("vmovups", at, x);
    else if (features.evex) f.masked(lowLanes(context, chunk.lanes), false, "vmovups", at, x);
    else f.emit("vmaskmovps", at, lowLaneVector(context, chunk.lanes, chunk.bits), x);
    return;
  }
  if (dtype === "f16" && whole) {
    f.emit("vcvtps2ph", at, x, 0);
    return;
  }
  if (keepsBits(dtype) && whole) {
    f.emit("vmovups", at, x);
    return;
  }
  const piece = shortMoves[bytes];
  if (keepsBits(dtype) && piece) {
    f.emit(piece, at, x);
    return;
  }
  const slot = f.slot(64);
  if (dtype === "f16") f.emit("vcvtps2ph", slot, x, 0);
  else if (!keepsBits(dtype)) storeNarrowed(context, dtype, chunk, slot, x);
  else f.emit("vmovups", slot, x);
  copyBytes(f, at, slot, bytes);
}

/** bf16, bool or a float of a byte as it stands in memory, in 32-bit lanes. */
function patternsOf(c: VectorCode, dtype: DType, x: Register): Register {
  if (dtype === "bf16") return brainPatterns(c, x);
  return dtype === "bool" ? c.shr(x, 31) : tinyPatterns(c, dtype, x);
}

/** The low 16 or 8 bits of each 32-bit lane, side by side at `to`. */
function storeNarrowed(
  context: KernelContext,
  dtype: DType,
  chunk: Chunk,
  to: Memory,
  x: Register,
): void {
  const { f, features } = context;
  const c = context.vectorCode(chunk.bits, "f32");
  const patterns = patternsOf(c, dtype, x);
  if (features.evex) {
    f.emit(dtype === "bf16" ? "vpmovdw" : "vpmovdb", to, patterns);
    return;
  }
  const wide = f.slot(64);
  f.emit("vmovups", wide, patterns);
  const r = f.gpr(32);
  const step = storageBytes(dtype);
  for (let lane = 0; lane < chunk.lanes; lane++) {
    f.emit("mov", r, offsetBy(wide, 4 * lane));
    f.emit("mov", offsetBy(to, step * lane), sized(r, (8 * step) as RegisterBits));
  }
}
