/**
 * Whether the installed driver takes the PTX that is written for a GPU: a driver takes texts of its own version and
 * of earlier ones, so its version (`cuDriverGetVersion`) is held against those that texts state.
 */
import { driverFor, type PtxDriver, ptxVersions } from "../../emit/ptx/ptx-version.ts";
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { GpuArchitecture } from "../../target/machine.ts";

/** Drivers for programs of an architecture: for any, and for those with its latest instructions. */
export interface DriversNeeded {
  readonly least: PtxDriver;
  readonly most: PtxDriver;
  /** What those instructions are for. */
  readonly later: readonly string[];
}

export function driversNeededBy(architecture: GpuArchitecture): DriversNeeded {
  const { least, most, later } = ptxVersions(architecture);
  const [first, last] = [driverFor(least), driverFor(most)];
  invariant(first && last, () => `no driver is known for PTX ${least} or ${most}`);
  return { least: first, most: last, later };
}

/** What is wrong with a driver (CUD001): an error where it takes no program, a warning where it takes not all. */
export function judgeDriver(
  version: number,
  device: string,
  { least, most, later }: DriversNeeded,
): Diagnostic | undefined {
  if (version >= most.cuda) return undefined;
  const isTooOld = version < least.cuda;
  const { cuda, branch } = isTooOld ? least : most;
  const what = isTooOld ? "kernels" : later.join(" and ");
  return diagnostic(
    "CUD001",
    `the driver has CUDA ${cudaName(version)}, ${what} for ${device} need CUDA ${cudaName(cuda)}`,
    {
      severity: isTooOld ? "error" : "warning",
      help: `update NVIDIA's driver to ${branch} or later (nvidia-smi shows the one that is installed)`,
    },
  );
}

/** As people write it: 12040 is 12.4. */
export function cudaName(version: number): string {
  return `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
}
