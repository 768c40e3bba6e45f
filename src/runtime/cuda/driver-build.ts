/**
 * Which build of the driver is loaded. `cuDriverGetVersion` names the interface alone (13000 for every driver of
 * CUDA 13.0), while its assembler may change with each release: the library's file tells them apart, by its name,
 * which has the release in it on Linux, its size and its date. Empty where the file cannot be seen.
 */
import { readFileSync, statSync } from "node:fs";
import { basename, win32 } from "node:path";

/** The library's file among those mapped into this process (proc(5)), or where Windows has it. */
export function driverFile(platform: string, maps = readMaps): string | undefined {
  if (platform === "win32") {
    return win32.join(process.env.SystemRoot ?? "C:\\Windows", "System32", "nvcuda.dll");
  }
  return /\s(\/\S*\/libcuda\.so\.\S+)$/m.exec(maps())?.[1];
}

export function driverBuild(platform: string, file = driverFile(platform)): string {
  if (file === undefined) return "";
  try {
    const { size, mtimeMs } = statSync(file);
    return `${basename(file)} ${size} ${Math.floor(mtimeMs)}`;
  } catch {
    return "";
  }
}

function readMaps(): string {
  try {
    return readFileSync("/proc/self/maps", "utf8");
  } catch {
    return "";
  }
}
