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

/** Makes storage and views of a list of buffers anew: for each thread, each instance, each run. */
export type BufferMaker = (outer?: ReadonlyMap<string, View>) => Map<string, View>;

/** A buffer with its sizes. */
interface SizedBuffer {
  readonly buffer: Buffer;
  readonly shape: readonly number[];
  /** Its number: what is viewed has its parent's. */
  readonly owner: number;
  readonly ground: Ground;
}

/** Where a buffer's bytes come from. */
type Ground =
  | { readonly kind: "view"; readonly of: string }
  | { readonly kind: "arena"; readonly arena: string; readonly byteOffset: number }
  | { readonly kind: "own"; readonly make: () => Storage };

/**
 * Sizes of buffers under the bindings, and how they are made. Buffers are in an order in which those that are
 * viewed come first; views of others are views of `outer`.
 */
export function planBuffers(
  buffers: readonly Buffer[],
  at: Bindings,
  isBelowByte = false,
): BufferMaker {
  const makeArenas = planArenas(buffers, at, isBelowByte);
  const sized = parentsFirst(buffers).map((buffer): SizedBuffer => {
    const shape = extentsOf(buffer.shape, at);
    const ground = groundOf(buffer, at, isBelowByte);
    return { buffer, shape, owner: buffers.indexOf(buffer), ground };
  });
  return (outer = new Map()) => {
    const arenas = makeArenas();
    const views = new Map<string, View>();
    for (const { buffer, shape, owner, ground } of sized) {
      const { name, dtype, lanes, swizzleBytes = 0 } = buffer;
      const place = placeOn(ground, owner, { views, outer, arenas, name });
      views.set(name, new View({ name, dtype, lanes, shape, swizzleBytes, ...place }));
    }
    return views;
  };
}

/** The views of `buffers` by name; those of `outer` may be viewed too. */
export function allocateBuffers(
  buffers: readonly Buffer[],
  at: Bindings,
  outer: ReadonlyMap<string, View> = new Map(),
  isBelowByte = false,
): Map<string, View> {
  return planBuffers(buffers, at, isBelowByte)(outer);
}

function parentsFirst(buffers: readonly Buffer[]): readonly Buffer[] {
  const byName = new Map(buffers.map((b) => [b.name, b]));
  const ordered = new Set<Buffer>();
  const add = (buffer: Buffer): void => {
    if (ordered.has(buffer)) return;
    const parent = byName.get(buffer.viewOf ?? "");
    if (parent) add(parent);
    ordered.add(buffer);
  };
  for (const buffer of buffers) add(buffer);
  return [...ordered];
}

function groundOf(buffer: Buffer, at: Bindings, isBelowByte: boolean): Ground {
  if (buffer.viewOf !== undefined) return { kind: "view", of: buffer.viewOf };
  if (buffer.placement) {
    const { arena, byteOffset } = buffer.placement;
    return { kind: "arena", arena, byteOffset: evaluate(byteOffset, at) };
  }
  const scope = buffer.scope === "local" ? "register" : buffer.scope;
  const granule = granuleOf([buffer.dtype], isBelowByte);
  const bytes = bytesOf(buffer, at);
  return { kind: "own", make: () => new Storage(buffer.name, bytes, granule, scope) };
}

type Place = Pick<View, "storage" | "byteOffset" | "owner">;

interface Made {
  readonly name: string;
  readonly views: ReadonlyMap<string, View>;
  readonly outer: ReadonlyMap<string, View>;
  readonly arenas: ReadonlyMap<string, Storage>;
}

function placeOn(ground: Ground, owner: number, { name, views, outer, arenas }: Made): Place {
  if (ground.kind === "own") return { storage: ground.make(), byteOffset: 0, owner };
  if (ground.kind === "arena") {
    return { storage: arenas.get(ground.arena)!, byteOffset: ground.byteOffset, owner };
  }
  const base = views.get(ground.of) ?? outer.get(ground.of);
  invariant(base, () => `${name} views unknown ${ground.of}`);
  return { storage: base.storage, byteOffset: base.byteOffset, owner: base.owner };
}

function planArenas(
  buffers: readonly Buffer[],
  at: Bindings,
  isBelowByte: boolean,
): () => ReadonlyMap<string, Storage> {
  const placed = buffers.filter((b) => b.placement !== undefined && b.viewOf === undefined);
  const names = [...new Set(placed.map((b) => b.placement!.arena))];
  const sizes = names.map((name) => {
    const inside = placed.filter((b) => b.placement!.arena === name);
    const ends = inside.map((b) => evaluate(b.placement!.byteOffset, at) + bytesOf(b, at));
    const kinds = inside.map((b) => b.dtype);
    return { name, bytes: Math.max(...ends), granule: granuleOf(kinds, isBelowByte) };
  });
  return () =>
    new Map(
      sizes.map(({ name, bytes, granule }) => {
        return [name, new Storage(`arena ${name}`, bytes, granule, "memory")] as const;
      }),
    );
}
