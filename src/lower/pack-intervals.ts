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
  const orders = startOrders(aligned);
  let best = orders[0] ?? [];
  let packed = place(aligned, best);
  for (const order of orders.slice(1)) {
    const next = place(aligned, order);
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
    const next = place(aligned, trial);
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

/** Each at the lowest offset where nothing that was placed before is alive with it. */
function place(
  intervals: readonly Interval[],
  order: readonly number[],
): { readonly offsets: readonly number[]; readonly peak: number } {
  const offsets = new Array<number>(intervals.length).fill(-1);
  /** By offset. */
  const placed: number[] = [];
  let peak = 0;
  for (const i of order) {
    const { size, first, last } = intervals[i]!;
    let at = 0;
    for (const j of placed) {
      const other = intervals[j]!;
      if (other.first > last || other.last < first) continue;
      if (offsets[j]! - at >= size) break;
      at = Math.max(at, offsets[j]! + other.size);
    }
    offsets[i] = at;
    placed.splice(placeOf(placed, offsets, at), 0, i);
    peak = Math.max(peak, at + size);
  }
  return { offsets, peak };
}

/** Where a block at an offset stands among others in order. */
function placeOf(placed: readonly number[], offsets: readonly number[], offset: number): number {
  let [from, to] = [0, placed.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (offsets[placed[middle]!]! <= offset) from = middle + 1;
    else to = middle;
  }
  return from;
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
