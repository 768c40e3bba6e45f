/** Bytes that a program's buffers and arenas need at the parameters' upper ends. */

import { storageBytes } from "../semantics/dtype.ts";
import { rangeOf } from "../semantics/index-range.ts";
import type { Buffer, Placement, Program } from "./program.ts";
import { threadCountName } from "./program.ts";

type Parameters = Pick<Program, "parameters">;

type Ranges = ReadonlyMap<string, { readonly min: number; readonly max: number }>;

const known = new WeakMap<Parameters["parameters"], Ranges>();

function rangesOf({ parameters }: Parameters): Ranges {
  let ranges = known.get(parameters);
  if (!ranges) {
    const named = parameters.filter((p) => p.name !== threadCountName);
    ranges = new Map(named.map(({ name, min, max }) => [name, { min, max }]));
    known.set(parameters, ranges);
  }
  return ranges;
}

export function capacityBytes(program: Parameters, buffer: Buffer): number {
  const ranges = rangesOf(program);
  const extents = buffer.capacity ?? buffer.shape;
  const elements = extents.reduce((n, e) => n * Math.max(0, rangeOf(e, ranges).max), buffer.lanes);
  return storageBytes(buffer.dtype, elements);
}

export function arenaSizes(program: Program): Record<Placement["arena"], number> {
  const sizes = { weights: 0, scratch: 0, state: 0, caller: 0 };
  const ranges = rangesOf(program);
  for (const b of program.buffers) {
    if (!b.placement) continue;
    const end = rangeOf(b.placement.byteOffset, ranges).max + capacityBytes(program, b);
    sizes[b.placement.arena] = Math.max(sizes[b.placement.arena], end);
  }
  return sizes;
}

/** What an instance of a program holds. */
export function memoryBytes(program: Program): number {
  const arenas = Object.values(arenaSizes(program)).reduce((a, b) => a + b, 0);
  const others = program.buffers.filter((b) => !b.placement && b.viewOf === undefined);
  return others.reduce((sum, b) => sum + capacityBytes(program, b), arenas);
}
