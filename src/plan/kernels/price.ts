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
  /** From a load to its value, where nothing else waits. */
  readonly memoryLatencyNs: number;
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
  /** Bytes that a piece has asked memory for and not got; absent: enough that nothing waits for them. */
  readonly bytesInFlight?: number;
  /** Nanoseconds of one piece that nothing overlaps: pipeline fill, reduction tail. */
  readonly pieceLatencyNs: number;
}

export function price(load: Load, pace: Pace): Pick<KernelConfiguration, "estimateNs" | "bound"> {
  const { pieces, atOnce, bytesInFlight } = load;
  const waves = Math.ceil(pieces / (pace.units * atOnce));
  const perUnit = pace.flopsPerNs / pace.units;
  // Pieces of a unit share its rate, however many it holds at once.
  const arithmeticNs = (Math.ceil(pieces / pace.units) * load.flopsOfPiece) / perUnit;
  // Too few pieces leave memory channels idle: a unit alone draws about four times its share.
  const busy = Math.min(1, (4 * Math.min(pieces, pace.units)) / pace.units);
  // Little's law: what is under way at once, over the time that it takes.
  const resident = Math.min(pieces, pace.units * atOnce);
  const answered =
    bytesInFlight === undefined ? Infinity : (resident * bytesInFlight) / pace.memoryLatencyNs;
  const memoryNs = Math.max(
    load.bytes / Math.min(pace.bytesPerNs * busy, answered),
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
