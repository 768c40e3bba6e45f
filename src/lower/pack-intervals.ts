/**
 * Offsets for blocks that live over intervals of time: two blocks whose lifetimes meet must not
 * overlap in space. Several greedy orders (by size, area, start, lifetime; lowest fitting offset first),
 * then a seeded improvement of the best order until the peak reaches the lower bound or the budget of
 * placements is spent. The lower bound is the largest sum of sizes alive at one time.
 *
 * Offline dynamic storage allocation is NP-hard; greedy by size is the usual baseline (Sekiyama et al.
 * 2018, Pisarchyk and Lee 2020).
 */
import { Rng } from "../support/rng.ts";

/** Alive at the times first … last, both included. */
export interface Interval {
  readonly size: number;
  readonly first: number;
  readonly last: number;
}

export interface Packing {
  /** Per interval. */
  readonly offsets: readonly number[];
  readonly peak: number;
  readonly lowerBound: number;
}

const improvementPlacements = 400_000;

export function packIntervals(intervals: readonly Interval[], alignment: number): Packing {
  const sizes = intervals.map((i) => Math.ceil(i.size / alignment) * alignment);
  const aligned = intervals.map((i, at) => ({ ...i, size: sizes[at]! }));
  const lowerBound = liveBytes(aligned);
  const neighbours = aligned.map((a, i) =>
    aligned.flatMap((b, j) => (i !== j && a.first <= b.last && b.first <= a.last ? [j] : [])),
  );
  const orders = startOrders(aligned);
  let best = orders[0] ?? [];
  let packed = place(aligned, neighbours, best);
  for (const order of orders.slice(1)) {
    const next = place(aligned, neighbours, order);
    if (next.peak < packed.peak) [best, packed] = [order, next];
  }
  const rng = new Rng(aligned.length);
  let left = improvementPlacements;
  let order = [...best];
  while (packed.peak > lowerBound && left > 0 && order.length > 1) {
    left -= order.length;
    const trial = [...order];
    // Blocks at the peak want to be placed earlier.
    const high = trial.filter((i) => packed.offsets[i]! + sizes[i]! === packed.peak);
    const moved = rng.uniform() < 0.5 ? rng.pick(high) : rng.pick(trial);
    trial.splice(trial.indexOf(moved), 1);
    trial.splice(rng.integer(0, trial.length), 0, moved);
    const next = place(aligned, neighbours, trial);
    if (next.peak <= packed.peak) [order, packed] = [trial, next];
  }
  return { ...packed, lowerBound };
}

function startOrders(intervals: readonly Interval[]): number[][] {
  const ids = intervals.map((_, i) => i);
  const by = (key: (i: Interval) => number): number[] =>
    [...ids].sort((a, b) => key(intervals[b]!) - key(intervals[a]!) || a - b);
  return [
    by((i) => i.size),
    by((i) => i.size * (i.last - i.first + 1)),
    by((i) => -i.first),
    by((i) => i.last - i.first),
  ];
}

function place(
  intervals: readonly Interval[],
  neighbours: readonly (readonly number[])[],
  order: readonly number[],
): { readonly offsets: readonly number[]; readonly peak: number } {
  const offsets = new Array<number>(intervals.length).fill(-1);
  let peak = 0;
  for (const i of order) {
    const taken = neighbours[i]!.filter((j) => offsets[j]! >= 0);
    taken.sort((a, b) => offsets[a]! - offsets[b]!);
    let at = 0;
    for (const j of taken) {
      if (offsets[j]! - at >= intervals[i]!.size) break;
      at = Math.max(at, offsets[j]! + intervals[j]!.size);
    }
    offsets[i] = at;
    peak = Math.max(peak, at + intervals[i]!.size);
  }
  return { offsets, peak };
}

function liveBytes(intervals: readonly Interval[]): number {
  const change = new Map<number, number>();
  for (const { size, first, last } of intervals) {
    change.set(first, (change.get(first) ?? 0) + size);
    change.set(last + 1, (change.get(last + 1) ?? 0) - size);
  }
  let alive = 0;
  let most = 0;
  for (const time of [...change.keys()].sort((a, b) => a - b)) {
    alive += change.get(time)!;
    most = Math.max(most, alive);
  }
  return most;
}
