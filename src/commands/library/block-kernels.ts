/**
 * What the kernels of a program ask of a machine of blocks of threads: grid, threads, shared memory, registers,
 * how many blocks a multiprocessor holds of them, the instructions that schedules speak of, and the time that
 * launches and loads behind each other take at least. In: a program, its schedules and its target, and what
 * a driver's assembler made of them, where one was asked. Out: plain figures, for `explain`.
 */
import { latencyBound } from "../../cost/block-bound.ts";
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import { loadsInChain } from "../../emit/ptx/load-chain.ts";
import type { PtxCounts, PtxKernel } from "../../emit/ptx/ptx-module.ts";
import { estimateRegisters } from "../../emit/ptx/register-pressure.ts";
import { blocksHeld } from "../../emit/ptx/residency.ts";
import type { Program } from "../../program/program.ts";
import type { AssembledKernel } from "../../runtime/cuda/emitted-module.ts";
import type { Directive, Schedule } from "../../schedule/directive.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import type { BlockLimits, Target } from "../../target/target.ts";

export interface BlockKernel {
  readonly name: string;
  readonly region: string;
  /** Who does the work, and how much of it a block does at once. */
  readonly strategy: string;
  readonly tile?: readonly number[];
  readonly stages?: number;
  /** At the upper ends of the symbols. */
  readonly blocks: number;
  readonly threads: number;
  readonly cluster: number;
  readonly sharedBytes: number;
  /** Of a thread, and who says so: the driver's assembler, or an estimate from the text. */
  readonly registers: number;
  readonly registersBy: "measured" | "estimate";
  /** Of a thread, at most, by the text. */
  readonly registersAllowed: number;
  /** Bytes of local memory of a thread, where the assembler was asked. */
  readonly localBytes?: number;
  /** Blocks that a multiprocessor holds at once. */
  readonly resident: number;
  /** Warps of those blocks, of the warps that a multiprocessor can hold. */
  readonly occupancy: number;
  /** Rounds of the grid; the last one may not be full. */
  readonly rounds: number;
  readonly cooperative: boolean;
  /** Loads from memory that wait for each other, at least. */
  readonly loadsInChain: number;
  readonly counts: PtxCounts;
}

/** What a region of some kernels cannot go below, and how near to it the estimate is. */
export interface RegionBound {
  readonly by: "memory" | "shared cache" | "matrix unit" | "arithmetic" | "latency";
  readonly ns: number;
  /** The bound's part of the estimate. */
  readonly share: number;
}

/** What is asked about: where the driver's assembler was, by kernel. */
export interface KernelSource {
  readonly program: Program;
  readonly schedules: readonly Schedule[];
  readonly target: Target;
  readonly assembled?: readonly AssembledKernel[] | undefined;
}

/** Empty where the target's grids are of CPU threads. */
export function blockKernels(source: KernelSource): Result<readonly BlockKernel[]> {
  const { program, schedules, target, assembled } = source;
  const { blocks: limits, machine } = target;
  if (!limits || machine?.kind !== "gpu") return ok([]);
  const emitted = emitPtx(program, machine.architecture, limits);
  if (!emitted.ok) return emitted;
  const regions = new Map(program.kernels.map((k) => [k.name, k.region]));
  const made = new Map(assembled?.map((k) => [k.kernel, k]));
  const ranges = new Map(program.parameters.map(({ name, min, max }) => [name, { min, max }]));
  const ways = new Map(schedules.map((s) => [s.region, waysOf(s)]));
  const counts = new Map<string, number>();
  for (const { name } of emitted.value.kernels) {
    const region = regions.get(name)!;
    counts.set(region, (counts.get(region) ?? 0) + 1);
  }
  return ok(
    emitted.value.kernels.map((kernel) => {
      const region = regions.get(kernel.name)!;
      const extents = kernel.grid.map((e) => Math.max(0, rangeOf(e, ranges).max));
      const blocks = extents.reduce((a, b) => a * b, 1);
      const own = ways.get(region) ?? [];
      const way = counts.get(region) === 1 || sharedBytesOf(kernel) > 0 ? own.shift() : undefined;
      const figures = figuresOf(kernel, { blocks, assembled: made.get(kernel.name) }, limits);
      return { region, ...(way ?? onThreads), ...figures };
    }),
  );
}

type Way = Pick<BlockKernel, "strategy" | "tile" | "stages">;

const onThreads: Way = { strategy: "loops" };

/** Of the statements of a region that have a strategy, in order: their kernels are the ones with shared memory. */
function waysOf({ directives }: Schedule): Way[] {
  return directives.flatMap((d) => wayOf(d) ?? []);
}

function wayOf(d: Directive): Way | undefined {
  if (d.kind === "multiply")
    return { strategy: `multiply ${d.by}`, tile: d.tile, stages: d.stages };
  if (d.kind === "attend") return { strategy: `attend ${d.by}`, tile: d.tile, stages: d.stages };
  if (d.kind === "turn") return { strategy: "turn", tile: d.tile };
  return d.kind === "rows" ? { strategy: "rows", tile: [d.rows, d.threads * d.lanes] } : undefined;
}

function sharedBytesOf(kernel: PtxKernel): number {
  return kernel.staticSharedBytes + kernel.dynamicSharedBytes;
}

interface Given {
  readonly blocks: number;
  readonly assembled: AssembledKernel | undefined;
}

/** Registers are given to warps in units of so many of each thread. */
const registerUnit = 8;

function figuresOf(
  kernel: PtxKernel,
  { blocks, assembled }: Given,
  limits: BlockLimits,
): Omit<BlockKernel, "region" | keyof Way> {
  const { name, threads, cluster, cooperative, counts, maxRegisters } = kernel;
  const registers = assembled?.registers ?? estimateRegisters(kernel);
  const held = Math.ceil(threads / limits.warpThreads) * limits.warpThreads;
  const given = held * Math.ceil(registers / registerUnit) * registerUnit;
  const byRegisters = Math.floor(limits.registersPerCore / given);
  const resident = Math.max(1, Math.min(blocksHeld(kernel, limits), byRegisters));
  return {
    name,
    blocks,
    threads,
    cluster,
    sharedBytes: sharedBytesOf(kernel),
    registers,
    registersBy: assembled ? "measured" : "estimate",
    registersAllowed: maxRegisters,
    ...(assembled && { localBytes: assembled.localBytes }),
    resident,
    occupancy: (resident * held) / limits.threadsPerCore,
    rounds: Math.ceil(blocks / (limits.cores * resident)),
    cooperative,
    loadsInChain: loadsInChain(kernel.text),
    counts,
  };
}

/** The roofline of a region, or the time of its launches and loads where that is longer. */
export function boundOf(
  region: {
    readonly estimateNs: number;
    readonly boundNs: number;
    readonly boundBy?: string | undefined;
  },
  kernels: readonly BlockKernel[],
  limits: BlockLimits,
): RegionBound {
  const { estimateNs, boundNs, boundBy } = region;
  const alone = latencyBound(
    kernels.map((k) => k.loadsInChain),
    limits,
  );
  const ns = Math.max(alone, boundNs);
  const share = estimateNs === 0 ? 0 : ns / estimateNs;
  if (alone > boundNs) return { by: "latency", ns, share };
  if (boundBy === "memory" || boundBy === "shared cache") return { by: boundBy, ns, share };
  const multiplies = kernels.some(({ counts }) => counts.mma + counts.wgmma > 0);
  return { by: multiplies ? "matrix unit" : "arithmetic", ns, share };
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
  const { resident, occupancy, counts, cluster, rounds, registersAllowed } = kernel;
  const asked = (Object.keys(instructions) as (keyof PtxCounts)[])
    .filter((key) => counts[key] > 0)
    .map((key) => `${counts[key]} ${instructions[key]}`);
  const local = kernel.localBytes ? `, ${kernel.localBytes} bytes of local memory` : "";
  return [
    `kernel ${kernel.name}: ${kernel.blocks} blocks of ${kernel.threads} threads` +
      `${cluster > 1 ? `, clusters of ${cluster}` : ""}${kernel.cooperative ? ", all resident" : ""}`,
    `  ${kernel.sharedBytes} bytes of shared memory a block, ${kernel.registers} registers a thread ` +
      `(${kernel.registersBy}; the text allows ${registersAllowed})${local}`,
    `  ${resident} blocks a multiprocessor, occupancy ${Math.round(100 * occupancy)} %, ` +
      `${rounds} ${rounds === 1 ? "round" : "rounds"}`,
    ...(asked.length > 0 ? [`  in its text: ${asked.join(", ")}`] : []),
  ];
}

/** Heads and rows of the table of all kernels; registers that are estimated have a sign before them. */
export function kernelTable(
  kernels: readonly BlockKernel[],
  boundOfRegion: (region: string) => RegionBound | undefined,
): { readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] } {
  const head = [
    ...["kernel", "region", "strategy", "tile", "stages", "cluster", "blocks", "threads"],
    ...["registers", "shared", "resident", "occupancy", "bound", "of it"],
  ];
  const rows = kernels.map((k) => {
    const bound = boundOfRegion(k.region);
    return [
      ...[k.name, k.region, k.strategy, k.tile?.join("x") ?? "-", String(k.stages ?? "-")],
      ...[k.cluster, k.blocks, k.threads].map(String),
      `${k.registersBy === "estimate" ? "~" : ""}${k.registers}`,
      ...[k.sharedBytes, k.resident].map(String),
      `${Math.round(100 * k.occupancy)} %`,
      bound?.by ?? "-",
      bound ? `${(100 * bound.share).toFixed(1)} %` : "-",
    ];
  });
  return { head, rows };
}
