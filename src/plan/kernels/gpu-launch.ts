/** What all GPU kernels share: the sustained pace of a machine, grids within its limits, load widths. */
import type { GpuMachine } from "../../target/machine.ts";
import type { Pace } from "./price.ts";

/** Launch of a graph node and the ramp of a grid (CUDA graphs of small kernels on an H100: 2 us). */
const launchNs = 2000;
const mostWidth = 65535;

export function paceOf(machine: GpuMachine, flopsPerNs: number): Pace {
  const { multiprocessors, memoryBytesPerNs } = machine;
  // Sustained shares of the data sheet: matrix units are limited by power, memory by refresh and turns.
  return {
    flopsPerNs: 0.75 * flopsPerNs,
    bytesPerNs: 0.88 * memoryBytesPerNs.value,
    cacheBytesPerNs: 2.2 * memoryBytesPerNs.value,
    units: multiprocessors.value,
    launchNs,
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
