/** The target whose data sheet describes a detected GPU: same driver name, and memory within 10 %. */
import { architectures } from "../../target/architectures/index.ts";
import { targets } from "../../target/index.ts";
import type { DetectedGpu } from "./machine-report.ts";

export function matchTarget(gpu: DetectedGpu): DetectedGpu {
  const architecture =
    gpu.architecture ??
    [...architectures.values()].find(
      (a) => a.computeCapability !== undefined && a.computeCapability === gpu.computeCapability,
    )?.name;
  const named = { ...gpu, ...(architecture && { architecture }) };
  for (const { name, machine } of targets.values()) {
    if (machine?.kind !== "gpu" || !machine.driverNames?.includes(gpu.name)) continue;
    const seen = gpu.memoryBytes?.value;
    const listed = machine.memoryBytes.value;
    if (!machine.unifiedMemory && seen && Math.abs(seen / listed - 1) > 0.1) continue;
    const capability = gpu.computeCapability ?? machine.architecture.computeCapability;
    return {
      ...named,
      target: name,
      architecture: machine.architecture.name,
      unifiedMemory: machine.unifiedMemory,
      ...(capability && { computeCapability: capability }),
    };
  }
  return named;
}
