/**
 * What a process holds of the machine: resident memory behind a collection of garbage, threads, executable
 * mappings without a file. In: two of them, and what may be left. Out: what was not given back.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export interface Footprint {
  readonly residentBytes: number;
  readonly threads: number;
  /** Executable mappings without a file: code of programs, and of the engine. */
  readonly codeMappings: number;
}

/** Undefined where the system does not say (not Linux). */
export function footprint(): Footprint | undefined {
  collectGarbage();
  try {
    const maps = readFileSync("/proc/self/maps", "utf8").split("\n");
    return {
      residentBytes: process.memoryUsage.rss(),
      threads: readdirSync("/proc/self/task").length,
      codeMappings: maps.filter((line) => /^\S+ r-xp \S+ 00:00 0\s*$/.test(line)).length,
    };
  } catch {
    return undefined;
  }
}

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
}

/** What a process kept beyond the limits; undefined: nothing. */
export function leftBehind(
  before: Footprint,
  after: Footprint,
  limits: Omit<Footprint, "threads">,
): string | undefined {
  const bytes = after.residentBytes - before.residentBytes;
  if (bytes > limits.residentBytes) {
    return `memory grew by ${bytes} bytes, ${limits.residentBytes} are allowed`;
  }
  const threads = after.threads - before.threads;
  if (threads > 0) return `${threads} threads are left`;
  const mappings = after.codeMappings - before.codeMappings;
  return mappings > limits.codeMappings
    ? `${mappings} executable mappings are left, ${limits.codeMappings} are allowed`
    : undefined;
}
