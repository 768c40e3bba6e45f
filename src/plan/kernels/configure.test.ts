import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { checkTensorMap } from "../instructions/tensor-map-legality.ts";
import { limitFaults } from "./configuration.ts";
import { configureKernel } from "./configure.ts";
import { paceOf } from "./gpu-launch.ts";
import { type KernelProblem, kernelClasses, problemTypes, workOf } from "./problem.ts";

const planned = [...targets.values()].filter((t) => t.machine !== undefined);

function draw(rng: Rng): KernelProblem {
  const size = (most: number): number => Math.round(2 ** (rng.uniform() * Math.log2(most)));
  const kind = rng.pick(kernelClasses);
  const attention = kind.startsWith("attention");
  return {
    kind,
    type: rng.pick(problemTypes),
    batch: size(64),
    rows: kind === "gemv" || kind === "attention-decode" ? size(8) : size(20000),
    columns: size(130000),
    depth: attention ? rng.pick([64, 80, 128, 256]) : size(20000),
    ...(kind === "quantised-gemm" && { weightBits: rng.pick([4.5, 8.5, 5.5]) }),
    ...(attention && { keys: size(130000) }),
  };
}

const gemmOf = (rows: number) => ({ kind: "gemm", batch: 1, rows, columns: 1024 }) as const;

describe("configureKernel", () => {
  it("stays within the limits of every machine, for 10,000 problems", () => {
    const rng = new Rng(4);
    for (let i = 0; i < 10_000; i++) {
      const target = planned[i % planned.length]!;
      const problem = draw(rng);
      const found = configureKernel(problem, target);
      if (!found.ok) throw new Error(`${target.name}: ${found.diagnostics[0]!.message}`);
      const faults = limitFaults(found.value.chosen, target);
      if (faults.length > 0) {
        expect([target.name, problem, found.value.chosen, faults]).toEqual([]);
      }
    }
  });

  it("never predicts less than the roofline of the data sheet", () => {
    const rng = new Rng(5);
    for (let i = 0; i < 500; i++) {
      const target = planned[i % planned.length]!;
      const problem = draw(rng);
      const found = configureKernel(problem, target);
      const { machine } = target;
      if (!found.ok || machine?.kind !== "gpu") continue;
      const memoryNs = workOf(problem).bytes / machine.memoryBytesPerNs.value;
      expect(found.value.chosen.estimateNs).toBeGreaterThan(memoryNs);
    }
  });

  it("takes the unit that the architecture has, and streams thin products", () => {
    const gemm: KernelProblem = {
      kind: "gemm",
      type: "bf16",
      batch: 1,
      rows: 4096,
      columns: 4096,
      depth: 4096,
    };
    const choose = (target: string, change: Partial<KernelProblem> = {}) => {
      const found = configureKernel({ ...gemm, ...change }, targets.get(target)!);
      if (!found.ok) throw new Error(found.diagnostics[0]!.message);
      return found.value;
    };
    expect(choose("h200").chosen.implementation).toMatch(/^wgmma/);
    expect(choose("b200").chosen.implementation).toMatch(/^tcgen05/);
    expect(choose("a100-80gb").chosen.implementation).toMatch(/^mma.sync/);
    expect(choose("h200", { rows: 1, kind: "gemv" }).chosen).toMatchObject({
      implementation: "weights streamed past vector units",
      bound: "memory",
    });
    expect(choose("h200", { type: "f32" }).chosen.implementation).toMatch(/^vector/);
    expect(choose("h200").rejected.length).toBeGreaterThan(0);
    expect(choose("x86-64-v4", { type: "f32" }).chosen.emitted).toBe(true);
  });

  it("takes matrix units of other vendors and of CPUs from the machine's data", () => {
    const choose = (target: string, type: KernelProblem["type"]) => {
      const gemm = {
        kind: "gemm",
        batch: 1,
        rows: 2048,
        columns: 2048,
        depth: 2048,
        type,
      } as const;
      const found = configureKernel(gemm, targets.get(target)!);
      if (!found.ok) throw new Error(found.diagnostics[0]!.message);
      return found.value.chosen;
    };
    expect(choose("mi300x", "bf16").instruction).toMatch(/^v_mfma m32n32/);
    expect(choose("apple-m2", "f16").instruction).toMatch(/^simdgroup.* m8n8k8$/);
    expect(choose("xeon-8480", "bf16")).toMatchObject({
      instruction: "tdpbf16ps m16n16k32",
      tile: { m: 32, n: 32, k: 32 },
    });
    expect(choose("epyc-9654", "int8").implementation).toMatch(/^vpdpbusd/);
    expect(choose("neoverse-v2", "bf16").implementation).toMatch(/^bfmmla/);
    expect(choose("a100-80gb", "f16").instruction).toBe("mma.sync m16n8k16");
    expect(choose("t4", "f16").instruction).toBe("mma.sync m16n8k8");
    expect(choose("t4", "bf16").instruction).toBeUndefined();
  });

  it("copies tiles in bulk exactly where a driver encodes the tensor map", () => {
    const rng = new Rng(6);
    const h200 = targets.get("h200")!;
    const seen = { bulk: 0, threads: 0 };
    for (let i = 0; i < 300; i++) {
      const [rows, depth] = [rng.integer(500, 5000), 2 * rng.integer(1, 2000) + rng.integer(0, 1)];
      const type = rng.pick(["f16", "bf16"] as const);
      const found = configureKernel({ ...gemmOf(rows), depth, type }, h200);
      if (!found.ok) throw new Error("refused");
      for (const config of [found.value.chosen, ...found.value.rejected]) {
        const { tile, implementation } = config;
        if (!implementation.startsWith("wgmma")) continue;
        const map = {
          type,
          addressBytes: 0,
          dims: [depth, rows],
          strides: [2 * depth],
          box: [tile.k, tile.m],
          elementStrides: [1, 1],
          swizzleBytes: 128,
        };
        const bulk = implementation.includes("bulk");
        if (bulk) expect(checkTensorMap(map), JSON.stringify(map)).toEqual({ legal: true });
        const legal = checkTensorMap(map).legal;
        // Where the map is legal the bulk copies are among the candidates.
        if (!bulk) expect(legal && found.value.chosen === config).toBe(false);
        seen[bulk ? "bulk" : "threads"]++;
      }
    }
    expect(Math.min(seen.bulk, seen.threads)).toBeGreaterThan(10);
  });

  it("has a kernel for heads that fit no shared memory", () => {
    const deep = {
      kind: "attention-prefill",
      type: "f32",
      batch: 2,
      rows: 500,
      columns: 1,
    } as const;
    for (const target of planned) {
      const found = configureKernel({ ...deep, depth: 1_000_000, keys: 500 }, target);
      if (!found.ok) throw new Error(found.diagnostics[0]!.message);
      expect(limitFaults(found.value.chosen, target)).toEqual([]);
    }
  });

  it("is judged: what a machine cannot take is named", () => {
    const h200 = targets.get("h200")!;
    const gemm = { kind: "gemm", batch: 1, rows: 2048, columns: 2048, depth: 2048 } as const;
    const found = configureKernel({ ...gemm, type: "bf16" }, h200);
    if (!found.ok) throw new Error("refused");
    const fine = found.value.chosen;
    const faults = (change: Partial<typeof fine>, target = h200) =>
      limitFaults({ ...fine, ...change }, target).length;
    expect(faults({})).toBe(0);
    const broken: readonly Partial<typeof fine>[] = [
      { sharedBytes: 228 * 1024 },
      { block: [1056, 1, 1] },
      { block: [100, 1, 1] },
      { registersPerThread: 256 },
      { cluster: 16 },
      { grid: [1, 65536, 1] },
      { vectorBytes: 12 },
      { stages: 0 },
      { estimateNs: Number.NaN },
      { instruction: "wgmma.mma_async m64n12k16", instructionTile: { m: 64, n: 12, k: 16 } },
      { instruction: "tcgen05.mma m64n256k16" },
      { tile: { ...fine.tile, m: 96 } },
    ];
    for (const change of broken) expect(faults(change), JSON.stringify(change)).toBeGreaterThan(0);
    // The same launch on other machines: no wgmma on sm_100 or sm_120.
    expect(faults({}, targets.get("b200")!)).toBeGreaterThan(0);
    expect(faults({}, targets.get("rtx-5090")!)).toBeGreaterThan(0);
  });

  it("cuts long rows and thin products over the whole machine", () => {
    const choose = (target: string, problem: Partial<KernelProblem>) => {
      const whole = {
        kind: "gemm",
        type: "bf16",
        batch: 1,
        rows: 1,
        columns: 1,
        depth: 1,
      } as const;
      const found = configureKernel({ ...whole, ...problem }, targets.get(target)!);
      if (!found.ok) throw new Error(found.diagnostics[0]!.message);
      return found.value;
    };
    for (const target of planned) {
      const one = { kind: "reduction", columns: 100_000_000 } as const;
      const { chosen } = choose(target.name, one);
      const { machine } = target;
      const units = machine?.kind === "gpu" ? machine.multiprocessors.value : machine?.cores?.value;
      expect(chosen.grid[0], target.name).toBeGreaterThanOrEqual(units ?? 1);
      const many = choose(target.name, { ...one, rows: 100_000, columns: 1000 }).chosen;
      expect(many.implementation).not.toMatch(/cut over/);
      if (machine?.memoryBytesPerNs === undefined) continue;
      // Within a half of what reading it once takes.
      const onceNs = 200e6 / machine.memoryBytesPerNs.value;
      expect(chosen.estimateNs / onceNs, target.name).toBeLessThan(1.5);
    }
    const thin = choose("h200", { rows: 128, columns: 1024, depth: 65_536 });
    expect(thin.chosen.implementation).toMatch(/depth cut over blocks$/);
    const whole = thin.rejected.find((r) => !r.implementation.includes("cut"));
    expect(whole!.estimateNs).toBeGreaterThan(1.5 * thin.chosen.estimateNs);
    expect(
      choose("h200", { rows: 4096, columns: 4096, depth: 4096 }).chosen.implementation,
    ).not.toMatch(/cut/);
  });

  it("decodes few heads on all cores and multiprocessors", () => {
    for (const name of ["epyc-9654", "xeon-8480", "neoverse-v2", "h200", "mi300x"]) {
      const target = targets.get(name)!;
      const decode = { kind: "attention-decode", type: "bf16", batch: 8, rows: 1 } as const;
      const problem = { ...decode, columns: 1, depth: 128, keys: 100_000 };
      const found = configureKernel(problem, target);
      if (!found.ok) throw new Error(name);
      const { machine } = target;
      const onceNs = workOf(problem).bytes / machine!.memoryBytesPerNs!.value;
      expect(found.value.chosen.estimateNs / onceNs, name).toBeLessThan(1.4);
      const units = machine?.kind === "gpu" ? machine.multiprocessors.value : machine!.cores!.value;
      expect(found.value.chosen.grid[0], name).toBeGreaterThan(0.8 * units);
    }
  });

  it("gives passes blocks of four warps and more, but for short rows", () => {
    const block = (columns: number, kind: "norm" | "elementwise") => {
      const problem = { kind, type: "f16", batch: 1, rows: 4096, columns, depth: 1 } as const;
      const found = configureKernel(problem, targets.get("h200")!);
      if (!found.ok) throw new Error("refused");
      return found.value.chosen.block[0];
    };
    for (const columns of [1024, 4096, 50_000]) {
      expect(block(columns, "norm")).toBeGreaterThanOrEqual(128);
      expect(block(columns, "elementwise")).toBeGreaterThanOrEqual(128);
    }
    expect(block(64, "norm")).toBe(32);
  });

  it("counts what all tiles fetch: 32 columns a tile are no way to multiply on a gaming GPU", () => {
    for (const name of [
      "rtx-3060",
      "rtx-3090",
      "rtx-4090",
      "rtx-5090",
      "l4",
      "l40s",
      "dgx-spark",
    ]) {
      const target = targets.get(name)!;
      if (target.machine?.kind !== "gpu") throw new Error(name);
      const edge = 8192;
      const problem = { kind: "gemm", type: "bf16", batch: 1 } as const;
      const extents = { rows: edge, columns: edge, depth: edge };
      const found = configureKernel({ ...problem, ...extents }, target);
      if (!found.ok) throw new Error(name);
      const { m, n } = found.value.chosen.tile;
      const fetched = 2 * edge * edge * (edge / m + edge / n);
      const { multiprocessors, boostMhz, architecture } = target.machine;
      const perNs =
        (architecture.l2BytesPerCycle.value * multiprocessors.value * boostMhz.value) / 1000;
      expect(found.value.chosen.estimateNs, name).toBeGreaterThan(fetched / perNs);
      expect(m * n, name).toBeGreaterThanOrEqual(64 * 64);
    }
  });

  it("takes longer for packed weights where arithmetic decides, and is shorter where memory does", () => {
    const at = (name: string, rows: number, weightBits?: number) => {
      const kind = weightBits === undefined ? "gemm" : "quantised-gemm";
      const extents = { batch: 1, rows, columns: 8192, depth: 8192 };
      const problem = {
        kind,
        type: "bf16",
        ...extents,
        ...(weightBits && { weightBits }),
      } as const;
      const found = configureKernel(problem as KernelProblem, targets.get(name)!);
      if (!found.ok) throw new Error("refused");
      return found.value.chosen.estimateNs;
    };
    for (const name of ["h200", "b200", "a100-80gb", "mi300x", "epyc-9654"]) {
      expect(at(name, 8192, 4.5), name).toBeGreaterThan(at(name, 8192));
      expect(at(name, 1, 4.5), name).toBeLessThan(at(name, 1));
    }
  });

  it("says why matrix units stay idle", () => {
    const gemm = { kind: "gemm", type: "bf16", batch: 1, rows: 999, columns: 999 } as const;
    const found = configureKernel({ ...gemm, depth: 999 }, targets.get("t4")!);
    if (!found.ok) throw new Error("refused");
    expect(found.value.chosen.reasons).toContain("sm_75 has no matrix instruction for bf16");
  });

  it("tunes to the size: a large product takes larger tiles than a small one", () => {
    const tile = (rows: number): number => {
      const problem = {
        kind: "gemm",
        type: "bf16",
        batch: 1,
        rows,
        columns: rows,
        depth: 1024,
      } as const;
      const found = configureKernel(problem, targets.get("h100")!);
      if (!found.ok) throw new Error("refused");
      return found.value.chosen.tile.m * found.value.chosen.tile.n;
    };
    expect(tile(8192)).toBeGreaterThan(tile(512));
  });

  it("refuses a machine that no launch fits (PLN021)", () => {
    const h200 = targets.get("h200")!;
    const { machine } = h200;
    if (machine?.kind !== "gpu") throw new Error("no GPU");
    const { architecture } = machine;
    const threadsPerBlock = { ...architecture.threadsPerBlock, value: 16 };
    const odd = { ...architecture, threadsPerBlock };
    const tiny = { ...h200, machine: { ...machine, architecture: odd } };
    for (const kind of ["gemm", "softmax"] as const) {
      const problem = { kind, type: "f32", batch: 1, rows: 64, columns: 64, depth: 64 } as const;
      expect(configureKernel(problem, tiny)).toMatchObject({
        ok: false,
        diagnostics: [{ code: "PLN021", at: "h200" }],
      });
    }
  });

  it("says what is written today, and by which code", () => {
    const today = (target: string, change: Partial<KernelProblem>) => {
      const gemm = { kind: "gemm", type: "f32", batch: 1, rows: 999, columns: 999 } as const;
      const found = configureKernel({ ...gemm, depth: 64, ...change }, targets.get(target)!);
      if (!found.ok) throw new Error("refused");
      const { today: it } = found.value;
      return "none" in it ? it.none : it.kernel.implementation;
    };
    expect(today("h200", {})).toBe("vector units, register tiles");
    const streamed = "wgmma, bulk tensor copies, producer and consumer warpgroups";
    expect(today("h200", { type: "bf16" })).toBe(streamed);
    // Rows of 60 elements are no multiple of 16 bytes; batches are no matrices; A100 has no wgmma.
    for (const change of [{ depth: 60 }, { kind: "grouped-gemm", batch: 4 }] as const) {
      expect(today("h200", { type: "bf16", ...change })).not.toBe(streamed);
    }
    expect(today("a100-80gb", { type: "bf16" })).toBe("mma.sync, asynchronous copies");
    for (const type of ["f32", "bf16"] as const) {
      expect(today("t4", { type })).toBe("no emitter writes code for this machine");
      expect(today("h200", { type, rows: 1 })).toMatch(/^(sums in registers|a warp a sum)/);
    }
    expect(today("h200", { kind: "softmax" })).toMatch(/^a kernel a step, a warp a row/);
    expect(today("h200", { kind: "elementwise" })).toBe("one pass, an element a thread");
    expect(today("h200", { kind: "attention-prefill", keys: 64 })).toMatch(/^product, softmax/);
    expect(today("xeon-8480", { kind: "softmax" })).toMatch(/^rows dealt out/);
    expect(today("xeon-8480", { kind: "attention-prefill", keys: 64 })).toMatch(/^product, softm/);
    expect(today("epyc-9654", { kind: "quantised-gemm", weightBits: 4.5 })).toMatch(
      /^no emitter unp/,
    );
    expect(today("neoverse-v2", {})).toBe("no emitter writes code for this machine");
    expect(today("h200", { type: "fp8" })).toBe("no emitter multiplies fp8");
  });

  it("names what lost, for every class and machine: the next best, and what breaks a limit", () => {
    for (const target of planned) {
      for (const kind of kernelClasses) {
        const problem: KernelProblem = {
          ...{ kind, type: "f16" as const, batch: 4, rows: 300, columns: 4096, depth: 128 },
          ...(kind.startsWith("attention") && { keys: 2000 }),
          ...(kind === "quantised-gemm" && { weightBits: 4.5 }),
        };
        const found = configureKernel(problem, target);
        if (!found.ok) throw new Error(found.diagnostics[0]!.message);
        const { chosen, rejected, overLimit, made, possible } = found.value;
        expect(rejected.length, `${target.name} ${kind}`).toBeGreaterThan(0);
        for (const r of rejected) {
          expect(r.estimateNs).toBeGreaterThanOrEqual(chosen.estimateNs);
          expect(limitFaults(r, target)).toEqual([]);
          expect(r.why).toMatch(/slower|times as long|as fast/);
        }
        expect(overLimit.length > 0).toBe(possible < made);
        for (const c of overLimit) {
          expect(c.why).toBe(limitFaults(c, target).join("; "));
          expect(c.why).not.toBe("");
        }
      }
    }
  });

  it("leaves room for unpacked weights where a unit reads shared memory", () => {
    const rng = new Rng(8);
    let seen = 0;
    for (let i = 0; i < 120; i++) {
      const target = targets.get(rng.pick(["h100", "h200", "b200", "gb200", "jetson-thor"]))!;
      const weightBits = rng.pick([3.4375, 4.25, 4.5, 5.5, 6.5625, 8.5]);
      const size = (most: number): number => rng.integer(1, most);
      const problem: KernelProblem = {
        kind: "quantised-gemm",
        type: rng.pick(["f16", "bf16"] as const),
        ...{ batch: 1, rows: size(9000), columns: size(9000), depth: 8 * size(1000), weightBits },
      };
      const found = configureKernel(problem, target);
      if (!found.ok) throw new Error(found.diagnostics[0]!.message);
      for (const c of [found.value.chosen, ...found.value.rejected]) {
        if (!/^(wgmma|tcgen05)/.test(c.implementation)) continue;
        seen++;
        const { m, n, k } = c.tile;
        const stage = 2 * m * k + (n * k * weightBits) / 8;
        // One step being multiplied, the next being unpacked.
        expect(c.sharedBytes).toBeGreaterThanOrEqual(c.stages * stage + 2 * (2 * n * k));
        expect(limitFaults(c, target)).toEqual([]);
      }
    }
    expect(seen).toBeGreaterThan(100);
  });

  it("reads the rates of memory and L2 where compiled kernels do", () => {
    for (const target of planned) {
      if (target.machine?.kind !== "gpu") continue;
      const pace = paceOf(target.machine, 1);
      expect(pace.cacheBytesPerNs).toBe(target.blocks!.nearBytesPerNs.value);
      expect(pace.bytesPerNs).toBe(target.blocks!.memoryBytesPerNs.value);
    }
  });

  it("refuses problems that are none (PLN020) and machines without a data sheet", () => {
    const bad = {
      kind: "gemm",
      type: "f16",
      batch: 1,
      rows: 0,
      columns: Number.NaN,
      depth: 1e30,
    } as const;
    const found = configureKernel(bad, targets.get("h200")!);
    expect(found).toMatchObject({ ok: false, diagnostics: [{ code: "PLN020" }, {}, {}] });
    const attention = { ...bad, kind: "attention-decode", rows: 1, columns: 1, depth: 64 } as const;
    expect(configureKernel(attention, targets.get("h200")!)).toMatchObject({
      ok: false,
      diagnostics: [{ at: "keys" }],
    });
    const gemm = { ...bad, rows: 1, columns: 1, depth: 1 } as const;
    expect(configureKernel(gemm, targets.get("wasm")!)).toMatchObject({
      ok: false,
      diagnostics: [{ code: "PLN002" }],
    });
  });
});
