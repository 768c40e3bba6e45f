/** Whether two programs are told apart by their prices, which err by a share of what they price. */

import type { BlockLimits } from "../target/target.ts";

/** A region by what it computes, and its price on one core. */
export interface PricedRegion {
  readonly key: string;
  readonly ns: number;
}

/** Share of a program's price that prices do not tell apart: a graph that saves no more is not worth it. */
const leastSaving = 0.002;
/**
 * The same of the regions that differ. Measured on the models of the benches: what was priced lower by less
 * came out between 1 % slower and 1 % faster, what was priced lower by more up to 4 % faster.
 */
const leastOfChanged = 0.01;
/**
 * The same on grids of blocks, with the launches that are saved and without. Kernels in a row that do not
 * wait for each other run side by side, so that a launch less may save nothing. Measured on an H200 with
 * 18 models: those that saved more by both came out 6 to 40 % faster, the others between 12 % slower and
 * 6 % faster, whatever their price said.
 */
const leastOnBlocks = 0.05;

/** A program for grids of blocks: its price and its kernels. */
export interface PricedKernels {
  readonly ns: number;
  readonly kernels: number;
}

/** As isToldApart, on grids of blocks. */
export function isToldApartOnBlocks(
  before: PricedKernels,
  after: PricedKernels,
  { launchNs }: Pick<BlockLimits, "launchNs">,
): boolean {
  const saved = before.ns - after.ns;
  const launches = (before.kernels - after.kernels) * launchNs.value;
  return Math.min(saved, saved - launches) > leastOnBlocks * before.ns;
}

/**
 * Whether prices tell a program from one that saves a share of its price: a price errs by a share of what
 * it prices, so what counts is how much is saved of the regions that the other does not have.
 */
export function isToldApart(
  saved: number,
  before: readonly PricedRegion[],
  after: readonly PricedRegion[],
): boolean {
  const left = new Map<string, number>();
  for (const { key } of after) left.set(key, (left.get(key) ?? 0) + 1);
  let [all, changed] = [0, 0];
  for (const { key, ns } of before) {
    all += ns;
    const others = left.get(key) ?? 0;
    if (others > 0) left.set(key, others - 1);
    else changed += ns;
  }
  return saved > Math.max(leastSaving, leastOfChanged * (changed / all));
}
