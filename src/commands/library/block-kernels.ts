/**
 * What the kernels of a region ask of a machine of blocks of threads: grid, threads, shared memory, the
 * registers that the text allows, how many blocks a multiprocessor holds of them, and the instructions
 * that schedules speak of. In: a program and its target. Out: plain figures, for `explain`. The registers
 * that an assembler takes are known once a driver has it; until then a block is counted with all that it may have.
 */
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import type { PtxCounts, PtxKernel } from "../../emit/ptx/ptx-module.ts";
import { blocksHeld } from "../../emit/ptx/residency.ts";
import type { Program } from "../../program/program.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import type { BlockLimits, Target } from "../../target/target.ts";

export interface BlockKernel {
  readonly name: string;
  readonly region: string;
  /** At the upper ends of the symbols. */
  readonly blocks: number;
  readonly threads: number;
  readonly cluster: number;
  readonly sharedBytes: number;
  /** Of a thread, at most. */
  readonly registers: number;
  /** Blocks that a multiprocessor holds if its threads take all those registers, and if they take none. */
  readonly resident: { readonly least: number; readonly most: number };
  /** Warps of those blocks, of the warps that a multiprocessor can hold. */
  readonly occupancy: { readonly least: number; readonly most: number };
  /** Rounds of the grid with the fewer blocks; the last one may not be full. */
  readonly rounds: number;
  readonly cooperative: boolean;
  readonly counts: PtxCounts;
}

/** Empty where the target's grids are of CPU threads. */
export function blockKernels(program: Program, target: Target): Result<readonly BlockKernel[]> {
  const { blocks: limits, machine } = target;
  if (!limits || machine?.kind !== "gpu") return ok([]);
  const emitted = emitPtx(program, machine.architecture, limits);
  if (!emitted.ok) return emitted;
  const regions = new Map(program.kernels.map((k) => [k.name, k.region]));
  const ranges = new Map(program.parameters.map(({ name, min, max }) => [name, { min, max }]));
  return ok(
    emitted.value.kernels.map((kernel) => {
      const extents = kernel.grid.map((e) => Math.max(0, rangeOf(e, ranges).max));
      const blocks = extents.reduce((a, b) => a * b, 1);
      return { region: regions.get(kernel.name)!, ...figuresOf(kernel, blocks, limits) };
    }),
  );
}

function figuresOf(
  kernel: PtxKernel,
  blocks: number,
  limits: BlockLimits,
): Omit<BlockKernel, "region"> {
  const { name, threads, cluster, cooperative, counts, maxRegisters } = kernel;
  const sharedBytes = kernel.staticSharedBytes + kernel.dynamicSharedBytes;
  const held = Math.ceil(threads / limits.warpThreads) * limits.warpThreads;
  const most = blocksHeld(kernel, limits);
  const byRegisters = Math.floor(limits.registersPerCore / (held * maxRegisters));
  const resident = { least: Math.max(1, Math.min(most, byRegisters)), most: Math.max(1, most) };
  const share = (count: number): number => (count * held) / limits.threadsPerCore;
  return {
    name,
    blocks,
    threads,
    cluster,
    sharedBytes,
    registers: maxRegisters,
    resident,
    occupancy: { least: share(resident.least), most: share(resident.most) },
    rounds: Math.ceil(blocks / (limits.cores * resident.least)),
    cooperative,
    counts,
  };
}

const instructions: Readonly<Record<keyof PtxCounts, string>> = {
  wgmma: "wgmma",
  wgmmaWaits: "waits for wgmma",
  mma: "mma",
  tensorCopies: "tensor copies",
  peerStores: "stores to other blocks",
  asyncCopies: "asynchronous copies",
  matrixLoads: "matrix loads",
};

/** A kernel in a few lines. */
export function describeKernel(kernel: BlockKernel): readonly string[] {
  const { resident, occupancy, counts, cluster, registers, rounds } = kernel;
  const range = ({ least, most }: { least: number; most: number }, unit = ""): string =>
    least === most ? `${least}${unit}` : `${least} to ${most}${unit}`;
  const percent = {
    least: Math.round(100 * occupancy.least),
    most: Math.round(100 * occupancy.most),
  };
  const asked = (Object.keys(instructions) as (keyof PtxCounts)[])
    .filter((key) => counts[key] > 0)
    .map((key) => `${counts[key]} ${instructions[key]}`);
  return [
    `kernel ${kernel.name}: ${kernel.blocks} blocks of ${kernel.threads} threads` +
      `${cluster > 1 ? `, clusters of ${cluster}` : ""}${kernel.cooperative ? ", all resident" : ""}`,
    `  ${kernel.sharedBytes} bytes of shared memory a block, at most ${registers} registers a thread`,
    `  ${range(resident)} blocks a multiprocessor, occupancy ${range(percent, " %")}, ` +
      `${rounds} ${rounds === 1 ? "round" : "rounds"}`,
    ...(asked.length > 0 ? [`  in its text: ${asked.join(", ")}`] : []),
  ];
}
