/**
 * The time of a product by blocks (schedule/product-form.ts), without its launch. A multiprocessor holds as
 * many blocks as its shared memory, registers and threads allow; they share its units, so a round of them
 * takes for each step the most of
 *
 *   multiplying     the tile's products at the rate of the instruction
 *   near memory     what the threads read of shared memory
 *   far memory      both tiles at the share of the caches that a multiprocessor has
 *   latency         of a copy, over the stages that are on the way
 *
 * and at its ends the latency of the first tiles and the bytes of the results. The last round counts whole.
 */
import type { Statement } from "../region/nest.ts";
import type { ScheduledProduct } from "../schedule/scheduled-region.ts";
import { dtypes } from "../semantics/dtype.ts";
import { scalarCost } from "../semantics/scalar-expr.ts";
import type { BlockLimits } from "../target/target.ts";

/** Part of the instruction's rate that a well filled multiprocessor keeps up: loops, addresses, waits. */
const sustained = { fma: 0.7, mma: 0.8 } as const;
/** Warps of a multiprocessor from which on its units have work all the time. */
const busyWarps = 8;
/** Registers of a thread beside its sums. */
const plainRegisters = { fma: 96, mma: 72 } as const;
/** Rounding in the allocation of registers. */
const registerUnit = 8;

export function productNanoseconds(
  { form, directive }: ScheduledProduct,
  statement: Statement,
  limits: BlockLimits,
): number {
  const { by, warps, stages } = directive;
  const [rows, columns, depth] = directive.tile;
  const { warpThreads, cores } = limits;
  const threads = warpThreads * warps[0] * warps[1];
  const bytes = dtypes[form.dtype].bits / 8;
  const resident = residentBlocks(directive, bytes, limits);
  if (resident === 0) return Infinity;
  const down = Math.ceil(form.rows.extent / rows);
  const across = Math.ceil(form.columns.extent / columns);
  const blocks = down * across * form.batch.extent;
  const perCore = Math.ceil(blocks / cores);
  const together = Math.min(resident, perCore);
  const rounds = Math.ceil(perCore / together);
  const busy = Math.min(1, (together * (threads / warpThreads)) / busyWarps);
  const multiply =
    (2 * rows * columns * depth) / (rateOf(by, form.dtype, limits) * sustained[by] * busy);
  const read = nearBytes(directive, bytes) / limits.sharedBytesPerNsPerCore.value;
  const copied = (rows + columns) * depth * bytes;
  const active = Math.min(cores, blocks);
  const copy = (copied * active) / limits.nearBytesPerNs.value;
  const latency = limits.memoryLatencyNs.value / (stages - 1);
  const steps = Math.ceil(form.depth.extent / depth);
  const round = steps * Math.max(together * Math.max(multiply, read, copy), latency);
  const finish = (statement.finish ?? []).reduce((sum, e) => sum + scalarCost(e), 1);
  const slots = (together * rows * columns * (finish + 2)) / warpThreads;
  const ends = 2 * limits.memoryLatencyNs.value + slots / limits.warpInstructionsPerNsPerCore.value;
  return rounds * (round + ends);
}

/** Floating-point operations of a multiprocessor a nanosecond. */
function rateOf(by: "fma" | "mma", dtype: string, limits: BlockLimits): number {
  const { warpThreads, warpInstructionsPerNsPerCore, cores } = limits;
  if (by === "fma") return 2 * warpThreads * warpInstructionsPerNsPerCore.value;
  const whole =
    dtype === "bf16" || dtype === "f16" ? limits.warpMatrixFlopsPerNs[dtype] : undefined;
  return (whole?.value ?? 0) / cores;
}

/** Bytes of shared memory that the threads of a block read in a step: each warp its rows and columns. */
function nearBytes({ tile, warps, by }: ScheduledProduct["directive"], bytes: number): number {
  const [rows, columns, depth] = tile;
  const [down, across] = warps;
  // Threads of a warp that read the same vector get it at once, but four rows of it take a turn each.
  const turns = by === "fma" ? 2 : 1;
  return turns * bytes * depth * (rows * across + columns * down);
}

function residentBlocks(
  { by, tile, warps, stages }: ScheduledProduct["directive"],
  bytes: number,
  limits: BlockLimits,
): number {
  const [rows, columns, depth] = tile;
  const threads = limits.warpThreads * warps[0] * warps[1];
  const shared = stages * (rows + columns) * (depth + 16 / bytes) * bytes;
  const sums = (rows * columns) / threads;
  const needed = Math.ceil((plainRegisters[by] + sums) / registerUnit) * registerUnit;
  if (needed > limits.registersPerThread || shared > limits.sharedBytesPerBlock) return 0;
  return Math.min(
    limits.blocksPerCore,
    Math.floor(limits.threadsPerCore / threads),
    Math.floor(limits.registersPerCore / (threads * needed)),
    Math.floor(limits.sharedBytesPerCore / (shared + limits.sharedBytesReserved)),
  );
}
