/**
 * Moves of jobs off overloaded devices. A move is suggested only when the busier of the two devices is
 * less busy after it than before, so the largest load never rises, and only where memory and a place in
 * the queue are free. Jobs that must stay on their device stay.
 */
import type { Accelerator, Job } from "./fleet.ts";

export interface Assignment {
  readonly job: Job;
  readonly device: number;
}

export interface Move {
  readonly job: number;
  readonly from: number;
  readonly to: number;
  /** Load of both devices afterwards, in nanoseconds of work. */
  readonly fromNs: number;
  readonly toNs: number;
}

/** A move that makes less of the busier one's load does so beyond what sums round; else two could take turns for ever. */
const leastGain = 1e-9;

/** Nanoseconds of work on each device. */
export function loadsOf(
  devices: readonly Accelerator[],
  assigned: readonly Assignment[],
): number[] {
  const loads = devices.map(() => 0);
  for (const { job, device } of assigned) loads[device]! += job.work / devices[device]!.speed;
  return loads;
}

/** Suggestions in the order to carry them out; devices at or below `thresholdNs` give nothing away. */
export function suggestMoves(
  devices: readonly Accelerator[],
  assigned: readonly Assignment[],
  thresholdNs: number,
): readonly Move[] {
  const where = new Map(assigned.map((a) => [a.job.id, a]));
  const moves: Move[] = [];
  for (;;) {
    const now = [...where.values()];
    const move = bestMove(devices, now, thresholdNs);
    if (!move) return moves;
    moves.push(move);
    where.set(move.job, { job: where.get(move.job)!.job, device: move.to });
  }
}

function bestMove(
  devices: readonly Accelerator[],
  assigned: readonly Assignment[],
  thresholdNs: number,
): Move | undefined {
  const loads = loadsOf(devices, assigned);
  const free = devices.map((d) => d.memoryBytes);
  const depth = devices.map(() => 0);
  for (const { job, device } of assigned) {
    free[device]! -= job.memoryBytes;
    depth[device]!++;
  }
  const busiest = loads
    .map((load, device) => ({ load, device }))
    .filter(({ load }) => load > thresholdNs)
    .sort((a, b) => b.load - a.load || a.device - b.device);
  for (const { device: from, load } of busiest) {
    let best: Move | undefined;
    for (const { job, device } of assigned) {
      if (device !== from || job.preferred !== undefined) continue;
      for (let to = 0; to < devices.length; to++) {
        if (to === from || job.memoryBytes > free[to]!) continue;
        if (depth[to]! > devices[to]!.queueDepth) continue;
        const fromNs = load - job.work / devices[from]!.speed;
        const toNs = loads[to]! + job.work / devices[to]!.speed;
        const after = Math.max(fromNs, toNs);
        if (after >= load * (1 - leastGain) || (best && after >= Math.max(best.fromNs, best.toNs)))
          continue;
        best = { job: job.id, from, to, fromNs, toNs };
      }
    }
    if (best) return best;
  }
  return undefined;
}
