/**
 * Which GPU targets run here: those whose compute capability is the first device's, the one with the
 * device's own name first. Asked once a process, and only when a GPU is meant: the driver takes a while.
 */
import { platform } from "node:os";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { Target } from "../../target/target.ts";
import { openKeptFiles } from "../files/kept-files.ts";
import { CudaDevice } from "./device.ts";
import { CudaDriver } from "./driver.ts";
import type { CubinStore } from "./module.ts";

export interface CudaFeatures {
  /** Name of the device. */
  readonly device: string;
  /** Names of targets whose programs run on it, best first. */
  readonly targets: readonly string[];
  /** The device; whoever opens it closes it. */
  readonly open: () => Result<CudaDevice>;
  readonly store: CubinStore;
}

let probed: Result<CudaFeatures> | undefined;

export function probeCuda(): Result<CudaFeatures> {
  probed ??= probeDriver(CudaDriver.open(platform()));
  return probed;
}

export function probeDriver(driver: Result<CudaDriver>): Result<CudaFeatures> {
  if (!driver.ok) return driver;
  const opened = CudaDevice.open(driver.value, 0);
  if (!opened.ok) return opened;
  const { name, attributes } = opened.value;
  opened.value.close();
  const capability = `${attributes.major}.${attributes.minor}`;
  const names = targetsOf(name, capability);
  if (names.length === 0) {
    return fail(
      diagnostic("CUD001", `no target describes ${name}, compute capability ${capability}`, {
        help: "describe it in a target file (docs/adding-a-target.md)",
      }),
    );
  }
  const open = (): Result<CudaDevice> => CudaDevice.open(driver.value, 0);
  return ok({ device: name, targets: names, open, store: openKeptFiles("cubins") });
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
