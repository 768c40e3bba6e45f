/**
 * Where an emitted program finds what the runtime gives it: words of the thread's block hold the shape
 * parameters, the addresses of the arenas, and the addresses of buffers that the memory planner left to
 * the caller. All are 64 bits and written before a run.
 */
import type { Buffer, Kernel, Placement, Program } from "../../program/program.ts";
import { threadCountName } from "../../program/program.ts";
import * as ix from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { reject } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { threadBlock } from "./context-block.ts";
import { storageBytes } from "./lanes.ts";

/** `local`: private memory of the threads, `localBytes` each. */
export type Arena = Placement["arena"] | "local";

export const arenas = ["weights", "scratch", "state", "caller"] as const;
const wordBytes = 8;
const alignmentBytes = 64;

export interface ProgramLayout {
  /** Byte offset of each parameter's word in a thread's block. */
  readonly parameters: ReadonlyMap<string, number>;
  /** Of the word that holds each arena's address. */
  readonly arenas: Readonly<Record<Arena, number>>;
  /** Of the word that holds the address of each buffer without placement. */
  readonly buffers: ReadonlyMap<string, number>;
  /** Bytes of a thread's block. */
  readonly blockBytes: number;
  /** Bytes of local buffers that one thread needs. */
  readonly localBytes: number;
}

export function layoutOf(program: Program): ProgramLayout {
  let next: number = threadBlock.words;
  const word = () => {
    next += wordBytes;
    return next - wordBytes;
  };
  const named = program.parameters.filter((p) => p.name !== threadCountName);
  const parameters = new Map(named.map((p) => [p.name, word()]));
  const placed = Object.fromEntries(arenas.map((a) => [a, word()]));
  const unplaced = program.buffers.filter((b) => !b.placement && b.viewOf === undefined);
  const buffers = new Map(unplaced.map((b) => [b.name, word()]));
  const localBytes = Math.max(0, ...program.kernels.map((k) => localOffsets(program, k).bytes));
  const arenaWords = { ...placed, local: threadBlock.local } as Record<Arena, number>;
  return { parameters, arenas: arenaWords, buffers, blockBytes: roundUp(next), localBytes };
}

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

/** Row-major position of an element. */
export function flatIndex(buffer: Buffer, index: readonly ix.IndexExpr[]): ix.IndexExpr {
  let flat: ix.IndexExpr = ix.constant(0);
  buffer.shape.forEach((extent, i) => {
    flat = ix.add(ix.mul(flat, extent), index[i]!);
  });
  return flat;
}

/** Offsets of a kernel's local and shared buffers within a thread's private memory. */
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
    bytes += roundUp(elements * storageBytes(b.dtype));
  }
  return { offsets, bytes };
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / alignmentBytes) * alignmentBytes;
}
