/** What `explain` says of kernels on blocks of threads, against the program that it speaks of. */
import { expect, test } from "vitest";
import { type CompiledModel, compileModel } from "../../compile.ts";
import { importOnnx } from "../../frontend/onnx/import/import-model.ts";
import { writeModel } from "../../frontend/onnx/model-writer.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { ValueId } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { Target } from "../../target/target.ts";
import {
  type BlockKernel,
  blockKernels,
  boundOf,
  describeKernel,
  type KernelSource,
} from "./block-kernels.ts";
import { searchReport } from "./search-report.ts";

function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function sourceOf({ plan, regions }: CompiledModel, target: Target): KernelSource {
  const schedules = regions.map((r) => r.scheduled.schedule);
  return { program: plan.program, schedules, target };
}

const model = take(
  importOnnx(
    writeModel({
      name: "product",
      opset: 23,
      inputs: [
        { name: "x", dtype: "bf16", shape: [1024, 512] },
        { name: "w", dtype: "bf16", shape: [512, 2048] },
      ],
      outputs: ["y"],
      weights: {},
      nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
    }),
    {},
  ),
);

test("grid, threads, memory and instructions are those of the kernel; a bound names its cause", () => {
  const target = targets.get("h200")!;
  const compiled = take(compileModel(model, { target }));
  const [kernel, ...others] = take(blockKernels(sourceOf(compiled, target)));
  expect(others).toEqual([]);
  const { tile, warps, stages } = compiled.regions[0]!.scheduled.products[0]!.directive;
  const limits = target.blocks!;
  const tiles = Math.ceil(1024 / tile[0]) * Math.ceil(2048 / tile[1]);
  expect(tiles % kernel!.blocks === 0 || kernel!.blocks <= limits.cores).toBe(true);
  expect(kernel!.threads).toBeGreaterThanOrEqual(32 * warps[0] * warps[1]);
  expect(kernel!.sharedBytes).toBeGreaterThanOrEqual(2 * stages * (tile[0] + tile[1]) * tile[2]);
  expect(kernel!.tile).toEqual(tile);
  expect(kernel!.stages).toBe(stages);
  expect(kernel!.registersBy).toBe("estimate");
  expect(kernel!.registers).toBeLessThanOrEqual(kernel!.registersAllowed);
  expect(kernel!.registersAllowed * kernel!.threads).toBeLessThanOrEqual(limits.registersPerCore);
  expect(kernel!.resident).toBeGreaterThanOrEqual(1);
  expect(kernel!.occupancy).toBeLessThanOrEqual(1);
  expect(kernel!.counts.mma + kernel!.counts.wgmma).toBeGreaterThan(0);
  expect(describeKernel(kernel!).join("\n")).toContain(`${kernel!.blocks} blocks of`);
  const [region] = searchReport("h200", compiled).regions;
  expect(region!.boundBy).toBe("arithmetic");
  expect(region!.boundNs).toBeLessThanOrEqual(region!.estimateNs);
});

test("what the assembler took stands where it was asked, and holds fewer blocks where it is more", () => {
  const target = targets.get("h200")!;
  const compiled = take(compileModel(model, { target }));
  const source = sourceOf(compiled, target);
  const [guessed] = take(blockKernels(source));
  const with_ = (registers: number): BlockKernel => {
    const assembled = [{ kernel: guessed!.name, registers, localBytes: 16 }];
    return take(blockKernels({ ...source, assembled }))[0]!;
  };
  expect(with_(40)).toMatchObject({ registers: 40, registersBy: "measured", localBytes: 16 });
  // Registers come in units of eight for each thread.
  const most = Math.floor(target.blocks!.registersPerCore / (guessed!.threads * 168));
  expect(with_(161).resident).toBeLessThanOrEqual(Math.max(1, most));
  expect(describeKernel(with_(40)).join("\n")).toContain("40 registers a thread (measured;");
  expect(describeKernel(with_(40)).join("\n")).toContain("16 bytes of local memory");
  expect(describeKernel(guessed!).join("\n")).toContain("(estimate;");
});

test("a region that is shorter than its launches and loads is bound by them, and the share is of that", () => {
  const limits = targets.get("h200")!.blocks!;
  const target = targets.get("h200")!;
  const [kernel] = take(blockKernels(sourceOf(take(compileModel(model, { target })), target)));
  const alone = limits.launchNs.value + limits.memoryLatencyNs.value;
  const short = { estimateNs: 2 * alone, boundNs: alone / 10, boundBy: "memory" };
  expect(boundOf(short, [kernel!], limits)).toEqual({ by: "latency", ns: alone, share: 0.5 });
  const two = boundOf({ ...short, estimateNs: 4 * alone }, [kernel!, kernel!], limits);
  expect(two).toEqual({ by: "latency", ns: 2 * alone, share: 0.5 });
  const long = { estimateNs: 20 * alone, boundNs: 10 * alone };
  expect(boundOf({ ...long, boundBy: "memory" }, [kernel!], limits).by).toBe("memory");
  const { by, share } = boundOf({ ...long, boundBy: "arithmetic" }, [kernel!], limits);
  expect([by, share]).toEqual(["matrix unit", 0.5]);
});

test("there are none where threads are those of a CPU", () => {
  const target = targets.get("wasm")!;
  const compiled = take(compileModel(model, { target }));
  expect(take(blockKernels(sourceOf(compiled, target)))).toEqual([]);
  expect(searchReport("wasm", compiled).regions[0]!.boundBy).toBeUndefined();
});

/** Graphs whose regions are one kernel or several, short and long, by every kind of bound. */
const bounded: Readonly<Record<string, (g: GraphBuilder) => ValueId>> = {
  "a sum of all": (g) =>
    g.reduce("sum", g.input("x", tensorType("f32", 2048, 4096)), [0, 1], false),
  "a sum of few": (g) => g.reduce("sum", g.input("x", tensorType("f32", 40)), [0], false),
  "a sum along columns": (g) =>
    g.reduce("max", g.input("x", tensorType("bf16", 65_536, 8)), [0], false),
  "few long rows": (g) =>
    g.node("argReduce", [g.input("x", tensorType("f32", 4, 200_000))], {
      ...{ kind: "max", axis: 1, keepDims: false, selectLast: false },
    }),
  "long scans": (g) =>
    g.node("cumulative", [g.input("x", tensorType("f32", 8, 65_536))], {
      ...{ kind: "sum", axis: 1, exclusive: false, reverse: false },
    }),
  "norms of rows": (g) =>
    g.node("softmax", [g.input("x", tensorType("f16", 512, 4096))], { axis: 1 }),
  "a product of few results": (g) => {
    const [x, w] = [tensorType("bf16", 16, 16_384), tensorType("bf16", 16_384, 64)];
    return g.matMul(g.input("x", x), g.input("w", w));
  },
  "a product of one row": (g) => {
    const [x, w] = [tensorType("bf16", 1, 4096), tensorType("bf16", 4096, 4096)];
    return g.matMul(g.input("x", x), g.input("w", w));
  },
  "a map of one element": (g) => g.apply("relu", g.input("x", tensorType("f32", 1))),
};

test.each(Object.keys(bounded))("no estimate is below its bound: %s", (name) => {
  for (const machine of ["h200", "a100-40gb"]) {
    const target = targets.get(machine)!;
    const g = new GraphBuilder("bounded");
    const graph = g.finish([bounded[name]!(g)]);
    const compiled = take(compileModel({ graph, weights: noWeights }, { target }));
    const kernels = take(blockKernels(sourceOf(compiled, target)));
    const { regions } = searchReport(machine, compiled);
    const own = regions.map((region) => kernels.filter((k) => k.region === region.name));
    expect(own.flat()).toHaveLength(kernels.length);
    for (const [i, region] of regions.entries()) {
      if (own[i]!.length === 0) continue;
      const bound = boundOf(region, own[i]!, target.blocks!);
      expect(region.boundNs).toBeLessThanOrEqual(region.estimateNs);
      expect(bound.share).toBeGreaterThan(0);
      expect(bound.share).toBeLessThanOrEqual(1);
    }
  }
});
