/**
 * The child process of the fuzzing campaign: takes seeds, answers findings, the processor time of each and
 * its largest memory.
 */
import type { Finding } from "../campaign.ts";
import { hostileTrial } from "./hostile-trial.ts";

export interface Answer {
  readonly seed: number;
  readonly finding: Finding;
  readonly largestBytes: number;
  /** Of this trial alone, on all threads. */
  readonly processorMs: number;
}

function attempt(seed: number): Finding {
  try {
    return hostileTrial(seed);
  } catch (error) {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { kind: "failed", reason: reason.split("\n").slice(0, 6).join(" | ") };
  }
}

process.on("message", (seed: number) => {
  const before = process.cpuUsage();
  const finding = attempt(seed);
  const { user, system } = process.cpuUsage(before);
  const largestBytes = process.resourceUsage().maxRSS * 1024;
  const processorMs = (user + system) / 1000;
  process.send!({ seed, finding, largestBytes, processorMs } satisfies Answer);
});
process.send!("ready");
