import { describe, expect, it } from "vitest";
import { controlLeaf } from "../../emit/x64/probe-code.ts";
import { targets } from "../../target/index.ts";
import { openNativeSystem } from "../ffi/koffi-system.ts";
import type { NativeSystem } from "../ffi/native-system.ts";
import { probeSystem } from "./features.ts";

const opened = openNativeSystem();

const bits = (...numbers: readonly number[]): number =>
  numbers.reduce((word, bit) => word + 2 ** bit, 0);

/** Words that CPUID gives: ecx of leaf 1, ebx and ecx of leaf 7, eax of its second part where it has one; XCR0. */
interface Processor {
  readonly leaf1: number;
  readonly leaf7: readonly [ebx: number, ecx: number];
  readonly leaf7b?: number;
  readonly saved: number;
}

const haswell: Processor = {
  leaf1: bits(12, 27, 28, 29),
  leaf7: [bits(5, 8), 0],
  saved: 0b111,
};
const skylake: Processor = {
  ...haswell,
  leaf7: [bits(5, 8, 16, 17, 30, 31), 0],
  saved: 0b11100111,
};
const cascadeLake: Processor = { ...skylake, leaf7: [skylake.leaf7[0], bits(11)] };
const zen4: Processor = { ...cascadeLake, leaf7b: bits(5) };

/** The system, whose probe code answers as another processor. */
function pretending(
  system: NativeSystem,
  { leaf1, leaf7, leaf7b, saved }: Processor,
): NativeSystem {
  const call = (block: bigint): undefined => {
    const words = new Uint32Array(system.view(block, 64));
    const [leaf, subleaf] = words as unknown as [number, number];
    words.fill(0);
    if (leaf === 0) words[0] = 7;
    if (leaf === 1) words[2] = leaf1;
    if (leaf === 7 && subleaf === 0) words.set([leaf7b === undefined ? 0 : 1, ...leaf7]);
    if (leaf === 7 && subleaf === 1 && leaf7b !== undefined) words[0] = leaf7b;
    if (leaf === controlLeaf >>> 0) words[0] = saved;
  };
  const functionAt = () => Object.assign(call, { onPool: async () => undefined });
  return { ...system, functionAt } as NativeSystem;
}

describe.skipIf(!opened.ok)("targets of a processor", () => {
  const targetsOf = (processor: Processor): readonly string[] => {
    if (!opened.ok) return [];
    const found = probeSystem(pretending(opened.value, processor));
    return found.ok ? found.value.targets : found.diagnostics.map((d) => d.code);
  };

  it("are those whose programs use no more than it has, by features and not by name", () => {
    expect(targetsOf(haswell)).toEqual(["x64-avx2", "x86-64-v3"]);
    expect(targetsOf(skylake)).toEqual(["x64-avx512", "x86-64-v4", "x64-avx2", "x86-64-v3"]);
    const all = targetsOf(zen4);
    expect(all.slice(0, 3)).toEqual(["x64-avx512-bf16", "xeon-8480", "epyc-9654"]);
    const general = targetsOf(cascadeLake).filter((name) => name.startsWith("x64-"));
    expect(general).toEqual(["x64-avx512-vnni", "x64-avx512", "x64-avx2"]);
    const emitted = [...targets.values()].filter((t) => t.emitter === "x64").map((t) => t.name);
    expect([...all].sort()).toEqual(emitted.sort());
  });

  it("need registers that the operating system saves", () => {
    expect(targetsOf({ ...zen4, saved: 0b111 })).toEqual(targetsOf(haswell));
    expect(targetsOf({ ...zen4, saved: 0b011 })).toEqual(["RUN053"]);
    expect(targetsOf({ ...zen4, leaf1: bits(12, 28, 29) })).toEqual(["RUN053"]);
  });
});
