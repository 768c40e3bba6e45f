/**
 * Linux: which logical CPUs are threads of one core, and which cores are the fast ones of a mixed processor.
 * In: /proc/cpuinfo and files of /sys. Out: cores by CPU, and the fast CPUs where there are two kinds.
 * Sources: tools/perf/Documentation/intel-hybrid.txt (cpu_core, cpu_atom); ABI/testing/sysfs-devices-system-cpu
 * (cpu_capacity, which Arm kernels write: 1024 for the fastest).
 */
import { type DetectedLimits, detected } from "./machine-report.ts";
import { coresOfCpus } from "./parse-cpuinfo.ts";
import { leadingInteger, readCpuList } from "./parse-fields.ts";
import type { ReadText } from "./parse-system.ts";

export interface CoreTopology {
  /** The core of each logical CPU that is listed. */
  readonly coreOf: ReadonlyMap<number, string>;
  /** CPUs of the fast kind, and what says so; absent: all are alike. */
  readonly fast?: { readonly cpus: ReadonlySet<number>; readonly source: string };
}

/** Cores of one kind differ by less: their clocks are binned. */
const alike = 0.9;

export function readTopology(cpuinfo: string, read: ReadText): CoreTopology {
  const coreOf = coresOfCpus(cpuinfo);
  const fast = fastOfIntel(read) ?? fastByCapacity([...coreOf.keys()], read);
  return { coreOf, ...(fast && { fast }) };
}

function fastOfIntel(read: ReadText): CoreTopology["fast"] {
  const source = "/sys/devices/cpu_core/cpus";
  const slow = readCpuList(read("/sys/devices/cpu_atom/cpus") ?? "");
  const cpus = slow && readCpuList(read(source) ?? "");
  return cpus && { cpus: new Set(cpus), source };
}

function fastByCapacity(cpus: readonly number[], read: ReadText): CoreTopology["fast"] {
  const source = (cpu: number | string) => `/sys/devices/system/cpu/cpu${cpu}/cpu_capacity`;
  const capacities: number[] = [];
  for (const cpu of cpus) {
    const capacity = leadingInteger(read(source(cpu)));
    if (capacity === undefined) return undefined;
    capacities.push(capacity);
  }
  const most = Math.max(...capacities, 1);
  const fast = cpus.filter((_, i) => capacities[i]! >= alike * most);
  if (fast.length === cpus.length) return undefined;
  return { cpus: new Set(fast), source: source("N") };
}

/** Distinct cores of some CPUs; undefined where one of them is not listed. */
export function countCores({ coreOf }: CoreTopology, cpus: Iterable<number>): number | undefined {
  const cores = new Set<string>();
  for (const cpu of cpus) {
    const core = coreOf.get(cpu);
    if (core === undefined) return undefined;
    cores.add(core);
  }
  return cores.size;
}

/** Cores that this process may run on: the fast ones where it may run on any of those. */
export function allowedCores(
  topology: CoreTopology,
  allowed: readonly number[],
): Pick<DetectedLimits, "allowedCores"> {
  const fast = allowed.filter((cpu) => topology.fast?.cpus.has(cpu));
  const count = countCores(topology, fast.length > 0 ? fast : allowed);
  if (count === undefined) return {};
  return { allowedCores: detected(count, "/proc/self/status and /proc/cpuinfo") };
}
