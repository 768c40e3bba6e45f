/**
 * The least time that a problem can take on measured peaks: arithmetic over 1.15 x peak, or compulsory
 * traffic over 1.15 x bandwidth of the smallest memory level that holds the working set, whichever is
 * longer. A measured time below it is a broken measurement.
 */
import { invariant } from "../../support/invariant.ts";

/** What a problem cannot do without. */
export interface Work {
  /** Operations of the type that the peak is of; 0 where there are none or they are not counted. */
  readonly flops: number;
  /** Bytes of operands and results, each once; they are the working set too. */
  readonly bytes: number;
}

/** What the level sustains when all that is read fits in it; the last one has no capacity. */
export interface LevelPeak {
  readonly name: string;
  readonly capacityBytes?: number;
  readonly bytesPerNs: number;
}

/** What this machine was measured to reach on all threads in use. */
export interface Peaks {
  readonly flopsPerNs: number;
  /** Nearest first. */
  readonly levels: readonly LevelPeak[];
}

/** Peaks are themselves measured, and boost clocks move. */
const allowance = 1.15;

export function roofBoundNs({ flops, bytes }: Work, { flopsPerNs, levels }: Peaks): number {
  const level = levels.find((l) => l.capacityBytes === undefined || l.capacityBytes >= bytes);
  invariant(level, () => "no memory level holds everything");
  return Math.max(flops / (allowance * flopsPerNs), bytes / (allowance * level.bytesPerNs));
}
