/**
 * Names for profilers: with WAVETILE_PERF_MAP set, each piece of machine code that is loaded adds its
 * functions to `/tmp/perf-PID.map`, where Linux `perf` looks for the symbols of code that no file holds.
 * A line is `START SIZE NAME`, both in hexadecimal. Code that was unloaded keeps its lines: the format
 * has no way to take them back, and a later line for the same address wins. A file that cannot be
 * written costs the names, nothing else.
 */
import type { FunctionReport } from "../../emit/x64/link.ts";
import { openAppendLog } from "../files/append-log.ts";

export type CodeFunction = Pick<FunctionReport, "name" | "start" | "end">;

export function perfMapPath(pid: number = process.pid): string {
  return `/tmp/perf-${pid}.map`;
}

/** @param address of the first byte of the code that `functions` lie in */
export function perfMapLines(address: bigint, functions: readonly CodeFunction[]): string[] {
  return functions.map(({ name, start, end }) => {
    const at = (address + BigInt(start)).toString(16);
    return `${at} ${(end - start).toString(16)} wavetile:${name.replace(/\s+/g, "_")}`;
  });
}

export function notePerfMap(address: bigint, functions: readonly CodeFunction[]): void {
  if (!process.env.WAVETILE_PERF_MAP) return;
  openAppendLog(perfMapPath()).append(perfMapLines(address, functions));
}
