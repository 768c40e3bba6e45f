import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { limitFaults } from "./configuration.ts";
import { configureKernel } from "./configure.ts";
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
