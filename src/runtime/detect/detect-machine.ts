/**
 * The whole picture of this machine. Everything it knows comes through a `Probe`, so the same code runs
 * on captured files and outputs of other machines (capture.ts).
 */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { type CudaAnswer, gpusOfDriver } from "./cuda-driver.ts";
import type { DetectedGpu, MachineReport } from "./machine-report.ts";
import { matchTarget } from "./match-target.ts";
import { parseNvidiaSmiCsv, parseNvidiaSmiTable } from "./parse-nvidia-smi.ts";
import { parseRocminfo, parseSystemProfiler, parseVulkaninfo } from "./parse-other-gpus.ts";
import { type HostProbe, readHost } from "./read-host.ts";

export interface Probe extends HostProbe {
  readonly queryCuda: () => CudaAnswer;
}

export function detectMachine(probe: Probe): Result<MachineReport> {
  const host = readHost(probe);
  if (!host) return fail(noProcessor(probe.platform));
  const notes = [...host.notes];
  const gpus = readGpus(probe, notes).map(matchTarget);
  return ok({ ...host, gpus, notes });
}

function noProcessor(platform: string): Diagnostic {
  return diagnostic("RUN060", `the processors of this machine cannot be read on ${platform}`, {
    help: "Linux needs /proc/cpuinfo, macOS the command sysctl, other systems koffi for cpuid; describe the machine in a target file instead",
  });
}

function readGpus(probe: Probe, notes: string[]): readonly DetectedGpu[] {
  const found: DetectedGpu[] = [...readNvidia(probe, notes)];
  const rocm = probe.run("rocminfo", []);
  if (rocm !== undefined) found.push(...parseRocminfo(rocm));
  if (probe.platform === "darwin") {
    const profile = probe.run("system_profiler", ["SPDisplaysDataType"]);
    if (profile !== undefined) found.push(...parseSystemProfiler(profile));
  }
  const vulkan = probe.run("vulkaninfo", ["--summary"]);
  const vendors = new Set(found.map((g) => g.vendor));
  if (vulkan !== undefined) {
    // Vendors' own tools know more: Vulkan adds only what they did not show.
    found.push(...parseVulkaninfo(vulkan).filter((g) => !vendors.has(g.vendor)));
  }
  if (found.length === 0) notes.push("no GPU was found by CUDA, ROCm, Metal or Vulkan");
  return found;
}

const queried = "index,name,compute_cap,memory.total,memory.free,driver_version,clocks.max.sm";

function readNvidia(probe: Probe, notes: string[]): readonly DetectedGpu[] {
  const driver = probe.queryCuda();
  if (driver.kind === "devices") return gpusOfDriver(driver);
  const asked = probe.run("nvidia-smi", [`--query-gpu=${queried}`, "--format=csv"]);
  const gpus =
    parseNvidiaSmiCsv(asked ?? "") ?? parseNvidiaSmiTable(probe.run("nvidia-smi", []) ?? "");
  const fallback = gpus ? "read from nvidia-smi instead" : "nvidia-smi is not there either";
  notes.push(`${driver.why}; ${fallback}`);
  return gpus ?? [];
}
