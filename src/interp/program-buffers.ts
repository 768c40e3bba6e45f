/**
 * Storage for the buffers of a program or kernel: one storage per arena for placed buffers, one per
 * buffer for the rest, views on top of them. Sizes come from the capacity (or shape) under the run's
 * parameters.
 */
import type { Buffer } from "../program/program.ts";
import { storageBytes } from "../semantics/dtype.ts";
import { evaluate, type IndexExpr } from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";
import { granuleOf, Storage, View } from "./program-memory.ts";

export type Bindings = ReadonlyMap<string, number>;

function extentsOf(shape: readonly IndexExpr[], at: Bindings): number[] {
  return shape.map((e) => evaluate(e, at));
}

function bytesOf(buffer: Buffer, at: Bindings): number {
  const shape = extentsOf(buffer.shape, at).reduce((a, b) => a * b, buffer.lanes);
  const capacity = extentsOf(buffer.capacity ?? buffer.shape, at).reduce(
    (a, b) => a * b,
    buffer.lanes,
  );
  return storageBytes(buffer.dtype, Math.max(shape, capacity));
}

/** The views of `buffers` by name; those of `outer` may be viewed too. */
export function allocateBuffers(
  buffers: readonly Buffer[],
  at: Bindings,
  outer: ReadonlyMap<string, View> = new Map(),
  isBelowByte = false,
): Map<string, View> {
  const arenas = allocateArenas(buffers, at, isBelowByte);
  const views = new Map<string, View>();
  const byName = new Map(buffers.map((b) => [b.name, b]));
  const resolve = (buffer: Buffer, number: number): View => {
    const known = views.get(buffer.name);
    if (known) return known;
    const parent = byName.get(buffer.viewOf ?? "");
    const base = parent ? resolve(parent, buffers.indexOf(parent)) : outer.get(buffer.viewOf ?? "");
    const { storage, byteOffset, owner } =
      base ?? placeOf(buffer, number, { at, arenas, isBelowByte });
    const { name, dtype, lanes, swizzleBytes = 0 } = buffer;
    const shape = extentsOf(buffer.shape, at);
    const view = new View({ name, dtype, lanes, shape, swizzleBytes, storage, byteOffset, owner });
    views.set(name, view);
    return view;
  };
  for (const [number, buffer] of buffers.entries()) resolve(buffer, number);
  return views;
}

type Place = Pick<View, "storage" | "byteOffset" | "owner">;

interface Ground {
  readonly at: Bindings;
  readonly arenas: ReadonlyMap<string, Storage>;
  readonly isBelowByte: boolean;
}

function placeOf(buffer: Buffer, owner: number, { at, arenas, isBelowByte }: Ground): Place {
  invariant(buffer.viewOf === undefined, () => `${buffer.name} views unknown ${buffer.viewOf}`);
  if (buffer.placement) {
    const storage = arenas.get(buffer.placement.arena)!;
    return { storage, byteOffset: evaluate(buffer.placement.byteOffset, at), owner };
  }
  const scope = buffer.scope === "local" ? "register" : buffer.scope;
  const granule = granuleOf([buffer.dtype], isBelowByte);
  const storage = new Storage(buffer.name, bytesOf(buffer, at), granule, scope);
  return { storage, byteOffset: 0, owner };
}

function allocateArenas(
  buffers: readonly Buffer[],
  at: Bindings,
  isBelowByte: boolean,
): ReadonlyMap<string, Storage> {
  const arenas = new Map<string, Storage>();
  const placed = buffers.filter((b) => b.placement !== undefined && b.viewOf === undefined);
  for (const name of new Set(placed.map((b) => b.placement!.arena))) {
    const inside = placed.filter((b) => b.placement!.arena === name);
    const end = inside.map((b) => evaluate(b.placement!.byteOffset, at) + bytesOf(b, at));
    const kinds = inside.map((b) => b.dtype);
    const granule = granuleOf(kinds, isBelowByte);
    arenas.set(name, new Storage(`arena ${name}`, Math.max(...end), granule, "memory"));
  }
  return arenas;
}
