/**
 * Kernels for one random problem on every machine with a data sheet: the launch within the machine's
 * limits, matrix instructions legal by the tables that the assembler judges, the counts consistent, and
 * no prediction below the roofline.
 */
import { limitFaults } from "../../src/plan/kernels/configuration.ts";
import { configureKernel, type KernelChoice } from "../../src/plan/kernels/configure.ts";
import {
  isPass,
  type KernelProblem,
  kernelClasses,
  problemTypes,
  workOf,
} from "../../src/plan/kernels/problem.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { type Campaign, passed } from "../campaign.ts";

const machines = [...targets.values()].filter((t) => t.machine !== undefined);

export const kernelLimits: Campaign = {
  name: "kernel-limits",
  summary: "a kernel for each random problem on every machine, within its limits",
  targets: ["any"],
  defaultCount: 10_000,
  open: async () => (seed) => {
    const problem = drawProblem(new Rng(seed));
    for (const target of machines) {
      const choice = configureKernel(problem, target);
      const reason = choice.ok ? wrong(choice.value, target) : choice.diagnostics[0]!.message;
      if (reason !== undefined) {
        return { kind: "failed", reason: `${target.name} ${JSON.stringify(problem)}: ${reason}` };
      }
    }
    return passed;
  },
};

/** Extents over their whole range, small ones as often as large ones. */
function drawProblem(rng: Rng): KernelProblem {
  const size = (most: number): number => Math.round(2 ** (rng.uniform() * Math.log2(most)));
  const kind = rng.pick(kernelClasses);
  const attention = kind.startsWith("attention");
  const thin = kind === "gemv" || kind === "attention-decode";
  return {
    kind,
    type: rng.pick(problemTypes),
    batch: size(512),
    rows: size(thin ? 8 : 1_000_000),
    columns: size(1_000_000),
    depth: size(attention ? 2048 : 1_000_000),
    ...(kind === "quantised-gemm" && { weightBits: rng.pick([1.58, 4.25, 4.5, 5.5, 6.6, 8.5]) }),
    ...(attention && { keys: size(1_000_000) }),
  };
}

function wrong({ problem, chosen, counts, rejected }: KernelChoice, target: Target) {
  for (const config of [chosen, ...rejected]) {
    const faults = limitFaults(config, target);
    if (faults.length > 0) return `${config.implementation}: ${faults.join("; ")}`;
  }
  if (rejected.some((r) => r.estimateNs < chosen.estimateNs)) return "a rejected one is faster";
  if (counts.tileElements < counts.outputElements) return "elements that no tile computes";
  const roofline = rooflineNs(problem, target);
  return chosen.estimateNs < roofline ? `${chosen.estimateNs} ns under ${roofline} ns` : undefined;
}

/** Bytes over the data sheet's bandwidth, operations over its fastest rate for the type. */
function rooflineNs(problem: KernelProblem, { machine, ...target }: Target): number {
  const { bytes, flops } = workOf(problem);
  if (machine?.kind === "gpu") {
    const vector = machine.vectorTeraops.f32.value;
    const fastest = Math.max(vector, machine.matrixTeraops[problem.type]?.value ?? 0);
    return Math.max(bytes / machine.memoryBytesPerNs.value, flops / (1000 * fastest));
  }
  const cores = machine?.cores?.value ?? 1;
  const unit = machine?.matrixExtensions.find((e) => e.operands === problem.type);
  const narrow = unit ? (unit.operationsPerCycle.value * machine!.clockMhz.value) / 1000 : 0;
  const rate = isPass(problem) ? 0 : narrow;
  const fastest = Math.max(target.f32FlopsPerNsPerCore.value, rate) * cores;
  return Math.max(bytes / (machine?.memoryBytesPerNs?.value ?? Infinity), flops / fastest);
}
