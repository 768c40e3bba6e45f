/** What all GPU kernels share: the sustained pace of a machine, grids within its limits, load widths. */
import type { GpuMachine } from "../../target/machine.ts";
import { sustainedRates } from "../../target/machine-target.ts";
import type { Pace } from "./price.ts";

/** From the launch to a grid at full pace (CUDA graphs of small kernels on an H100 take 2 us). */
const rampNs = 700;
const mostWidth = 65535;

export function paceOf(machine: GpuMachine, flopsPerNs: number): Pace {
  const { memoryBytesPerNs, nearBytesPerNs, launchNs, memoryLatencyNs } = sustainedRates(machine);
  // Of the data sheet's rate matrix units sustain a part: power limits them.
  return {
    flopsPerNs: 0.75 * flopsPerNs,
    bytesPerNs: memoryBytesPerNs.value,
    cacheBytesPerNs: nearBytesPerNs.value,
    units: machine.multiprocessors.value,
    memoryLatencyNs: memoryLatencyNs.value,
    launchNs: launchNs.value + rampNs,
  };
}

/** Blocks beyond the first axis' limit are not needed: it holds 2^31 - 1. */
export function gridOf(blocks: number): readonly [number, number, number] {
  if (blocks <= 2 ** 31 - 1) return [blocks, 1, 1];
  const layers = Math.ceil(blocks / (2 ** 31 - 2));
  return [2 * Math.ceil(blocks / layers / 2), Math.min(layers, mostWidth), 1];
}

/** The widest load that every row begins at. */
export function vectorBytesFor(rowBytes: number): number {
  return [16, 8, 4, 2].find((bytes) => rowBytes % bytes === 0) ?? 1;
}

/** Blocks of threads that a multiprocessor holds at once, as far as threads and registers decide. */
export function residentBlocks(
  { architecture: a }: GpuMachine,
  threads: number,
  registers: number,
): number {
  const most = Math.min(
    a.threadsPerSm.value / threads,
    a.registersPerSm.value / (registers * threads),
    a.blocksPerSm.value,
  );
  return Math.max(1, Math.floor(most));
}
