/** What `explain` says of kernels on blocks of threads, against the program that it speaks of. */
import { expect, test } from "vitest";
import { compileModel } from "../../compile.ts";
import { importOnnx } from "../../frontend/onnx/import/import-model.ts";
import { writeModel } from "../../frontend/onnx/model-writer.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { blockKernels, describeKernel } from "./block-kernels.ts";
import { searchReport } from "./search-report.ts";

function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
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
  const [kernel, ...others] = take(blockKernels(compiled.plan.program, target));
  expect(others).toEqual([]);
  const { tile, warps, stages } = compiled.regions[0]!.scheduled.products[0]!.directive;
  const limits = target.blocks!;
  const tiles = Math.ceil(1024 / tile[0]) * Math.ceil(2048 / tile[1]);
  expect(tiles % kernel!.blocks === 0 || kernel!.blocks <= limits.cores).toBe(true);
  expect(kernel!.threads).toBeGreaterThanOrEqual(32 * warps[0] * warps[1]);
  expect(kernel!.sharedBytes).toBeGreaterThanOrEqual(2 * stages * (tile[0] + tile[1]) * tile[2]);
  expect(kernel!.registers * kernel!.threads).toBeLessThanOrEqual(limits.registersPerCore);
  expect(kernel!.resident.least).toBeLessThanOrEqual(kernel!.resident.most);
  expect(kernel!.occupancy.most).toBeLessThanOrEqual(1);
  expect(kernel!.counts.mma + kernel!.counts.wgmma).toBeGreaterThan(0);
  expect(describeKernel(kernel!).join("\n")).toContain(`${kernel!.blocks} blocks of`);
  const [region] = searchReport("h200", compiled).regions;
  expect(region!.boundBy).toBe("arithmetic");
  expect(region!.boundNs).toBeLessThanOrEqual(region!.estimateNs);
});

test("there are none where threads are those of a CPU", () => {
  const target = targets.get("wasm")!;
  const compiled = take(compileModel(model, { target }));
  expect(take(blockKernels(compiled.plan.program, target))).toEqual([]);
  expect(searchReport("wasm", compiled).regions[0]!.boundBy).toBeUndefined();
});
