/**
 * Models in half precision whose inner values leave its range: a layer norm as single operators, a mean of
 * many, scores of attention. Judged by the same model in float64 on the same (half) inputs and weights, and
 * by onnxruntime-node where that computes the operators.
 */
import { describe, expect, it } from "vitest";
import { places, runCompiled } from "../../campaign/campaigns/random-ops.ts";
import { openPeer } from "../../src/commands/library/onnxruntime.ts";
import { compileModel } from "../../src/compile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { type ModelSpec, type NodeSpec, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { keepWide } from "../../src/graph/transforms/keep-wide.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { fromRef, numbersOf, refTensor, type Tensor, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

const of = (dtype: DType, shape: readonly number[], values: readonly number[]): Tensor =>
  fromRef(refTensor(dtype, shape, values));

/** Rounded to half, then in `dtype`. */
const halves = (dtype: DType, shape: readonly number[], draw: () => number): Tensor => {
  const values = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, draw);
  return of(dtype, shape, [...numbersOf(refTensor("f16", shape, values))]);
};

const [rows, width] = [3, 64];

/** (x - mean) / sqrt(mean((x - mean)²) + ε) · γ + β, as exporters write it. */
function layerNorm(dtype: DType, squares: "Pow" | "Mul"): ModelSpec {
  const rng = new Rng(5);
  const mean = (from: string, to: string): NodeSpec => ({
    op: "ReduceMean",
    inputs: [from, "axes"],
    outputs: [to],
  });
  return {
    opset: 18,
    inputs: [{ name: "x", dtype, shape: [rows, width] }],
    outputs: ["y"],
    weights: {
      axes: of("i64", [1], [-1]),
      ...(squares === "Pow" && { two: of(dtype, [], [2]) }),
      epsilon: of(dtype, [], [1e-5]),
      gamma: halves(dtype, [width], () => 1 + 0.1 * rng.normal()),
      beta: halves(dtype, [width], () => 0.1 * rng.normal()),
    },
    nodes: [
      mean("x", "mean"),
      { op: "Sub", inputs: ["x", "mean"], outputs: ["d"] },
      { op: squares, inputs: ["d", squares === "Pow" ? "two" : "d"], outputs: ["square"] },
      mean("square", "variance"),
      { op: "Add", inputs: ["variance", "epsilon"], outputs: ["v"] },
      { op: "Sqrt", inputs: ["v"], outputs: ["deviation"] },
      { op: "Div", inputs: ["d", "deviation"], outputs: ["n"] },
      { op: "Mul", inputs: ["n", "gamma"], outputs: ["scaled"] },
      { op: "Add", inputs: ["scaled", "beta"], outputs: ["y"] },
    ],
  };
}

/** softmax(x xᵀ) x: scores far beyond the range. */
function attention(dtype: DType): ModelSpec {
  return {
    opset: 18,
    inputs: [{ name: "x", dtype, shape: [rows, width] }],
    outputs: ["y"],
    weights: { scale: of(dtype, [], [2 ** -14]) },
    nodes: [
      { op: "Transpose", inputs: ["x"], outputs: ["t"], attributes: { perm: [1n, 0n] } },
      { op: "MatMul", inputs: ["x", "t"], outputs: ["scores"] },
      { op: "Mul", inputs: ["scores", "scale"], outputs: ["s"] },
      { op: "Softmax", inputs: ["s"], outputs: ["p"], attributes: { axis: 1n } },
      { op: "MatMul", inputs: ["p", "x"], outputs: ["y"] },
    ],
  };
}

function wide(spec: (dtype: DType) => ModelSpec, data: Tensor): Float64Array {
  const { graph, weights } = unwrap(importOnnx(writeModel(spec("f64"))));
  const x = refTensor("f64", data.shape, [...numbersOf(toRef(data))]);
  return numbersOf(unwrap(runGraph(graph, [x], weights))[0]!);
}

function compiled(bytes: Uint8Array, x: Tensor): { values: Float64Array; notes: string[] } {
  const model = unwrap(importOnnx(bytes));
  const target = targets.get("wasm")!;
  const made = compileModel(model, { target });
  const { model: chosen, nests, plan } = unwrap(made);
  const features = { ...probeWasmFeatures(), threads: false };
  const options = { weight: weightReader(chosen), threads: 1, features, host: nodeWorkerHost };
  const session = unwrap(createWasmSession(plan.program, options));
  const outputs = unwrap(session.run({ x }));
  const warnings = made.ok ? made.warnings.filter((d) => d.code === "GRF015") : [];
  const values = numbersOf(toRef(outputs[nests.outputs[0]!]!));
  return { values, notes: warnings.flatMap((d) => d.notes) };
}

function expectClose(found: Float64Array, wanted: Float64Array): void {
  const largest = wanted.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
  for (const [i, value] of wanted.entries()) {
    expect(Math.abs(found[i]! - value)).toBeLessThan(4e-3 * largest);
  }
}

const large = (scale: number): Tensor => {
  const rng = new Rng(11);
  return halves("f16", [rows, width], () => scale * rng.normal());
};

describe("a layer norm as single operators in f16", () => {
  it.each([
    ["Pow", 1],
    ["Pow", 400],
    ["Mul", 400],
    ["Mul", 8000],
  ] as const)("%s, activations around %i", async (squares, scale) => {
    const x = large(scale);
    const bytes = writeModel(layerNorm("f16", squares));
    const { values, notes } = compiled(bytes, x);
    expectClose(
      values,
      wide((dtype) => layerNorm(dtype, squares), x),
    );
    expect(notes.join("\n")).toMatch(/^square \(.*\): about 0\.0 to 4\.2e\+6/m);
    const peer = unwrap(await openPeer(bytes, 1));
    const theirs = toRef(unwrap(await peer.run({ x })).y!);
    // Where onnxruntime keeps the range it agrees; what it rounds to infinity is no judge.
    if (scale === 1) expectClose(values, numbersOf(theirs));
    await peer.release();
  });
});

/** On a GPU kernels compute in half; here run block by block by the interpreter of programs. */
it("the same compiled for a GPU: what may leave the range is flagged and computed in f32", async () => {
  const bytes = writeModel(layerNorm("f16", "Mul"));
  const source = unwrap(importOnnx(bytes));
  const made = compileModel(source, { target: targets.get("h200")! });
  const flagged = made.ok ? made.warnings.filter((d) => d.code === "GRF015") : [];
  expect(flagged.flatMap((d) => d.notes).join("\n")).toMatch(/^square \(.*\): about 0\.0 to/m);
  // Deviations around 800, whose squares are ten times the largest half.
  const x = large(800);
  const found = await runCompiled(source, [toRef(x)], places["cuda-interp"](1));
  const wanted = wide((dtype) => layerNorm(dtype, "Mul"), x);
  expect(Math.max(...numbersOf(toRef(x)).map(Math.abs)) ** 2).toBeGreaterThan(10 * 65504);
  expectClose(numbersOf(found[0]!), wanted);
});

/** Above the range of f64 and outside of any loop. */
it("says of a value that has no known bound just that", () => {
  const scaled = { op: "Mul", inputs: ["x", "scale"], outputs: ["s"] };
  const { notes } = compiled(
    writeModel({
      opset: 18,
      inputs: [{ name: "x", dtype: "f16", shape: [rows, width] }],
      outputs: ["y"],
      weights: { scale: of("f16", [], [1000]) },
      nodes: [
        scaled,
        { op: "Exp", inputs: ["s"], outputs: ["e"] },
        { op: "Log", inputs: ["e"], outputs: ["y"] },
      ],
    }),
    large(0.001),
  );
  expect(notes.join("\n")).toMatch(/^e \(.*\): without a bound that is known$/m);
});

it("scores of attention that leave the range", () => {
  const x = large(300);
  const { values, notes } = compiled(writeModel(attention("f16")), x);
  expectClose(values, wide(attention, x));
  expect(notes.some((n) => n.startsWith("scores "))).toBe(true);
});

it.each([1e-6, 0.1, 30, 600, 60_000])("half units multiply values around %d scaled", (scale) => {
  // x W with the rows of x far apart in size, taken as if it might leave the range.
  const g = new GraphBuilder("product");
  const at = (...dims: number[]) => dims.map((d) => constant(d));
  const x = g.input("x", { dtype: "f16", shape: at(rows, width) });
  const rng = new Rng(8);
  const half = (n: number): number => numbersOf(refTensor("f16", [1], [n]))[0]!;
  const drawn = Array.from({ length: width * width }, () => half(0.1 * rng.normal()));
  const w = g.constant(of("f16", [width, width], drawn));
  const square = g.mul(x, x);
  const product = g.einsum("i k, k j -> j i", square, w, "f32");
  const graph = g.finish([product]);
  const weights = { read: (key: string): Tensor => g.storedConstants.get(key)! };
  const { model, wide: kept } = keepWide({ graph, weights }, { hasHalfUnits: true });
  const { graph: wider } = model;
  expect(kept.map((k) => k.origin)).toEqual(["mul"]);
  const [node] = wider.nodes.filter((n) => n.op === "contract");
  const types = node!.inputs.map((id) => wider.values[id]!.type.dtype);
  expect(types).toEqual(["f16", "f16"]);
  const values = Array.from({ length: rows * width }, (_, i) =>
    half(Math.min(65_504, scale * 10 ** -Math.floor(i / width) * Math.abs(rng.normal()))),
  );
  const found = unwrap(runGraph(wider, [refTensor("f16", [rows, width], values)], weights))[0]!;
  for (let i = 0; i < rows; i++) {
    let [largest, off] = [0, 0];
    for (let j = 0; j < width; j++) {
      let sum = 0;
      for (let k = 0; k < width; k++) sum += values[i * width + k]! ** 2 * drawn[k * width + j]!;
      largest = Math.max(largest, Math.abs(sum));
      off = Math.max(off, Math.abs(numbersOf(found)[j * rows + i]! - sum));
    }
    expect(off).toBeLessThanOrEqual(2 ** -10 * largest);
  }
});

it("a mean over many large elements", () => {
  const spec = (dtype: DType): ModelSpec => ({
    opset: 18,
    inputs: [{ name: "x", dtype, shape: [rows, width] }],
    outputs: ["y"],
    weights: {},
    nodes: [{ op: "ReduceMean", inputs: ["x"], outputs: ["y"] }],
  });
  const rng = new Rng(3);
  const x = halves("f16", [rows, width], () => 2000 + 500 * rng.normal());
  expectClose(compiled(writeModel(spec("f16")), x).values, wide(spec, x));
});

it("bf16 has the range of f32: nothing is told, sums are f32", () => {
  const rng = new Rng(4);
  const x = halves("bf16", [rows, width], () => 4000 * rng.normal());
  const bytes = writeModel(layerNorm("bf16", "Pow"));
  const { values, notes } = compiled(bytes, x);
  expect(notes).toEqual([]);
  const wanted = wide((dtype) => layerNorm(dtype, "Pow"), x);
  for (const [i, value] of wanted.entries()) {
    expect(Math.abs(values[i]! - value)).toBeLessThan(0.06 * Math.max(1, Math.abs(value)));
  }
});
