/**
 * How many bytes of cache lines a part of a schedule touches, from the steps of accesses alone: along
 * each axis the loops inside span an interval, the product over the axes is a box, and rows that are
 * contiguous share lines. Exact for dense accesses, an upper bound for strided ones.
 */
import type { AccessFigures, LoopFigures } from "./nest-figures.ts";

export const lineBytes = 64;

/** Bytes of cache lines that the access touches in one run of the loops. */
export function footprintBytes(a: AccessFigures, loops: readonly LoopFigures[]): number {
  const { axes, bytes } = a;
  if (axes.length === 0) return lineBytes;
  let run = 1;
  let rows = 1;
  let joined = true;
  for (let axis = axes.length - 1; axis >= 0; axis--) {
    const { extent, steps } = axes[axis]!;
    let span = 1;
    let points = 1;
    for (const l of loops) {
      const step = Math.abs(steps[l.origin]!) * l.unit;
      if (step === 0 || l.trips === 1) continue;
      span += step * (l.trips - 1);
      points *= l.trips;
    }
    const width = Math.min(Math.floor(span), extent);
    if (joined) run *= axis === axes.length - 1 ? width : Math.min(width, points);
    else rows *= Math.min(width, points);
    // A whole axis is contiguous with the next one out; a part of it ends the run.
    joined = joined && width === extent;
  }
  const lines = Math.ceil((run * bytes) / lineBytes);
  return rows * Math.max(1, lines) * lineBytes;
}

/** Elements that the access touches in one run of the loops, shared positions counted once. */
export function distinctElements(a: AccessFigures, loops: readonly LoopFigures[]): number {
  let all = 1;
  for (const { extent, steps } of a.axes) {
    let span = 1;
    let points = 1;
    for (const l of loops) {
      const step = Math.abs(steps[l.origin]!) * l.unit;
      if (step === 0) continue;
      span += step * (l.trips - 1);
      points *= l.trips;
    }
    all *= Math.max(1, Math.min(Math.floor(span), points, extent));
  }
  return all;
}

/** Bytes that the loops touch in all; accesses of one tensor with the same steps count once. */
export function workingSetBytes(
  accesses: readonly AccessFigures[],
  loops: readonly LoopFigures[],
): number {
  const seen = new Map<string, number>();
  for (const a of accesses) {
    const bytes = footprintBytes(a, loops);
    seen.set(a.tensor, Math.max(seen.get(a.tensor) ?? 0, bytes));
  }
  let sum = 0;
  for (const bytes of seen.values()) sum += bytes;
  return sum;
}

/** How the lanes of an access lie: side by side, all at one place, or apart. */
export type LaneOrder = "contiguous" | "uniform" | "apart";

export function laneOrder(a: AccessFigures, lane: number | undefined): LaneOrder {
  if (lane === undefined) return "contiguous";
  const last = a.axes.length - 1;
  let moves = false;
  for (let axis = 0; axis < last; axis++) {
    // Blocks of a packed axis move with whole lanes only.
    if (Math.abs(a.axes[axis]!.steps[lane]!) >= 1) return "apart";
  }
  const step = last < 0 ? 0 : a.axes[last]!.steps[lane]!;
  moves = step !== 0;
  if (!moves) return "uniform";
  return step === 1 ? "contiguous" : "apart";
}
