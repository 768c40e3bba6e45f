/**
 * Processors, memory and limits of this machine, from the operating system's texts and from CPUID. Linux
 * and macOS list their processors; elsewhere CPUID alone says what they are. GPUs are detect-machine.ts's.
 */
import type { Sourced } from "../../target/figure.ts";
import { type CoreTopology, countCores, readTopology } from "./core-topology.ts";
import type { CpuidAnswer } from "./cpuid-leaves.ts";
import { type CpuidFacts, decodeCpuid } from "./decode-cpuid.ts";
import {
  type DetectedCpu,
  type DetectedLimits,
  detected,
  type MachineReport,
  type ThreadAdvice,
} from "./machine-report.ts";
import { parseCpuinfo } from "./parse-cpuinfo.ts";
import { parseSysctl } from "./parse-sysctl.ts";
import {
  type ReadText,
  readCaches,
  readLimits,
  readMemory,
  readNumaNodes,
} from "./parse-system.ts";
import { recommendThreads } from "./recommend-threads.ts";

/** What the host's part of a detection asks this machine. */
export interface HostProbe {
  /** `linux`, `darwin`, `win32`, as Node names them. */
  readonly platform: string;
  readonly readText: ReadText;
  /** What a command prints; undefined when it is not there or fails. */
  readonly run: (command: string, args: readonly string[]) => string | undefined;
  /** By the operating system's own count, where no text tells more. */
  readonly logicalCpus: number;
  readonly memoryBytes: number;
  readonly queryCpuid: () => CpuidAnswer;
}

export interface Host {
  readonly cpu: DetectedCpu;
  readonly limits: DetectedLimits;
  readonly memory: MachineReport["memory"];
  readonly threads: ThreadAdvice;
  readonly notes: readonly string[];
}

interface Listed {
  readonly topology?: CoreTopology;
  readonly cpu: DetectedCpu;
  readonly memory: MachineReport["memory"];
}

/** Undefined when neither the system nor the processor tells anything. */
export function readHost(probe: HostProbe): Host | undefined {
  const listed = readListed(probe);
  const notes: string[] = [];
  const facts = askProcessor(probe, listed?.cpu, notes);
  const host = listed && facts ? withCpuid(listed, facts, notes) : (listed ?? hostOf(probe, facts));
  if (!host) return undefined;
  const { cpu, memory } = host;
  const limits = readLimits(probe.readText, listed?.topology);
  return { cpu, memory, limits, threads: recommendThreads(cpu, limits), notes };
}

/** The advice on threads alone: the processor is asked only where the system lists nothing. */
export function readThreads(probe: HostProbe): ThreadAdvice {
  const host: Listed | undefined =
    readListed(probe) ?? hostOf(probe, askProcessor(probe, undefined, []));
  if (host) return recommendThreads(host.cpu, readLimits(probe.readText, host.topology));
  const threads = Math.max(1, probe.logicalCpus);
  return { threads, reason: `${threads} logical CPUs; nothing more is known of them` };
}

function readListed(probe: HostProbe): Listed | undefined {
  return probe.platform === "darwin" ? readMac(probe) : readLinux(probe);
}

function readLinux({ readText }: HostProbe): Listed | undefined {
  const text = readText("/proc/cpuinfo") ?? "";
  const cpu = parseCpuinfo(text);
  if (!cpu) return undefined;
  const topology = readTopology(text, readText);
  const fast = fastCores(topology);
  const numaNodes = readNumaNodes(readText);
  return {
    topology,
    cpu: {
      ...cpu,
      ...(fast && { performanceCores: fast }),
      caches: readCaches(readText),
      ...(numaNodes && { numaNodes }),
    },
    memory: readMemory(readText),
  };
}

function fastCores(topology: CoreTopology): Sourced | undefined {
  const { fast } = topology;
  const count = fast && countCores(topology, fast.cpus);
  return count ? detected(count, fast.source) : undefined;
}

function readMac({ run }: HostProbe): Listed | undefined {
  const parsed = parseSysctl(run("sysctl", ["hw", "machdep.cpu"]) ?? "");
  if (!parsed) return undefined;
  const bytes = parsed.memoryBytes;
  return {
    cpu: parsed.cpu,
    memory: bytes === undefined ? {} : { totalBytes: detected(bytes, "sysctl hw.memsize") },
  };
}

function askProcessor(
  { queryCpuid }: HostProbe,
  listed: DetectedCpu | undefined,
  notes: string[],
): CpuidFacts | undefined {
  if (listed && listed.instructionSet !== "x86-64") return undefined;
  const answer = queryCpuid();
  if (answer.kind === "leaves") return decodeCpuid(answer);
  notes.push(`cpuid was not asked: ${answer.why}`);
  return undefined;
}

/** The system's picture with CPUID beside it: extensions that both list, caches of whoever knows them. */
function withCpuid({ cpu, memory }: Listed, facts: CpuidFacts, notes: string[]): Listed {
  const { model, family, modelNumber, stepping, virtual } = facts;
  const { agreed, onlyCpuid, onlySystem } = compareExtensions(facts, cpu.extensions);
  if (onlyCpuid.length > 0) {
    notes.push(`not counted: cpuid alone lists ${onlyCpuid.join(", ")}`);
  }
  if (onlySystem.length > 0) {
    notes.push(`not counted: the system alone lists ${onlySystem.join(", ")}`);
  }
  const ids = { model, family, modelNumber, stepping, virtual };
  return {
    cpu: {
      ...cpu,
      extensions: agreed,
      caches: cpu.caches.length > 0 ? cpu.caches : facts.caches,
      cpuid: { ...ids, agreed: agreed.length, onlyCpuid, onlySystem },
    },
    memory,
  };
}

function compareExtensions(facts: CpuidFacts, listed: readonly string[]) {
  return {
    agreed: listed.filter((e) => facts.extensions.includes(e)),
    onlyCpuid: facts.extensions.filter((e) => !listed.includes(e)),
    onlySystem: listed.filter((e) => !facts.extensions.includes(e)),
  };
}

/** A machine whose system lists nothing (Windows): CPUID, and Node's counts. */
function hostOf(probe: HostProbe, facts: CpuidFacts | undefined): Listed | undefined {
  if (!facts) return undefined;
  const { logicalCpus, memoryBytes } = probe;
  const smt = Math.min(facts.threadsPerCore ?? 1, logicalCpus);
  const cores = Math.max(1, Math.floor(logicalCpus / smt));
  return {
    cpu: {
      model: facts.model,
      vendor: facts.vendor,
      instructionSet: "x86-64",
      extensions: facts.extensions,
      logicalCpus: detected(logicalCpus, "operating system"),
      cores: detected(cores, "logical CPUs over cpuid's threads a core"),
      sockets: detected(1, "assumed: neither the system nor cpuid tells"),
      threadsPerCore: detected(smt, "cpuid"),
      caches: facts.caches,
    },
    memory: { totalBytes: detected(memoryBytes, "operating system") },
  };
}
