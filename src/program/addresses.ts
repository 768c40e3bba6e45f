/**
 * Where buffers of scope memory lie, as index expressions over the addresses that the runtime gives: of
 * each arena, and of each buffer that the memory planner left to the caller. Which words or arguments
 * carry them is each emitter's.
 */
import { dtypes } from "../semantics/dtype.ts";
import * as ix from "../semantics/index-expr.ts";
import { rangeOf } from "../semantics/index-range.ts";
import { reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { Buffer, Kernel, Placement, Program } from "./program.ts";

/** `local`: private memory of the threads. */
export type Arena = Placement["arena"] | "local";

/** Alignment of what lies in a thread's private memory: a cache line, the widest vector. */
const localAlignmentBytes = 64;

/** Name of the index variable that stands for an arena's or an unplaced buffer's address. */
export const arenaVariable = (arena: Arena): string => `@${arena}`;
export const bufferVariable = (name: string): string => `@buffer.${name}`;

/** Address of a buffer of scope memory. */
export function baseOf(buffer: Buffer, buffers: ReadonlyMap<string, Buffer>): ix.IndexExpr {
  if (buffer.viewOf !== undefined) {
    const target = buffers.get(buffer.viewOf);
    invariant(target, () => `${buffer.name} is a view of unknown ${buffer.viewOf}`);
    return baseOf(target, buffers);
  }
  if (!buffer.placement) return ix.variable(bufferVariable(buffer.name));
  const { arena, byteOffset } = buffer.placement;
  return ix.add(ix.variable(arenaVariable(arena)), byteOffset);
}

/** Bytes of one element; of types below a byte a fraction, which no emitter addresses. */
export function elementBytes({ dtype }: Buffer): number {
  return dtypes[dtype].bits / 8;
}

const stridesOf = new WeakMap<Buffer, readonly ix.IndexExpr[]>();

/** Row-major position of an element. */
export function flatIndex(buffer: Buffer, index: readonly ix.IndexExpr[]): ix.IndexExpr {
  let strides = stridesOf.get(buffer);
  if (!strides) {
    strides = rowMajorStrides(buffer.shape);
    stridesOf.set(buffer, strides);
  }
  return ix.add(...strides.map((stride, axis) => ix.mul(index[axis]!, stride)));
}

/** Elements from one index to the next, axis by axis. */
export function rowMajorStrides(shape: readonly ix.IndexExpr[]): readonly ix.IndexExpr[] {
  const strides: ix.IndexExpr[] = [];
  let stride = ix.constant(1);
  for (const extent of shape.toReversed()) {
    strides.unshift(stride);
    stride = ix.mul(stride, extent);
  }
  return strides;
}

/**
 * Offsets of a kernel's local and shared buffers within a thread's private memory, for machines that
 * keep both there.
 */
export function localOffsets(
  program: Program,
  kernel: Kernel,
): { offsets: Map<string, number>; bytes: number } {
  const offsets = new Map<string, number>();
  const ranges = new Map(program.parameters.map((p) => [p.name, { min: p.min, max: p.max }]));
  let bytes = 0;
  for (const b of kernel.buffers) {
    if (b.scope === "register") continue;
    offsets.set(b.name, bytes);
    const extents = (b.capacity ?? b.shape).map((e) => rangeOf(e, ranges).max);
    const elements = extents.reduce((n, extent) => n * Math.max(0, extent), b.lanes);
    if (!Number.isFinite(elements)) {
      reject("EMT001", `local buffer ${b.name} has no largest size`, {
        at: `kernel ${kernel.name}`,
        help: "bound its extents by the program's parameters",
      });
    }
    const size = elements * elementBytes(b);
    bytes += Math.ceil(size / localAlignmentBytes) * localAlignmentBytes;
  }
  return { offsets, bytes };
}
