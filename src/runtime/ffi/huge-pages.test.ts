import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { openHugePages } from "./huge-pages.ts";
import { addressOf } from "./library.ts";

const hugePages = existsSync("/sys/kernel/mm/transparent_hugepage") ? openHugePages() : undefined;
const pagesOf = (mebibytes: number): number => mebibytes * 16;

/** Flags of the mapping that an address lies in, as Linux tells them. */
function flagsAt(address: bigint): readonly string[] {
  let isHere = false;
  for (const line of readFileSync("/proc/self/smaps", "utf8").split("\n")) {
    const range = /^([0-9a-f]+)-([0-9a-f]+) /.exec(line);
    if (range) isHere = BigInt(`0x${range[1]}`) <= address && address < BigInt(`0x${range[2]}`);
    else if (isHere && line.startsWith("VmFlags:")) return line.split(/\s+/).slice(1);
  }
  return [];
}

describe.runIf(hugePages)("huge pages", () => {
  it.each([false, true])("are asked for where an engine's memory lies (shared: %s)", (shared) => {
    const pages = pagesOf(8);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared });
    const bytes = new Uint8Array(memory.buffer);
    expect(flagsAt(addressOf(bytes))).not.toContain("hg");
    expect(hugePages!(bytes)).toBe(true);
    expect(flagsAt(addressOf(bytes))).toContain("hg");
  });

  it("are not asked for where none would be filled", () => {
    const memory = new WebAssembly.Memory({ initial: pagesOf(1), maximum: pagesOf(1) });
    expect(hugePages!(new Uint8Array(memory.buffer))).toBe(false);
  });
});
