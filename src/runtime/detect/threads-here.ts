/** How many threads to start on this machine, and how many may run at once; asked once a process. */
import { availableParallelism } from "node:os";
import type { ThreadAdvice } from "./machine-report.ts";
import { nodeProbe } from "./node-probe.ts";
import { readLimits } from "./parse-system.ts";
import { readThreads } from "./read-host.ts";

let advice: ThreadAdvice | undefined;

/** What `wavetile detect` advises, for whoever was not told a number. */
export function threadsHere(): ThreadAdvice {
  advice ??= readThreads(nodeProbe);
  return advice;
}

let usable: number | undefined;

/** Logical CPUs that run at once: by the scheduler's affinity and the quota of the control group. */
export function usableCpus(): number {
  usable ??= Math.max(1, Math.min(availableParallelism(), quotaOfCores()));
  return usable;
}

function quotaOfCores(): number {
  return Math.floor(readLimits(nodeProbe.readText).cores?.value ?? Infinity);
}
