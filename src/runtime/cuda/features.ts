/**
 * Which GPU targets run on a device here, by default the first: those of its compute capability, the one with the
 * device's own name first. Asked once a process and device, and only when a GPU is meant: the driver takes a while.
 */
import { platform } from "node:os";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import type { GpuArchitecture } from "../../target/machine.ts";
import type { Target } from "../../target/target.ts";
import { openKeptFiles } from "../files/kept-files.ts";
import { CudaDevice } from "./device.ts";
import { CudaDriver } from "./driver.ts";
import { type DriversNeeded, driversNeededBy, judgeDriver } from "./driver-version.ts";
import type { CubinStore } from "./module.ts";

export interface CudaFeatures {
  /** Name of the device. */
  readonly device: string;
  /** Names of all devices, by ordinal. */
  readonly devices: readonly string[];
  /** 13000 stands for CUDA 13.0. */
  readonly driverVersion: number;
  /** What the driver has to be for programs for this GPU: for any, and for those with its latest instructions. */
  readonly driversNeeded: DriversNeeded;
  /** Names of targets whose programs run on it, best first. */
  readonly targets: readonly string[];
  /** A device, by default the one that was asked about; whoever opens it closes it. */
  readonly open: (wish?: CudaWish) => Result<CudaDevice>;
  readonly store: CubinStore;
}

/** Which device a program runs on, and how much of its memory it may hold. */
export interface CudaWish {
  readonly ordinal?: number;
  readonly capBytes?: number;
}

let opened: Result<CudaDriver> | undefined;
const probed = new Map<number, Result<CudaFeatures>>();

/** @param ordinal of the device, as the driver counts */
export function probeCuda(ordinal = 0): Result<CudaFeatures> {
  opened ??= CudaDriver.open(platform());
  const features = probed.get(ordinal) ?? probeDriver(opened, ordinal);
  probed.set(ordinal, features);
  return features;
}

/** Of GPUs whose matrix instructions and asynchronous copies the emitter has. */
const oldestMajor = 8;

/** With a warning where the driver does not take all programs for the GPU. */
export function probeDriver(driver: Result<CudaDriver>, asked = 0): Result<CudaFeatures> {
  if (!driver.ok) return driver;
  const devices = CudaDevice.names(driver.value);
  if (!devices.ok) return devices;
  if (devices.value.length === 0) {
    const help = "look whether CUDA_VISIBLE_DEVICES hides them, or choose another target";
    return fail(diagnostic("CUD001", "the NVIDIA driver shows no GPU", { help }));
  }
  if (devices.value[asked] === undefined) return fail(noSuchDevice(asked, devices.value));
  const device = CudaDevice.open(driver.value, asked);
  if (!device.ok) return device;
  const { name, attributes } = device.value;
  device.value.close();
  const capability = `${attributes.major}.${attributes.minor}`;
  const names = targetsOf(name, capability);
  if (names.length === 0) {
    return fail(
      diagnostic("CUD001", `no target describes ${name}, compute capability ${capability}`, {
        help:
          attributes.major < oldestMajor
            ? `there is no code for GPUs before compute capability ${oldestMajor}.0: choose another target`
            : "describe it in a target file (docs/adding-a-target.md)",
      }),
    );
  }
  const { version } = driver.value;
  const needed = driversNeededBy(architectureOf(names[0]!));
  const judged = judgeDriver(version, name, needed);
  if (judged?.severity === "error") return fail(judged);
  const open = ({ ordinal = asked, capBytes }: CudaWish = {}): Result<CudaDevice> =>
    devices.value[ordinal] === undefined
      ? fail(noSuchDevice(ordinal, devices.value))
      : CudaDevice.open(driver.value, ordinal, capBytes);
  const features: CudaFeatures = {
    device: name,
    devices: devices.value,
    driverVersion: version,
    driversNeeded: needed,
    targets: names,
    open,
    store: openKeptFiles("cubins"),
  };
  return ok(features, judged ? [judged] : []);
}

function architectureOf(target: string): GpuArchitecture {
  const machine = targets.get(target)?.machine;
  invariant(machine?.kind === "gpu", () => `${target} is no GPU`);
  return machine.architecture;
}

function noSuchDevice(ordinal: number, devices: readonly string[]): Diagnostic {
  return diagnostic("CUD001", `there is no GPU ${ordinal}`, {
    notes: devices.map((name, i) => `${i}: ${name}`),
    help: `give a number from 0 to ${devices.length - 1}`,
  });
}

/** Targets for a device of this name and compute capability. */
export function targetsOf(device: string, capability: string): readonly string[] {
  const isNamed = ({ machine }: Target): boolean =>
    machine?.kind === "gpu" && (machine.driverNames?.includes(device) ?? false);
  const fitting = [...targets.values()].filter(
    ({ emitter, machine }) =>
      emitter === "ptx" &&
      machine?.kind === "gpu" &&
      machine.architecture.computeCapability === capability,
  );
  const named = fitting.filter(isNamed);
  return [...named, ...fitting.filter((t) => !named.includes(t))].map((t) => t.name);
}
