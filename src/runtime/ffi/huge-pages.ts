/**
 * Huge pages for memory that an engine allocated, as Linux grants them on advice, through koffi. A table walk for each 4
 * KiB of weights holds up a core that streams them, how long depends on where the pages lie, and no prefetcher follows a
 * stream into the next small page. Undefined elsewhere, and where koffi or the function is missing: pages stay small.
 */
import { createRequire } from "node:module";
import { platform } from "node:os";

/**
 * Asks for huge pages where the bytes lie, before they are first written; false: the system refuses. What does not
 * fill a huge page keeps small ones.
 */
export type HugePages = (bytes: Uint8Array) => boolean;

/** What a whole entry of the second level of Linux's tables maps where small pages are 4 KiB, and the advice to use it. */
const hugePageBytes = 2 ** 21;
const adviseHuge = 14;

let opened: { readonly hugePages: HugePages | undefined } | undefined;

export function openHugePages(): HugePages | undefined {
  opened ??= { hugePages: platform() === "linux" ? hugePagesOfLinux() : undefined };
  return opened.hugePages;
}

function hugePagesOfLinux(): HugePages | undefined {
  try {
    const koffi = createRequire(import.meta.url)("koffi") as typeof import("koffi");
    const madvise = koffi.load("libc.so.6").func("int madvise(uintptr_t at, size_t n, int advice)");
    return (bytes) => {
      if (bytes.length < hugePageBytes) return false;
      return madvise(BigInt(koffi.address(bytes)), bytes.length, adviseHuge) === 0;
    };
  } catch {
    // No package, no library of this name, or no such function: all are errors of koffi's calls alone.
    return undefined;
  }
}
