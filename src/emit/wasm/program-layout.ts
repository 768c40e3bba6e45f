/**
 * Where an emitted program finds what the runtime gives it: words after the control block hold the
 * shape parameters, the addresses of the arenas, and the addresses of buffers that the memory planner
 * left to the caller. All are i32 and written before each run.
 */
import { type Arena, localOffsets } from "../../program/addresses.ts";
import type { Program } from "../../program/program.ts";
import { threadCountName } from "../../program/program.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { controlBlock } from "./control-block.ts";

const arenas: readonly Arena[] = ["weights", "scratch", "state", "caller", "local"];
const wordBytes = 4;
const alignmentBytes = 64;
const chunkBytes = 16;
/** Of a lane in a register. */
const mostLaneBytes = 8;

export interface ProgramLayout {
  /** Byte address of each parameter's word. */
  readonly parameters: ReadonlyMap<string, number>;
  /** Byte address of the word that holds each arena's address. */
  readonly arenas: Readonly<Record<Arena, number>>;
  /** Byte address of the word that holds the address of each buffer without placement. */
  readonly buffers: ReadonlyMap<string, number>;
  /** Bytes of the control block and these words; arenas start above, guardBytes further on. */
  readonly blockBytes: number;
  /** Bytes of local buffers that one thread needs, parked registers behind them included. */
  readonly localBytes: number;
  /** Where in a thread's local bytes registers are parked (kernel-emitter.ts). */
  readonly parkedAt: number;
}

export function layoutOf(program: Program): ProgramLayout {
  let next: number = controlBlock.parameters;
  const word = () => {
    next += wordBytes;
    return next - wordBytes;
  };
  const named = program.parameters.filter((p) => p.name !== threadCountName);
  const parameters = new Map(named.map((p) => [p.name, word()]));
  const arenaWords = Object.fromEntries(arenas.map((a) => [a, word()])) as Record<Arena, number>;
  const unplaced = program.buffers.filter((b) => !b.placement && b.viewOf === undefined);
  const buffers = new Map(unplaced.map((b) => [b.name, word()]));
  const parkedAt = Math.max(0, ...program.kernels.map((k) => localOffsets(program, k).bytes));
  const localBytes = parkedAt + Math.max(0, ...program.kernels.map(registerBytes));
  return {
    parameters,
    arenas: arenaWords,
    buffers,
    blockBytes: roundUp(next),
    localBytes,
    parkedAt,
  };
}

/** Bytes of a kernel's register buffers, each vector in whole chunks. */
function registerBytes({ buffers }: Program["kernels"][number]): number {
  let bytes = 0;
  for (const { scope, shape, lanes } of buffers) {
    if (scope !== "register") continue;
    const elements = shape.reduce((n, extent) => n * (constantValue(extent) ?? 0), 1);
    bytes += elements * Math.ceil((lanes * mostLaneBytes) / chunkBytes) * chunkBytes;
  }
  return roundUp(bytes);
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / alignmentBytes) * alignmentBytes;
}
