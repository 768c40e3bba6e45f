/**
 * Which processor a thread runs on and which ones it may run on, as Linux tells and is told, through koffi.
 * Undefined elsewhere, and where koffi or the functions are missing: threads then run where the system puts them.
 */
import { createRequire } from "node:module";
import { platform } from "node:os";

/** Processors by their numbers: bit `n` of byte `floor(n / 8)`. */
export type ProcessorSet = Uint8Array;

export interface Processors {
  /** The processor that the calling thread runs on. */
  current(): number;
  /** Those that the calling thread may run on; undefined: the system does not tell. */
  allowed(): ProcessorSet | undefined;
  /** Lets a thread, by the system's number of it, run on these alone; false: the system refuses. */
  restrict(thread: number, set: ProcessorSet): boolean;
}

/** Bytes of the set that the C library has. */
const setBytes = 128;

let opened: { readonly processors: Processors | undefined } | undefined;

export function openProcessors(): Processors | undefined {
  opened ??= { processors: platform() === "linux" ? processorsOfLinux() : undefined };
  return opened.processors;
}

function processorsOfLinux(): Processors | undefined {
  try {
    const koffi = createRequire(import.meta.url)("koffi") as typeof import("koffi");
    const c = koffi.load("libc.so.6");
    const getCpu = c.func("int sched_getcpu()");
    const getAffinity = c.func("int sched_getaffinity(int thread, size_t bytes, void *set)");
    const setAffinity = c.func("int sched_setaffinity(int thread, size_t bytes, void *set)");
    return {
      current: () => getCpu() as number,
      allowed() {
        const set = new Uint8Array(setBytes);
        return getAffinity(0, setBytes, set) === 0 ? set : undefined;
      },
      restrict: (thread, set) => setAffinity(thread, set.length, set) === 0,
    };
  } catch {
    // No package, no library of this name, or none of the functions: all are errors of koffi's calls alone.
    return undefined;
  }
}
