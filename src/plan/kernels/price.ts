/**
 * Predicted time of a kernel: what the machine's rates allow for the work that the grid really does, edges
 * and last wave included, and never below the roofline of the problem itself (design: "Measuring").
 */
import type { KernelConfiguration } from "./configuration.ts";

export interface Pace {
  /** Operations a nanosecond of the whole machine for this implementation. */
  readonly flopsPerNs: number;
  /** Bytes a nanosecond of its memory. */
  readonly bytesPerNs: number;
  /** Bytes a nanosecond that its last shared cache hands to all units together. */
  readonly cacheBytesPerNs: number;
  /** Multiprocessors or cores. */
  readonly units: number;
  /** Before the first and after the last instruction of a launch. */
  readonly launchNs: number;
}

export interface Load {
  /** Pieces of equal work that units take turns at. */
  readonly pieces: number;
  /** Pieces that one unit holds at once. */
  readonly atOnce: number;
  readonly flopsOfPiece: number;
  /** Of the problem, once. */
  readonly bytes: number;
  /** What all pieces together fetch, each on its own. */
  readonly fetchedBytes: number;
  /** Nanoseconds of one piece that nothing overlaps: pipeline fill, reduction tail. */
  readonly pieceLatencyNs: number;
}

export function price(load: Load, pace: Pace): Pick<KernelConfiguration, "estimateNs" | "bound"> {
  const waves = Math.ceil(load.pieces / (pace.units * load.atOnce));
  const perUnit = pace.flopsPerNs / pace.units;
  const arithmeticNs = (waves * load.atOnce * load.flopsOfPiece) / perUnit;
  // Too few pieces leave memory channels idle: a unit alone draws about four times its share.
  const busy = Math.min(1, (4 * Math.min(load.pieces, pace.units)) / pace.units);
  const memoryNs = Math.max(
    load.bytes / (pace.bytesPerNs * busy),
    load.fetchedBytes / (pace.cacheBytesPerNs * busy),
  );
  // Pieces after the first are mostly hidden behind their neighbours.
  const latencyNs = pace.launchNs + load.pieceLatencyNs * (1 + (waves - 1) / 4);
  const bound =
    latencyNs > Math.max(arithmeticNs, memoryNs)
      ? "latency"
      : memoryNs > arithmeticNs
        ? "memory"
        : "arithmetic";
  return { estimateNs: latencyNs + Math.max(arithmeticNs, memoryNs), bound };
}
