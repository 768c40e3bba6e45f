/**
 * The least time that a problem can take on measured peaks: arithmetic over 1.15 x peak, or
 * compulsory traffic over 1.15 x bandwidth of the smallest memory level that holds the working set,
 * whichever is longer. A measured time below it is a broken measurement.
 */

/** What a problem cannot do without. */
export interface Work {
  readonly flops: number;
  readonly bytes: number;
}

/** What this machine was measured to reach, in this run. */
export interface Peaks {
  readonly flopsPerSecond: number;
  readonly bytesPerSecond: number;
}

/** Peaks are themselves measured, and boost clocks move. */
const allowance = 1.15;

export function roofBoundNs(work: Work, peaks: Peaks): number {
  const arithmetic = work.flops / (allowance * peaks.flopsPerSecond);
  const traffic = work.bytes / (allowance * peaks.bytesPerSecond);
  return 1e9 * Math.max(arithmetic, traffic);
}
