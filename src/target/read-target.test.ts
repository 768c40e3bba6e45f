import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { architectures } from "./architectures/index.ts";
import { compareComputeCapability, parseComputeCapability } from "./compute-capability.ts";
import { origins } from "./figure.ts";
import { machineFiles, targets } from "./index.ts";
import { targetOfMachine } from "./machine-target.ts";
import { wasmTargets } from "./machines/wasm.ts";
import { x64Targets } from "./machines/x64.ts";
import { parseTarget, readTarget } from "./read-target.ts";
import { figuresOf } from "./walk-figures.ts";

type Json = { [key: string]: Json } & { value?: unknown };
const copyOf = (name: string): Json => {
  const file = machineFiles.find((f) => f.name === name);
  return JSON.parse(JSON.stringify(file)) as Json;
};
const codes = (value: unknown): string[] => {
  const read = readTarget(value);
  return read.ok ? [] : read.diagnostics.map((d) => `${d.code} ${d.at}`);
};

describe("built-in machines", () => {
  it.each(machineFiles.map((f) => [f.name, f] as const))(
    "%s reads back from its own file",
    (_, file) => {
      const read = parseTarget(JSON.stringify(file));
      expect(read).toEqual({ ok: true, value: targetOfMachine(file), warnings: [] });
    },
  );
  it("have a source and an origin for each figure", () => {
    for (const target of targets.values()) {
      const figures = figuresOf(target);
      expect(figures.length).toBeGreaterThan(9);
      for (const f of figures) {
        expect(origins, `${target.name} ${f.path}`).toContain(f.origin);
        expect(f.source.length, `${target.name} ${f.path}`).toBeGreaterThan(3);
        expect(Number.isFinite(f.value) && f.value >= 0, `${target.name} ${f.path}`).toBe(true);
      }
    }
  });
  it("offer programs of machine code what the general target of their features does", () => {
    const named = machineFiles.filter((f) => f.emitter === "x64").map((f) => f.name);
    expect(named).toEqual(["x86-64-v3", "x86-64-v4", "xeon-8480", "epyc-9654"]);
    const general = ["x64-avx2", "x64-avx512", "x64-avx512-vnni", "x64-avx512-vnni"];
    for (const [i, name] of named.entries()) {
      const [own, like] = [targets.get(name)!, targets.get(general[i]!)!];
      expect([...own.capabilities]).toEqual(expect.arrayContaining([...like.capabilities]));
      expect([own.vectorBytes, own.vectorRegisters]).toEqual([
        like.vectorBytes,
        like.vectorRegisters,
      ]);
    }
    expect(targets.get("neoverse-v2")!.capabilities.has("threads")).toBe(false);
  });
  it("have distinct names, and nothing shadows another", () => {
    expect(targets.size).toBe(machineFiles.length + wasmTargets.length + x64Targets.length);
  });
  it("have f32 rates within 5 % of lanes x clock", () => {
    for (const { name, machine } of machineFiles) {
      if (machine.kind !== "gpu") continue;
      const { architecture, multiprocessors, boostMhz, vectorTeraops } = machine;
      const lanes = architecture.f32LanesPerSm.value * multiprocessors.value;
      const computed = (2 * lanes * boostMhz.value) / 1e6;
      expect(Math.abs(vectorTeraops.f32.value / computed - 1), name).toBeLessThan(0.05);
    }
  });
  it("have rates that are a power of two of operations a cycle and multiprocessor", () => {
    for (const { name, machine } of machineFiles) {
      if (machine.kind !== "gpu") continue;
      const cycles = machine.multiprocessors.value * machine.boostMhz.value;
      const rates = [
        ...Object.entries(machine.vectorTeraops),
        ...Object.entries(machine.matrixTeraops),
      ];
      for (const [type, { value }] of rates) {
        const perCycle = (value * 1e6) / cycles;
        const power = 2 ** Math.round(Math.log2(perCycle));
        // Data center GPUs state matrix rates at a lower clock than the one they reach.
        expect(Math.abs(perCycle / power - 1), `${name} ${type}`).toBeLessThan(0.1);
      }
    }
  });
  it("have dense rates: with sparsity they would be twice what a multiprocessor does", () => {
    const halfPerCycle: Readonly<Record<string, readonly number[]>> = {
      sm_75: [1024],
      sm_80: [2048],
      sm_86: [512],
      sm_89: [512, 1024],
      sm_90a: [4096],
      sm_100a: [8192],
      sm_110a: [8192],
      sm_120a: [512, 1024],
      sm_121a: [1024],
      gfx942: [2048],
      "apple-gpu": [256],
    };
    // Against half precision: FP8 and FP4 of GeForce sum in f32 at half rate, their INT8 does not.
    const doublings: Readonly<Record<string, readonly number[]>> = {
      tf32: [0.5],
      bf16: [1],
      fp8: [2],
      fp6: [2],
      fp4: [4, 8],
      int8: [2, 4],
      int4: [2, 4, 8],
    };
    for (const { name, machine } of machineFiles) {
      if (machine.kind !== "gpu") continue;
      const cycles = machine.multiprocessors.value * machine.boostMhz.value;
      const half = machine.matrixTeraops.f16!.value;
      const near = (ratios: readonly number[], ratio: number): boolean =>
        ratios.some((r) => Math.abs(ratio / r - 1) < 0.1);
      const perCycle = halfPerCycle[machine.architecture.name]!;
      expect(near(perCycle, (half * 1e6) / cycles), name).toBe(true);
      for (const [type, ratios] of Object.entries(doublings)) {
        const rate = machine.matrixTeraops[type as "fp8"]?.value;
        if (rate !== undefined) expect(near(ratios, rate / half), `${name} ${type}`).toBe(true);
      }
    }
  });
  it("keep block, multiprocessor and cluster apart, as the driver reports them", () => {
    const h200 = targets.get("h200")!.machine!;
    if (h200.kind !== "gpu") throw new Error("no GPU");
    const { architecture: a } = h200;
    expect(a.sharedBytesPerBlock).toMatchObject({ value: 232448, per: "block" });
    expect(a.sharedBytesPerSm).toMatchObject({ value: 233472, per: "sm" });
    expect(a.sharedBytesPerCluster).toMatchObject({ value: 8 * 232448, per: "cluster" });
  });
  it("offer wgmma on 9.0 alone, tcgen05 and tensor memory together, FP4 from Blackwell on", () => {
    for (const a of architectures.values()) {
      const has = (f: string) => (a.features as readonly string[]).includes(f);
      const spelled = (n: string) => a.matrixInstructions.some((i) => i.name.startsWith(n));
      expect(has("wgmma"), a.name).toBe(a.name === "sm_90a");
      expect(spelled("wgmma"), a.name).toBe(has("wgmma"));
      expect(spelled("tcgen05"), a.name).toBe(has("tcgen05"));
      expect(a.tensorMemoryBytesPerSm !== undefined, a.name).toBe(has("tcgen05"));
      const capability = parseComputeCapability(a.computeCapability ?? "0.0")!;
      const blackwell = compareComputeCapability(capability, { major: 10, minor: 0 }) >= 0;
      expect(has("fp4"), a.name).toBe(blackwell);
    }
  });
  it("list the N of integer wgmma as ptxas takes them", () => {
    const rows = architectures.get("sm_90a")!.matrixInstructions;
    const n = (operands: string) =>
      rows.find((i) => i.name.startsWith("wgmma") && i.operands === operands)!.n;
    expect(n("bf16")).toHaveLength(32);
    expect(n("int8")).toEqual([
      8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256,
    ]);
  });
});

describe("compute capabilities", () => {
  it("compare as numbers", () => {
    const order = ["7.5", "8.0", "8.9", "9.0", "10.0", "11.0", "12.0", "12.1"];
    const sorted = [...order]
      .reverse()
      .map((t) => parseComputeCapability(t)!)
      .sort(compareComputeCapability)
      .map((c) => `${c.major}.${c.minor}`);
    expect(sorted).toEqual(order);
  });
  it("are refused when they are none", () => {
    for (const text of ["", "9", "9.0a", "sm_90", "-1.0", "N/A"]) {
      expect(parseComputeCapability(text)).toBeUndefined();
    }
  });
});

describe("target files", () => {
  it("may refer to an architecture by name", () => {
    const file = copyOf("h200");
    Object.assign(file.machine!, { architecture: "sm_90a" });
    expect(readTarget(file)).toMatchObject({ ok: true, value: { name: "h200" } });
    Object.assign(file.machine!, { architecture: "sm_42" });
    expect(codes(file)).toEqual(["TGT002 machine.architecture"]);
  });
  it("are refused when they are no JSON (TGT001)", () => {
    expect(parseTarget('{"name": NaN}')).toMatchObject({ diagnostics: [{ code: "TGT001" }] });
    expect(codes([])).toEqual(["TGT002 "]);
    expect(codes(null)).toEqual(["TGT002 "]);
  });
  it("are refused with a key missing, unknown or of another type (TGT002)", () => {
    const missing = copyOf("h200");
    delete missing.machine!.memoryBytes;
    expect(codes(missing)).toEqual(["TGT002 machine.memoryBytes"]);
    expect(codes({ ...copyOf("h200"), vram: 3 })).toEqual(["TGT002 vram"]);
    const unsourced = copyOf("h200");
    delete unsourced.machine!.l2Bytes!.source;
    expect(codes(unsourced)).toEqual(["TGT002 machine.l2Bytes.source"]);
    const misread = copyOf("h200");
    Object.assign(misread.machine!.l2Bytes!, { per: "sm" });
    expect(codes(misread)).toEqual(["TGT002 machine.l2Bytes.per"]);
  });
  it("are refused with any number NaN, negative, infinite, null or a text (TGT003)", () => {
    const paths = figuresOf(targets.get("b200")!)
      .map((f) => f.path)
      .filter((p) => p.startsWith("machine."));
    const bad = fc.constantFrom(Number.NaN, -1, Infinity, null, "12", 1e300);
    fc.assert(
      fc.property(fc.constantFrom(...paths), bad, (path, value) => {
        const file = copyOf("b200");
        const keys = path.replace(/\[(\d+)\]/g, ".$1").split(".");
        const figure = keys.reduce((node, key) => node[key]!, file);
        figure.value = value;
        expect(codes(file)).toEqual([`TGT003 ${path}.value`]);
      }),
    );
  });
  it("are refused with figures that contradict each other (TGT004)", () => {
    const change = (path: string, value: number): string[] => {
      const file = copyOf("h200");
      const figure = path.split(".").reduce((node, key) => node[key]!, file.machine!);
      figure.value = value;
      return codes(file);
    };
    // A multiprocessor's shared memory, and a clock in Hz.
    expect(change("architecture.sharedBytesPerBlock", 233472)).toContain(
      "TGT004 machine.architecture.sharedBytesPerBlock",
    );
    expect(change("vectorTeraops.f32", 989.4)).toEqual(["TGT004 machine.vectorTeraops.f32"]);
    expect(change("architecture.threadsPerBlock", 1000)).toHaveLength(1);
    expect(change("architecture.registersPerBlock", 131072)).toHaveLength(1);
    expect(change("vectorTeraops.f32", 0.0669)).toEqual(["TGT004 machine.vectorTeraops.f32"]);
    expect(change("matrixTeraops.bf16", 989_400)).toEqual(["TGT004 machine.matrixTeraops.bf16"]);
    expect(change("memoryBytesPerNs", 4.8e6)).toEqual(["TGT004 machine.memoryBytesPerNs"]);
    expect(change("l2Bytes", 2 ** 40)).toEqual(["TGT004 machine.l2Bytes"]);
    const fp4 = copyOf("h200");
    Object.assign(fp4.machine!.matrixTeraops!, { fp4: { value: 4000, source: "hope" } });
    expect(codes(fp4)).toEqual(["TGT004 machine.matrixTeraops.fp4"]);
    const cpu = copyOf("epyc-9654");
    (cpu.machine!.caches as unknown as Json[]).reverse();
    expect(codes(cpu)).toContain("TGT004 machine.caches");
  });
});
