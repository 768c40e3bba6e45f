/**
 * Where an emitted program finds what the runtime gives it: words of the thread's block hold the shape
 * parameters, the addresses of the arenas, and the addresses of inputs, outputs and other buffers that are left to
 * the caller. All are 64 bits and written before a run.
 */
import { type Arena, localOffsets } from "../../program/addresses.ts";
import type { Program } from "../../program/program.ts";
import { threadCountName } from "../../program/program.ts";
import { threadBlock } from "./context-block.ts";

export const arenas = ["weights", "scratch", "state", "caller"] as const;
const wordBytes = 8;

/**
 * The program with every input and output at an address of its own, wherever the planner put them: a run may be on
 * arrays of its caller.
 */
export function withOwnEnds(program: Program): Program {
  const buffers = program.buffers.map((buffer) => {
    if (buffer.placement?.arena !== "caller") return buffer;
    const { placement, ...open } = buffer;
    return open;
  });
  return { ...program, buffers };
}
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

function roundUp(bytes: number): number {
  return Math.ceil(bytes / alignmentBytes) * alignmentBytes;
}
