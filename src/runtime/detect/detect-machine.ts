/**
 * The whole picture of this machine. Everything it knows comes through a `Probe`, so the same code runs
 * on captured files and outputs of other machines.
 */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { CudaAnswer } from "./cuda-driver.ts";
import {
  type DetectedCpu,
  type DetectedGpu,
  detected,
  type MachineReport,
} from "./machine-report.ts";
import { matchTarget } from "./match-target.ts";
import { parseCpuinfo } from "./parse-cpuinfo.ts";
import { parseNvidiaSmiCsv, parseNvidiaSmiTable } from "./parse-nvidia-smi.ts";
import { parseRocminfo, parseSystemProfiler, parseVulkaninfo } from "./parse-other-gpus.ts";
import { parseSysctl } from "./parse-sysctl.ts";
import {
  type ReadText,
  readCaches,
  readLimits,
  readMemory,
  readNumaNodes,
} from "./parse-system.ts";
import { recommendThreads } from "./recommend-threads.ts";

export interface Probe {
  /** `linux`, `darwin`, `win32`, as Node names them. */
  readonly platform: string;
  readonly readText: ReadText;
  /** What a command prints; undefined when it is not there or fails. */
  readonly run: (command: string, args: readonly string[]) => string | undefined;
  readonly queryCuda: () => Promise<CudaAnswer>;
}

export async function detectMachine(probe: Probe): Promise<Result<MachineReport>> {
  const host = probe.platform === "darwin" ? readMac(probe) : readLinux(probe);
  if (!host) return fail(noProcessor(probe.platform));
  const notes: string[] = [];
  const gpus = await readGpus(probe, notes);
  const limits = readLimits(probe.readText);
  return ok({
    cpu: host.cpu,
    limits,
    memory: host.memory,
    threads: recommendThreads(host.cpu, limits),
    gpus: gpus.map(matchTarget),
    notes,
  });
}

function noProcessor(platform: string): Diagnostic {
  return diagnostic("RUN060", `the processors of this machine cannot be read on ${platform}`, {
    help: "Linux needs /proc/cpuinfo, macOS the command sysctl; describe the machine in a target file instead",
  });
}

interface Host {
  readonly cpu: DetectedCpu;
  readonly memory: MachineReport["memory"];
}

function readLinux({ readText }: Probe): Host | undefined {
  const cpu = parseCpuinfo(readText("/proc/cpuinfo") ?? "");
  if (!cpu) return undefined;
  const numaNodes = readNumaNodes(readText);
  return {
    cpu: { ...cpu, caches: readCaches(readText), ...(numaNodes && { numaNodes }) },
    memory: readMemory(readText),
  };
}

function readMac({ run }: Probe): Host | undefined {
  const parsed = parseSysctl(run("sysctl", ["-a"]) ?? "");
  if (!parsed) return undefined;
  const bytes = parsed.memoryBytes;
  return {
    cpu: parsed.cpu,
    memory: bytes === undefined ? {} : { totalBytes: detected(bytes, "sysctl hw.memsize") },
  };
}

async function readGpus(probe: Probe, notes: string[]): Promise<readonly DetectedGpu[]> {
  const found: DetectedGpu[] = [...(await readNvidia(probe, notes))];
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

async function readNvidia(probe: Probe, notes: string[]): Promise<readonly DetectedGpu[]> {
  const driver = await probe.queryCuda();
  if (driver.kind === "gpus") return driver.gpus;
  const asked = probe.run("nvidia-smi", [`--query-gpu=${queried}`, "--format=csv"]);
  const gpus =
    parseNvidiaSmiCsv(asked ?? "") ?? parseNvidiaSmiTable(probe.run("nvidia-smi", []) ?? "");
  const fallback = gpus ? "read from nvidia-smi instead" : "nvidia-smi is not there either";
  notes.push(`${driver.why}; ${fallback}`);
  return gpus ?? [];
}
