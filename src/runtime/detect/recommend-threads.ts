/**
 * How many compute threads to start: one a core that this process may use. Two threads of one core
 * share its multiply-add units, so a second one adds waiting, not work; slow cores of a mixed CPU make
 * the fast ones wait at each barrier; a quota that is used up stops all threads until its period ends.
 */
import type { DetectedCpu, DetectedLimits, ThreadAdvice } from "./machine-report.ts";

export function recommendThreads(cpu: DetectedCpu, limits: DetectedLimits): ThreadAdvice {
  const bounds: { readonly threads: number; readonly reason: string }[] = [];
  const smt = cpu.threadsPerCore.value;
  const cores = cpu.cores.value;
  bounds.push({
    threads: cores,
    reason:
      smt > 1
        ? `${cores} cores; their ${smt} threads each share the vector units`
        : `${cores} cores of one thread each`,
  });
  if (cpu.performanceCores) {
    const fast = cpu.performanceCores.value;
    bounds.push({ threads: fast, reason: `${fast} fast cores; the slow ones would be waited for` });
  }
  if (limits.allowedCpus && limits.allowedCpus.value < cpu.logicalCpus.value) {
    const allowed = limits.allowedCpus.value;
    // Which of them share a core is not told everywhere: then as many do as can.
    const held = limits.allowedCores?.value ?? Math.max(1, Math.floor(allowed / smt));
    const kind = cpu.performanceCores ? "cores of one kind" : "cores";
    const reason = `this process may run on ${allowed} logical CPUs, which are ${held} ${kind}`;
    bounds.push({ threads: held, reason });
  }
  if (limits.cores) {
    const quota = Number(limits.cores.value.toFixed(2));
    const threads = Math.max(1, Math.floor(limits.cores.value));
    bounds.push({ threads, reason: `a quota of ${quota} cores (${limits.cores.source})` });
  }
  return bounds.reduce((a, b) => (b.threads < a.threads ? b : a));
}
