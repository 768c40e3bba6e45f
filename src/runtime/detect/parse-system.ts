/**
 * Linux beside cpuinfo: caches and NUMA nodes from /sys, memory from /proc/meminfo, and the limits
 * that control groups (version 1 and 2) and the CPU affinity put on this process. All through a
 * `ReadText`, so that captured files can stand in for the machine.
 * Sources: kernel documentation, admin-guide/cgroup-v2, cgroup-v1/memory, ABI/sysfs-devices-system-cpu.
 */

import type { Sourced } from "../../target/figure.ts";
import { allowedCores, type CoreTopology } from "./core-topology.ts";
import { type DetectedCache, type DetectedLimits, detected } from "./machine-report.ts";
import {
  countCpuList,
  leadingInteger,
  parseFields,
  parseSize,
  readCpuList,
} from "./parse-fields.ts";

/** The text of a file, undefined when it is not there or may not be read. */
export type ReadText = (path: string) => string | undefined;

const mostCaches = 16;

export function readCaches(read: ReadText): readonly DetectedCache[] {
  const caches: DetectedCache[] = [];
  for (let i = 0; i < mostCaches; i++) {
    const folder = `/sys/devices/system/cpu/cpu0/cache/index${i}`;
    const level = leadingInteger(read(`${folder}/level`));
    const type = read(`${folder}/type`)?.trim();
    const bytes = parseSize(read(`${folder}/size`));
    if (level === undefined) break;
    if (bytes === undefined || (type !== "Data" && type !== "Unified")) continue;
    const sharedBy = countCpuList(read(`${folder}/shared_cpu_list`) ?? "");
    caches.push({
      level,
      kind: type === "Data" ? "data" : "unified",
      bytes: detected(bytes, folder),
      ...(sharedBy !== undefined && { sharedBy }),
    });
  }
  return caches.sort((a, b) => a.level - b.level);
}

export function readNumaNodes(read: ReadText): Sourced | undefined {
  const path = "/sys/devices/system/node/online";
  const count = countCpuList(read(path) ?? "");
  return count === undefined ? undefined : detected(count, path);
}

export function readMemory(read: ReadText): {
  readonly totalBytes?: Sourced;
  readonly availableBytes?: Sourced;
} {
  const source = "/proc/meminfo";
  const fields = parseFields(read(source) ?? "");
  const total = parseSize(fields.get("MemTotal"));
  const available = parseSize(fields.get("MemAvailable"));
  return {
    ...(total !== undefined && { totalBytes: detected(total, source) }),
    ...(available !== undefined && { availableBytes: detected(available, source) }),
  };
}

export function readLimits(read: ReadText, topology?: CoreTopology): DetectedLimits {
  const groups = read("/proc/self/cgroup") ?? "";
  const cores = least([...coresOfV2(read, groups), ...coresOfV1(read, groups)]);
  const memory = least([...memoryOfV2(read, groups), ...memoryOfV1(read, groups)]);
  const allowed = readCpuList(
    parseFields(read("/proc/self/status") ?? "").get("Cpus_allowed_list") ?? "",
  );
  return {
    ...(cores && { cores }),
    ...(allowed && { allowedCpus: detected(allowed.length, "/proc/self/status") }),
    ...(allowed && topology && allowedCores(topology, allowed)),
    ...(memory && { memoryBytes: memory }),
  };
}

function least(limits: readonly Sourced[]): Sourced | undefined {
  return limits.reduce<Sourced | undefined>((a, b) => (!a || b.value < a.value ? b : a), undefined);
}

/** The group's folder and all above it: a limit on any of them holds. */
function foldersUp(root: string, path: string): readonly string[] {
  const parts = path.split("/").filter((p) => p !== "" && p !== "..");
  return parts.map((_, i) => `${root}/${parts.slice(0, parts.length - i).join("/")}`).concat(root);
}

/** The path of this process's group: version 2 has an empty controller list. */
function groupPath(groups: string, controller: string): string | undefined {
  for (const line of groups.split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (path !== undefined && controllers!.split(",").includes(controller)) return path;
  }
  return undefined;
}

function coresOfV2(read: ReadText, groups: string): readonly Sourced[] {
  const path = groupPath(groups, "");
  if (path === undefined) return [];
  return foldersUp("/sys/fs/cgroup", path).flatMap((folder) => {
    const file = `${folder}/cpu.max`;
    const [, quota, period] = /^(\d+)\s+(\d+)/.exec(read(file) ?? "") ?? [];
    const cores = Number(quota) / Number(period);
    return Number.isFinite(cores) && cores > 0 ? [detected(cores, file)] : [];
  });
}

function coresOfV1(read: ReadText, groups: string): readonly Sourced[] {
  const path = groupPath(groups, "cpu");
  if (path === undefined) return [];
  return foldersUp("/sys/fs/cgroup/cpu", path).flatMap((folder) => {
    const file = `${folder}/cpu.cfs_quota_us`;
    const quota = leadingInteger(read(file));
    const period = leadingInteger(read(`${folder}/cpu.cfs_period_us`));
    return quota && period ? [detected(quota / period, file)] : [];
  });
}

function memoryOfV2(read: ReadText, groups: string): readonly Sourced[] {
  const path = groupPath(groups, "");
  if (path === undefined) return [];
  return limitsIn(read, foldersUp("/sys/fs/cgroup", path), "memory.max");
}

function memoryOfV1(read: ReadText, groups: string): readonly Sourced[] {
  const path = groupPath(groups, "memory");
  if (path === undefined) return [];
  return limitsIn(read, foldersUp("/sys/fs/cgroup/memory", path), "memory.limit_in_bytes");
}

/** Version 1 writes "no limit" as the largest multiple of a page: 2^63 - 4096. */
const unlimited = 2 ** 62;

function limitsIn(read: ReadText, folders: readonly string[], name: string): readonly Sourced[] {
  return folders.flatMap((folder) => {
    const file = `${folder}/${name}`;
    const match = /^(\d+)/.exec(read(file) ?? "");
    const bytes = match ? Number(match[1]) : unlimited;
    return bytes < unlimited ? [detected(bytes, file)] : [];
  });
}
