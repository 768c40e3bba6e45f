import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readModelFile } from "../frontend/onnx/model-file.ts";
import { tensorOf, writeModel } from "../frontend/onnx/model-writer.ts";
import type { Result } from "../support/diagnostic.ts";
import { exportAction } from "./actions/export-onnx.ts";
import { optimizeModel } from "./actions/optimize.ts";
import type { CommandContext } from "./command.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-export-"));
  // Two products of one operand, which rewriting makes one.
  const weights = (n: number) =>
    tensorOf(
      "f32",
      [64, n],
      Float32Array.from({ length: 64 * n }, (_, i) => Math.sin(i)),
    );
  const bytes = writeModel({
    opset: 17,
    inputs: [{ name: "x::0", dtype: "f32", shape: ["rows", 64] }],
    outputs: [
      { name: "y.1", dtype: "f32", shape: ["rows", 64] },
      { name: "z", dtype: "f32", shape: ["rows", 64] },
    ],
    weights: { a: weights(64), b: weights(64) },
    nodes: [
      { op: "Relu", inputs: ["x::0"], outputs: ["r"] },
      { op: "MatMul", inputs: ["r", "a"], outputs: ["y.1"] },
      { op: "MatMul", inputs: ["r", "b"], outputs: ["z"] },
    ],
  });
  writeFileSync(join(folder, "m.onnx"), bytes);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const context: CommandContext = {
  now: () => 0,
  progress: () => {},
  interrupted: () => new AbortController().signal,
};

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

it("writes a graph that nothing makes cheaper as it was imported, composites whole", async () => {
  const made = writeModel({
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape: [4, 8] }],
    outputs: ["y"],
    weights: {
      low: tensorOf("f32", [], Float32Array.of(0)),
      high: tensorOf("f32", [], Float32Array.of(6)),
    },
    nodes: [{ op: "Clip", inputs: ["x", "low", "high"], outputs: ["y"] }],
  });
  writeFileSync(path("clip.onnx"), made);
  const result = await exportAction(
    { ...args("clip.onnx", "clip-again.onnx", "on"), shape: [] },
    context,
  );
  expect(result.ok).toBe(true);
  const written = unwrap(readModelFile(new Uint8Array(readFileSync(path("clip-again.onnx")))));
  expect(written.graph!.node.map((n) => n.opType)).toEqual(["Clip"]);
});

it("writes a quantised convolution as runtimes know it: dequantized operands, its bias among them", async () => {
  const scalar = (x: number) => tensorOf("f32", [], Float32Array.of(x));
  const made = writeModel({
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape: [1, 8, 32, 32] }],
    outputs: ["y"],
    weights: {
      scale: scalar(0.1),
      zero: tensorOf("u8", [], Uint8Array.of(3)),
      w: tensorOf(
        "i8",
        [16, 8, 1, 1],
        Int8Array.from({ length: 128 }, (_, i) => i),
      ),
      wZero: tensorOf("i8", [], Int8Array.of(0)),
      bias: tensorOf(
        "i32",
        [16],
        Int32Array.from({ length: 16 }, (_, i) => i),
      ),
      half: scalar(0.5),
    },
    nodes: [
      { op: "Mul", inputs: ["x", "half"], outputs: ["h"] },
      { op: "Mul", inputs: ["h", "half"], outputs: ["s"] },
      { op: "QuantizeLinear", inputs: ["s", "scale", "zero"], outputs: ["q"] },
      { op: "DequantizeLinear", inputs: ["q", "scale", "zero"], outputs: ["d"] },
      { op: "DequantizeLinear", inputs: ["w", "scale", "wZero"], outputs: ["dw"] },
      { op: "DequantizeLinear", inputs: ["bias", "scale"], outputs: ["db"] },
      { op: "Conv", inputs: ["d", "dw", "db"], outputs: ["c"] },
      { op: "QuantizeLinear", inputs: ["c", "scale", "zero"], outputs: ["y"] },
    ],
  });
  writeFileSync(path("bytes.onnx"), made);
  const exported = { ...args("bytes.onnx", "bytes-again.onnx", "on"), shape: [] };
  expect((await exportAction(exported, context)).ok).toBe(true);
  const written = unwrap(readModelFile(new Uint8Array(readFileSync(path("bytes-again.onnx")))));
  const nodes = written.graph!.node;
  expect(nodes.map((n) => n.opType).sort()).toEqual(
    ["Conv", "DequantizeLinear", "DequantizeLinear", "DequantizeLinear", "Mul", "Mul"].concat([
      "QuantizeLinear",
      "QuantizeLinear",
    ]),
  );
  expect(nodes.find((n) => n.opType === "Conv")!.input).toHaveLength(3);
});

it("writes the composites that a model came with beside what became cheaper", async () => {
  const scalar = (x: number) => tensorOf("f32", [], Float32Array.of(x));
  const filter = (n: number, c: number) =>
    tensorOf(
      "f32",
      [n, c, 1, 1],
      Float32Array.from({ length: n * c }, (_, i) => Math.sin(i)),
    );
  const made = writeModel({
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape: [1, 8, 32, 32] }],
    outputs: ["y"],
    weights: {
      w: filter(16, 8),
      v: filter(16, 16),
      scale: scalar(0.5),
      low: scalar(-1),
      high: scalar(6),
    },
    nodes: [
      { op: "Conv", inputs: ["x", "w"], outputs: ["a"] },
      { op: "LeakyRelu", inputs: ["a"], outputs: ["b"] },
      { op: "GlobalAveragePool", inputs: ["b"], outputs: ["c"] },
      { op: "Mul", inputs: ["c", "scale"], outputs: ["d"] },
      { op: "Conv", inputs: ["d", "v"], outputs: ["e"] },
      { op: "HardSigmoid", inputs: ["e"], outputs: ["f"] },
      { op: "Mul", inputs: ["b", "f"], outputs: ["g"] },
      { op: "Clip", inputs: ["g", "low", "high"], outputs: ["y"] },
    ],
  });
  writeFileSync(path("squeeze.onnx"), made);
  const exported = { ...args("squeeze.onnx", "squeezed.onnx", "on"), shape: [] };
  expect((await exportAction(exported, context)).ok).toBe(true);
  const written = unwrap(readModelFile(new Uint8Array(readFileSync(path("squeezed.onnx")))));
  const operators = written.graph!.node.map((n) => n.opType);
  expect(operators).toEqual(expect.arrayContaining(["LeakyRelu", "GlobalAveragePool", "Clip"]));
  expect(operators.length).toBeLessThan(8);
  for (const torn of ["Less", "Where", "ReduceSum", "Min", "Max"]) {
    expect(operators).not.toContain(torn);
  }
});

const path = (name: string) => join(folder, name);
const args = (model: string, onnx: string, rewrite: "on" | "off") => ({
  model: path(model),
  onnx: path(onnx),
  rewrite,
  target: "wasm",
  shape: rewrite === "on" ? ["rows=1..64"] : [],
  value: [],
});

function operators(name: string): string[] {
  const { graph } = unwrap(readModelFile(readFileSync(path(name))));
  expect(graph!.input.map((v) => v.name)).toEqual(["x::0"]);
  expect(graph!.output.map((v) => v.name)).toEqual(["y.1", "z"]);
  return graph!.node.map((n) => n.opType);
}

describe("export", () => {
  it("writes the graph as it was imported", async () => {
    unwrap(await exportAction(args("m.onnx", "plain.onnx", "off"), context));
    expect(operators("plain.onnx")).toEqual(["Relu", "MatMul", "MatMul"]);
  });

  it("writes the rewritten graph, with prices", async () => {
    const { data } = unwrap(await exportAction(args("m.onnx", "better.onnx", "on"), context));
    expect(data).toMatchObject({ output: path("better.onnx"), opset: 21 });
    expect(data.priceNs).toBeLessThanOrEqual(data.importPriceNs as number);
    operators("better.onnx");
  });

  it("writes the graph of an artifact, whose shapes are fixed", async () => {
    const optimized = await optimizeModel(
      { ...args("m.onnx", "", "on"), output: path("m.wt"), state: [] },
      context,
    );
    unwrap(optimized);
    const plain = { ...args("m.wt", "artifact.onnx", "on"), shape: [] };
    unwrap(await exportAction(plain, context));
    operators("artifact.onnx");
    const fixed = await exportAction({ ...plain, shape: ["rows=3"] }, context);
    expect(fixed.ok ? [] : fixed.diagnostics.map((d) => d.code)).toEqual(["CLI001"]);
  });

  it("does not write over the model, and takes sizes where extents have no bound", async () => {
    const over = await exportAction(args("m.onnx", "m.onnx", "off"), context);
    expect(over.ok ? [] : over.diagnostics.map((d) => d.code)).toEqual(["CLI001"]);
    const open = await exportAction({ ...args("m.onnx", "o.onnx", "on"), shape: [] }, context);
    expect(open).toMatchObject({ ok: true, warnings: [{ code: "CLI005", severity: "warning" }] });
    operators("o.onnx");
  });
});
