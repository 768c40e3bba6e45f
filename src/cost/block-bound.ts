/**
 * A time that no schedule of a region beats on a machine of blocks of threads: its operations at the most
 * that any instruction does of them on the whole device, and its bytes. Those of a working set that the
 * shared cache holds may be there before the region begins.
 */
import type { Region, Statement } from "../region/nest.ts";
import { attentionForm } from "../schedule/attention/attention-form.ts";
import { symbolRanges } from "../schedule/scheduled-region.ts";
import { dtypes } from "../semantics/dtype.ts";
import type { BlockLimits } from "../target/target.ts";
import { bodyFlops, compulsoryBytes, pointsOf } from "./region-work.ts";

/** Peaks are themselves measured, and boost clocks move. */
const allowance = 1.15;

/** What it is that takes the time of a bound. */
export type BlockBoundBy = "arithmetic" | "shared cache" | "memory";

export interface BlockBound {
  readonly ns: number;
  readonly by: BlockBoundBy;
  /** Of operands and results, each element once. */
  readonly bytes: number;
}

/** Every candidate of a region asks for the same bound. */
const known = new WeakMap<BlockLimits, WeakMap<Region, BlockBound>>();

export function blockBound(region: Region, limits: BlockLimits): BlockBound {
  const bounds = known.get(limits) ?? new WeakMap<Region, BlockBound>();
  known.set(limits, bounds);
  const bound = bounds.get(region) ?? boundOf(region, limits);
  bounds.set(region, bound);
  return bound;
}

/**
 * What kernels one behind the other take at least without any work: each its launch, and the latency of memory where
 * it loads at all. Loads that wait for another may find what they ask for near, and so add nothing to a bound.
 *
 * @param chains of each kernel, the loads from memory that wait for each other
 */
export function latencyBound(
  chains: readonly number[],
  { launchNs, memoryLatencyNs }: Pick<BlockLimits, "launchNs" | "memoryLatencyNs">,
): number {
  return chains.reduce(
    (ns, loads) => ns + launchNs.value + Math.min(loads, 1) * memoryLatencyNs.value,
    0,
  );
}

function boundOf(region: Region, limits: BlockLimits): BlockBound {
  const ranges = symbolRanges(region);
  const share = shareOfScores(region);
  const compute = region.statements.reduce((ns, s) => {
    const flops = share * pointsOf(s, ranges) * bodyFlops(s);
    return ns + flops / mostFlops(region, s, limits);
  }, 0);
  const bytes = compulsoryBytes(region, ranges);
  const near = bytes / limits.nearBytesPerNs.value;
  const far = (bytes - limits.nearBytes) / limits.memoryBytesPerNs.value;
  const ns = Math.max(compute, near, far);
  const by = ns === compute ? "arithmetic" : ns === far ? "memory" : "shared cache";
  return { ns: ns / allowance, by, bytes };
}

/** Operations of the device in a nanosecond: two halves are one register, and products of them a matrix instruction's. */
function mostFlops(region: Region, { reads }: Statement, limits: BlockLimits): number {
  const { cores, warpThreads, warpInstructionsPerNsPerCore } = limits;
  const vector = 2 * warpThreads * warpInstructionsPerNsPerCore.value * cores;
  const types = reads.map(({ tensor }) => region.tensors.get(tensor)!.dtype);
  const rates = [limits.warpMatrixFlopsPerNs, limits.groupMatrixFlopsPerNs].flatMap((r) =>
    Object.entries(r).flatMap(([type, { value }]) =>
      types.some((t) => t === type) ? [value] : [],
    ),
  );
  // Two halves are one register.
  const isWide = types.every((t) => dtypes[t].bits > 16);
  return Math.max(isWide ? vector : 2 * vector, ...rates);
}

/** Of attention: the scores of a triangle are all that is met. */
function shareOfScores(region: Region): number {
  const form = attentionForm(region);
  if (typeof form === "string" || form.ahead === undefined) return 1;
  const { rows, columns, ahead, behind = Infinity } = form;
  let met = 0;
  for (let row = 0; row < rows; row++)
    met += Math.max(0, Math.min(columns, row + ahead + 1) - Math.max(0, row - behind));
  return met / (rows * columns);
}
