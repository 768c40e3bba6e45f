/**
 * Legality against brute force: trial n draws a schedule for kernel n modulo their number
 * (campaign/schedule-legality/). Every decision of affine/ is compared with looking at all pairs of
 * instances, and what is accepted has to compute the kernel's values in the interpreter of schedule
 * trees. Run in full it gives every kernel 300 schedules.
 */
import type { Campaign, Finding } from "../campaign.ts";
import { readKernel } from "../schedule-legality/kernel-text.ts";
import { kernelTexts } from "../schedule-legality/kernels.ts";
import { type Kernel, prepareKernel, tryKernel } from "../schedule-legality/trial.ts";
import { UnknownTally } from "../unknown-answers.ts";

const names = Object.keys(kernelTexts);
const schedulesEach = 300;

export const scheduleLegality: Campaign = {
  name: "schedule-legality",
  summary: "random schedules of small kernels: legality against all pairs of instances",
  targets: ["interpreter"],
  defaultCount: schedulesEach * names.length,
  open: async () => {
    const kernels = new Map<string, Kernel>();
    const tally = new UnknownTally();
    return (seed): Finding => {
      const name = names[seed % names.length]!;
      const kernel = kernels.get(name) ?? prepareKernel(readKernel(kernelTexts[name]!));
      kernels.set(name, kernel);
      const { trouble, directives, isUnknown } = tryKernel(kernel, seed);
      if (trouble === undefined) return tally.count({ kind: "passed" });
      // A tree of many nested tiles may take more work than loops are allowed; that has to stay rare.
      if (isUnknown) return tally.count({ kind: "unknown", reason: trouble });
      return tally.count({ kind: "failed", reason: `${name}: ${trouble}; ${spell(directives)}` });
    };
  },
};

function spell(directives: readonly unknown[]): string {
  return JSON.stringify(directives, (_, value: unknown) =>
    value instanceof Map ? Object.fromEntries(value) : value,
  );
}
