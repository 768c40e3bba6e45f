import { describe, expect, it } from "vitest";
import { codeOf, limited, textsOf } from "./machine-code.ts";

/** A file of two sections of code and the names of all, as far as it is read. */
function elf(codes: Readonly<Record<string, Uint8Array>>): Uint8Array {
  const names = Object.keys(codes).map((name) => `.text.${name}`);
  const table = new TextEncoder().encode(`\0${[...names, ".shstrtab"].join("\0")}\0`);
  const parts = [...Object.values(codes), table];
  const header = 0x40;
  const starts = parts.map((_, i) => header + parts.slice(0, i).reduce((n, p) => n + p.length, 0));
  const headers = header + parts.reduce((n, p) => n + p.length, 0);
  const bytes = new Uint8Array(headers + (parts.length + 1) * 0x40);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0x28, BigInt(headers), true);
  for (const [i, n] of [0x40, parts.length + 1, parts.length].entries())
    view.setUint16(0x3a + 2 * i, n, true);
  let name = 1;
  for (const [i, part] of parts.entries()) {
    bytes.set(part, starts[i]);
    const at = headers + (i + 1) * 0x40;
    view.setUint32(at, name, true);
    view.setBigUint64(at + 0x18, BigInt(starts[i]!), true);
    view.setBigUint64(at + 0x20, BigInt(part.length), true);
    name += (names[i] ?? "").length + 1;
  }
  return bytes;
}

describe("machine code of a cubin", () => {
  it("is found by the entry", () => {
    const [a, b] = [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5)];
    expect([...codeOf(elf({ k0: a, k1: b }))]).toEqual([
      ["k0", a],
      ["k1", b],
    ]);
  });

  it("of several is told apart by addresses", () => {
    const lines = [0, 0x10, 0x20, 0x30].map((at, i) => {
      const address = at.toString(16).padStart(4, "0");
      return `        /*${address}*/                   OP${i} ;`;
    });
    const listing = [`\t.headerflags\t@"EF_CUDA_SM90"`, ...lines].join("\n");
    const found = textsOf(listing, [0x10, 0x20, 0x10]);
    expect(found.map((text) => text.match(/OP\d/g))).toEqual([["OP0"], ["OP1", "OP2"], ["OP3"]]);
  });
});

describe("a limit", () => {
  it("lets the next one begin when one has ended, also by a failure", async () => {
    const limit = limited(2);
    let [running, most] = [0, 0];
    const work = (i: number) => async (): Promise<number> => {
      most = Math.max(most, ++running);
      await new Promise((go) => setTimeout(go, 1));
      running--;
      if (i === 1) throw new Error("planted");
      return i;
    };
    const ended = await Promise.allSettled([0, 1, 2, 3, 4].map((i) => limit(work(i))));
    expect(ended.map((e) => e.status === "fulfilled")).toEqual([true, false, true, true, true]);
    expect(most).toBe(2);
  });
});
