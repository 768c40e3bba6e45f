/**
 * Elements below a byte: the byte that holds one is read and shifted, or read, changed and written back.
 * Neighbours share a byte, so a program may not deal such stores out to several threads.
 */
import { flatIndex } from "../../program/addresses.ts";
import { dtypes } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { normalize } from "./integer-ops.ts";
import type { KernelContext, MemoryPlace } from "./kernel-context.ts";
import { type Memory, type Register, sized } from "./operand.ts";
import { fromTinyPatterns, tinyPatterns } from "./tiny-float-rows.ts";

/** Where lane `lane` of an element lies: its byte, and its first bit there. */
function bitsOf(
  { scope }: KernelContext,
  { buffer, base }: MemoryPlace,
  index: readonly ix.IndexExpr[],
  lane: number,
): { readonly byte: Memory; readonly first: ix.IndexExpr } {
  const flat = ix.add(ix.mul(buffer.lanes, flatIndex(buffer, index)), lane);
  const bit = ix.mul(dtypes[buffer.dtype].bits, flat);
  return {
    byte: scope.address(ix.add(base, ix.floorDiv(bit, 8))),
    first: ix.mod(bit, 8),
  };
}

/** One element as a scalar. */
export function loadPacked(
  context: KernelContext,
  place: MemoryPlace,
  index: readonly ix.IndexExpr[],
  lane: number,
): Register {
  const { f, scope } = context;
  const { dtype } = place.buffer;
  const { bits, kind } = dtypes[dtype];
  const { byte, first } = bitsOf(context, place, index, lane);
  const [whole, element] = [f.gpr(32), f.gpr(32)];
  f.emit("movzx8", whole, byte).emit("shrx", element, whole, sized(scope.value(first), 32));
  if (kind !== "float") return normalize(f, dtype, element);
  const lanes = f.vec(128);
  f.emit("and", element, 2 ** bits - 1).emit("vmovd", lanes, element);
  return fromTinyPatterns(context.vectorCode(128, "f32"), dtype, lanes);
}

/** Stores a scalar. */
export function storePacked(
  context: KernelContext,
  place: MemoryPlace,
  index: readonly ix.IndexExpr[],
  { lane, value }: { readonly lane: number; readonly value: Register },
): void {
  const { f, scope } = context;
  const { dtype } = place.buffer;
  const { bits, kind } = dtypes[dtype];
  const { byte, first } = bitsOf(context, place, index, lane);
  const [element, mask, rest] = [f.gpr(32), f.gpr(32), f.gpr(32)];
  if (kind === "float") {
    f.emit("vmovd", element, tinyPatterns(context.vectorCode(128, "f32"), dtype, value));
  } else f.emit("mov", element, sized(value, 32));
  const shift = sized(scope.value(first), 32);
  f.emit("and", element, 2 ** bits - 1).emit("shlx", element, element, shift);
  f.emit("mov", mask, 2 ** bits - 1)
    .emit("shlx", mask, mask, shift)
    .emit("xor", mask, -1);
  f.emit("movzx8", rest, byte).emit("and", rest, mask).emit("or", rest, element);
  f.emit("mov", byte, sized(rest, 8));
}
