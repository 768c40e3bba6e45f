/**
 * Elements below a byte: the byte that holds one is read and shifted, or read, changed and written
 * back. Neighbours share a byte, so a program may not deal such stores out to several threads.
 */
import { flatIndex } from "../../program/addresses.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import type { KernelContext, MemoryPlace } from "./kernel-context.ts";
import { pushNormalized } from "./lanes.ts";

export function isPacked(dtype: DType): boolean {
  return dtypes[dtype].bits < 8;
}

/** First bit of lane `lane` of an element, counted from the buffer's first. */
function bitOf({ buffer }: MemoryPlace, index: readonly ix.IndexExpr[], lane: number) {
  const flat = ix.add(ix.mul(buffer.lanes, flatIndex(buffer, index)), lane);
  return ix.mul(dtypes[buffer.dtype].bits, flat);
}

/** Pushes one element as a scalar in its representation. */
export function pushPackedLoad(
  { f, scope, library }: KernelContext,
  place: MemoryPlace,
  index: readonly ix.IndexExpr[],
  lane: number,
): void {
  const { dtype } = place.buffer;
  const { bits, kind } = dtypes[dtype];
  const bit = bitOf(place, index, lane);
  f.memory("i32.load8_u", scope.pushAddress(ix.add(place.base, ix.floorDiv(bit, 8))));
  scope.push(ix.mod(bit, 8));
  f.op("i32.shr_u");
  if (kind === "int") pushNormalized(f, dtype);
  else f.i32Const(2 ** bits - 1).op("i32.and");
  if (kind === "float") library.call(f, `load.${dtype}`);
}

/** Stores the scalar that `push` pushes. */
export function writePacked(
  { f, scope, library }: KernelContext,
  place: MemoryPlace,
  index: readonly ix.IndexExpr[],
  { lane, push }: { readonly lane: number; readonly push: () => void },
): void {
  const { dtype } = place.buffer;
  const { bits, kind } = dtypes[dtype];
  const bit = bitOf(place, index, lane);
  const address = ix.add(place.base, ix.floorDiv(bit, 8));
  const value = f.local("i32");
  push();
  if (kind === "float") library.call(f, `store.${dtype}`);
  f.i32Const(2 ** bits - 1).op("i32.and");
  scope.push(ix.mod(bit, 8));
  f.op("i32.shl").set(value);
  const start = scope.pushAddress(address);
  f.memory("i32.load8_u", scope.pushAddress(address));
  f.i32Const(2 ** bits - 1);
  scope.push(ix.mod(bit, 8));
  f.op("i32.shl").i32Const(-1).op("i32.xor").op("i32.and");
  f.get(value).op("i32.or");
  f.memory("i32.store8", start);
  f.release(value);
}
