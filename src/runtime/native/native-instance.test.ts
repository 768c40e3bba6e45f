import { existsSync, readFileSync, rmSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import type { Program } from "../../program/program.ts";
import { parseProgram } from "../../program/program-parse.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import { openNativeSystem, openSystemOf } from "../ffi/koffi-system.ts";
import type { NativeSystem } from "../ffi/native-system.ts";
import { probeNativeFeatures, probeSystem } from "./features.ts";
import { createNativeInstance, type NativeInstance } from "./native-instance.ts";
import { NativeMemory } from "./native-memory.ts";
import { perfMapLines, perfMapPath } from "./perf-map.ts";

const here = probeNativeFeatures();
const opened = openNativeSystem();

function parsed(text: string): Program {
  const program = parseProgram(text);
  invariant(program.ok, () => JSON.stringify(program));
  return program.value;
}

/** y[i] = x[indices[i]] + i, in two kernels that need a barrier between them. */
const gather = parsed(`
program gather for "x64-avx512" {
  parameter N in 1 to 64
  buffer x : input memory f32 [N] source "x"
  buffer indices : input memory i64 [N] source "indices"
  buffer t : scratch memory f32 [N]
  buffer y : output memory f32 [N] source "y"
  kernel first region "first" {
    grid threads (th < threads)
    role main copies 1 threads 1 {
      for i < N over th {
        index j < N checked wraps = load.i64 indices[i]
        store t[i] = load.f32 x[j]
      }
    }
  }
  kernel second region "second" {
    grid threads (th < threads)
    role main copies 1 threads 1 {
      for i < N over th {
        store y[i] = add(load.f32 t[N - 1 - i], cast.f32.wrap(index.i32(i)))
      }
    }
  }
  tasks {
    launch first after previous
    launch second after previous
  }
}`);

function start(threads: number, system: NativeSystem, name = "x64-avx2"): NativeInstance {
  const made = createNativeInstance(gather, targets.get(name)!, {
    ...{ system, threads, parallelism: 2, guards: true },
  });
  invariant(made.ok, () => JSON.stringify(made));
  return made.value;
}

function feed(instance: NativeInstance, indices: readonly number[]): void {
  const x = instance.bytes("x");
  const i = instance.bytes("indices");
  const view = new DataView(x.buffer, x.byteOffset);
  const list = new DataView(i.buffer, i.byteOffset);
  indices.forEach((index, n) => {
    view.setFloat32(4 * n, 100 * n, true);
    list.setBigInt64(8 * n, BigInt(index), true);
  });
}

function results(instance: NativeInstance, count: number): number[] {
  const y = instance.bytes("y");
  const view = new DataView(y.buffer, y.byteOffset);
  return Array.from({ length: count }, (_, n) => view.getFloat32(4 * n, true));
}

describe.skipIf(!here.ok)("native instance", () => {
  const system = here.ok ? here.value.system : (undefined as never);

  it.each([1, 2, 3])("orders kernels with %i threads, run after run", async (threads) => {
    const instance = start(threads, system);
    for (let round = 0; round < 20; round++) {
      feed(instance, [0, 1, 2, -1, 3]);
      const run = round % 2 ? await instance.run({ N: 5 }) : instance.runSync({ N: 5 });
      expect(run.ok).toBe(true);
      expect(results(instance, 5)).toEqual([300, 401, 202, 103, 4]);
    }
    instance.dispose();
  });

  it("ends a run whose index is out of range, and goes on with the next", () => {
    const instance = start(2, system);
    feed(instance, [0, 7, 0]);
    const run = instance.runSync({ N: 3 });
    expect(run.ok ? [] : run.diagnostics.map((d) => d.code)).toEqual(["RUN006"]);
    feed(instance, [2, 2, 2]);
    expect(instance.runSync({ N: 3 }).ok).toBe(true);
    expect(results(instance, 3)).toEqual([200, 201, 202]);
    instance.dispose();
  });

  it("refuses parameters out of range", () => {
    const instance = start(1, system);
    const run = instance.runSync({ N: 65 });
    expect(run.ok ? [] : run.diagnostics.map((d) => d.code)).toEqual(["RUN008"]);
    instance.dispose();
  });

  it("runs many instances at once and gives all their pages and threads back", async () => {
    const many = Array.from({ length: 6 }, () => start(2, system));
    for (const instance of many) feed(instance, [1, 0]);
    const runs = await Promise.all(many.map((m) => m.run({ N: 2 })));
    expect(runs.every((r) => r.ok)).toBe(true);
    for (const instance of many) {
      expect(results(instance, 2)).toEqual([0, 101]);
      instance.dispose();
      expect(instance.mappedBytes).toBe(0);
    }
  });

  it("names its code to profilers where that is asked for", () => {
    const map = perfMapPath();
    rmSync(map, { force: true });
    start(1, system).dispose();
    expect(existsSync(map)).toBe(false);
    vi.stubEnv("WAVETILE_PERF_MAP", "1");
    start(1, system).dispose();
    vi.unstubAllEnvs();
    const lines = readFileSync(map, "utf8").trimEnd().split("\n");
    rmSync(map);
    const names = lines.map((line) => /^[0-9a-f]+ [0-9a-f]+ (wavetile:\S+)$/.exec(line)?.[1]);
    expect(names).toEqual(expect.arrayContaining(["wavetile:first", "wavetile:second"]));
    expect(names).not.toContain(undefined);
  });

  it("says which thread the system refused", () => {
    const instance = start(2, { ...system, startThread: () => undefined });
    feed(instance, [0]);
    const run = instance.runSync({ N: 1 });
    expect(run.ok ? [] : run.diagnostics.map((d) => d.code)).toEqual(["RUN054"]);
    instance.dispose();
  });

  it("refuses what the system refuses", () => {
    const codes = (broken: NativeSystem): string[] => {
      const result = probeSystem(broken);
      return result.ok ? [] : result.diagnostics.map((d) => d.code);
    };
    expect(codes({ ...system, map: () => undefined })).toEqual(["RUN051"]);
    expect(codes({ ...system, seal: () => false })).toEqual(["RUN052"]);
    const silent = Object.assign(() => undefined, { onPool: async () => undefined });
    expect(codes({ ...system, functionAt: () => silent })).toEqual(["RUN053"]);
    const options = { system: { ...system, seal: () => false }, threads: 1, parallelism: 1 };
    const made = createNativeInstance(gather, targets.get("x64-avx2")!, options);
    expect(made.ok ? [] : made.diagnostics.map((d) => d.code)).toEqual(["RUN052"]);
  });
});

describe("perf map", () => {
  it("has a line for each function: start, size, name", () => {
    const functions = [
      { name: "a b", start: 0, end: 16 },
      { name: "run", start: 64, end: 74 },
    ];
    const lines = ["7f0000001000 10 wavetile:a_b", "7f0000001040 a wavetile:run"];
    expect(perfMapLines(0x7f0000001000n, functions)).toEqual(lines);
  });
});

describe("native system", () => {
  it("is refused for other processors and systems", () => {
    for (const [processor, system] of [
      ["arm64", "linux"],
      ["x64", "plan9"],
    ] as const) {
      const result = openSystemOf(processor, system);
      expect(result.ok ? [] : result.diagnostics.map((d) => d.code)).toEqual(["RUN050"]);
    }
  });

  it.skipIf(!opened.ok)("maps, seals and returns pages", () => {
    invariant(opened.ok, () => "no system");
    const memory = new NativeMemory(opened.value);
    const address = memory.mapGuarded(100);
    const bytes = new Uint8Array(opened.value.view(address, 100));
    bytes.fill(7);
    expect(bytes.every((b) => b === 7)).toBe(true);
    expect(memory.bytes).toBeGreaterThan(0);
    memory.unmap();
    expect(memory.bytes).toBe(0);
  });
});
