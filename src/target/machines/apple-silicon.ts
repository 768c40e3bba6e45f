/**
 * What Apple's chips share: GPU and CPU on one memory, matrix instructions that run on the vector lanes.
 * Planning only: no emitter writes their code.
 */
import { appleGpu } from "../architectures/other.ts";
import { type Figure, perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const benchmarks = "philipturner/metal-benchmarks, README, GPU tables (GitHub)";

export interface AppleChip {
  readonly name: string;
  readonly chip: string;
  /** Largest memory in GiB. */
  readonly gib: number;
  readonly memoryKind: string;
  readonly gbPerSecond: number;
  readonly gpuCores: number;
  /** Where Apple states memory, bandwidth and cores. */
  readonly specifications: string;
  readonly megahertz: Figure<"device">;
  /** System level cache in MiB. */
  readonly cacheMib: number;
  /** Figure of f32; half precision runs at the same rate. */
  readonly teraflops: Figure<"device">;
}

export function appleMachine(chip: AppleChip): MachineFile {
  const { specifications, teraflops } = chip;
  const onLanes = perDevice(
    teraflops.value,
    `simdgroup matrix instructions run on the vector lanes: ${benchmarks}`,
    "predicted",
  );
  return {
    name: chip.name,
    summary: `${chip.chip}, ${chip.gib} GB at most (planning only)`,
    machine: {
      kind: "gpu",
      vendor: "Apple",
      driverNames: [chip.chip],
      architecture: appleGpu,
      multiprocessors: perDevice(chip.gpuCores, specifications),
      boostMhz: chip.megahertz,
      memoryKind: chip.memoryKind,
      unifiedMemory: true,
      memoryBytes: perDevice(chip.gib * 2 ** 30, specifications),
      memoryBytesPerNs: perDevice(chip.gbPerSecond, specifications),
      l2Bytes: perDevice(chip.cacheMib * 2 ** 20, `system level cache: ${benchmarks}`, "measured"),
      vectorTeraops: { f32: teraflops, f16: teraflops },
      matrixTeraops: { f16: onLanes, f32: onLanes },
      links: [
        { kind: "on-package", bytesPerNsEachWay: perDevice(chip.gbPerSecond, specifications) },
      ],
    },
  };
}

/** Clock of a GPU as the benchmarks' author measured it. */
export function measuredMhz(megahertz: number): Figure<"device"> {
  return perDevice(megahertz, benchmarks, "measured");
}

/** Two operations a lane and cycle on 128 lanes a core. */
export function lanesTimesClock(
  gpuCores: number,
  { value, source }: Figure<"device">,
): Figure<"device"> {
  const teraflops = Math.round((2 * 128 * gpuCores * value) / 1e4) / 100;
  const formula = `2 x 128 lanes x ${gpuCores} cores x ${value} MHz (${source})`;
  return perDevice(teraflops, formula, "predicted");
}
