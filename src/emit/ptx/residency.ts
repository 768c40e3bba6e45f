/**
 * How many blocks of a kernel a machine holds at once, as far as its text says: what waits for each other has to
 * be held all together, or it waits for ever. Registers are the assembler's and counted by the driver (runtime/).
 */
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { reject } from "../../support/diagnostic.ts";
import type { BlockLimits } from "../../target/target.ts";
import type { PtxKernel } from "./ptx-module.ts";

type Sizes = Pick<PtxKernel, "threads" | "staticSharedBytes" | "dynamicSharedBytes">;

/** Blocks that a multiprocessor holds by threads and shared memory; none where one alone asks for too much. */
export function blocksHeld(kernel: Sizes, limits: BlockLimits): number {
  const held = Math.ceil(kernel.threads / limits.warpThreads) * limits.warpThreads;
  const sharedBytes = kernel.staticSharedBytes + kernel.dynamicSharedBytes;
  return Math.min(
    limits.blocksPerCore,
    Math.floor(limits.threadsPerCore / held),
    Math.floor(limits.sharedBytesPerCore / (sharedBytes + limits.sharedBytesReserved)),
  );
}

/**
 * Multiprocessors that each group of them has at least, within which the blocks of a cluster lie (H200: 16 to 18; it
 * holds 32 clusters of four blocks that take a multiprocessor each, not 33). Where a device has fewer, its driver says so
 * when the kernel is made ready (runtime/cuda/launch.ts).
 */
const groupCores = 16;

function blocksAtOnce({ cluster }: PtxKernel, each: number, { cores }: BlockLimits): number {
  if (cluster === 1) return each * cores;
  const inGroup = Math.floor((each * Math.min(groupCores, cores)) / cluster);
  return Math.max(1, Math.floor(cores / groupCores)) * inGroup * cluster;
}

/** Refuses (PRG042) a grid whose blocks wait for each other and that is larger than what the machine holds. */
export function checkResidency(kernel: PtxKernel, ranges: IndexRanges, limits: BlockLimits): void {
  if (!kernel.cooperative) return;
  const blocks = kernel.grid.reduce((n, e) => n * Math.max(0, rangeOf(e, ranges).max), 1);
  const each = blocksHeld(kernel, limits);
  const atOnce = blocksAtOnce(kernel, each, limits);
  if (blocks <= atOnce) return;
  reject("PRG042", `the ${blocks} blocks of kernel ${kernel.name} wait for each other`, {
    notes: [`${limits.cores} multiprocessors hold ${atOnce} of them at once, ${each} each`],
    help: "use fewer blocks, or blocks of fewer threads or less shared memory",
  });
}
