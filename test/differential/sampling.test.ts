/**
 * gridSample and roiAlign as WebAssembly against the oracle: modes, paddings, coordinates far outside and none;
 * Resize against onnxruntime.
 */
import { describe, expect, it } from "vitest";
import { disagreement } from "../../campaign/operators/operator-case.ts";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { toIndex } from "../../src/semantics/index-expr.ts";
import {
  fromRef,
  numbersOf,
  type RefTensor,
  refTensor,
  toRef,
} from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function expectSame(graph: Graph, inputs: readonly RefTensor[]): void {
  const target = targets.get("wasm")!;
  const { model, nests, plan } = unwrap(compileModel({ graph, weights: noWeights }, { target }));
  const features = { ...probeWasmFeatures(), threads: false };
  const weight = weightReader(model);
  const session = unwrap(
    createWasmSession(plan.program, { weight, threads: 1, features, host: nodeWorkerHost }),
  );
  const feeds = inputs.map((t, i) => [graph.values[graph.inputs[i]!]!.name, fromRef(t)] as const);
  const outputs = unwrap(session.run(Object.fromEntries(feeds)));
  const found = numbersOf(toRef(outputs[nests.outputs[0]!]!));
  const wanted = numbersOf(unwrap(runGraph(graph, inputs))[0]!);
  for (const [i, value] of wanted.entries()) {
    if (Number.isFinite(value)) expect(found[i]).toBeCloseTo(value, 4);
    else expect(found[i]).toBe(value);
  }
}

const floats = (shape: readonly number[], draw: () => number): RefTensor =>
  refTensor("f32", shape, Array.from({ length: shape.reduce((a, b) => a * b, 1) }, draw));

const odd = [Number.NaN, Infinity, -Infinity, 1, -1, 40, -1e30];

describe("gridSample", () => {
  const variants = (["nearest", "linear", "cubic"] as const).flatMap((mode, i) =>
    (["zeros", "border", "reflection"] as const).map((padding, j) => {
      return { mode, padding, alignCorners: (i + j) % 2 === 0 };
    }),
  );
  it.each(variants)("$mode, $padding, corners $alignCorners", (attrs) => {
    const rng = new Rng(7);
    const b = new GraphBuilder("g");
    const height = attrs.mode === "linear" ? b.symbol("H", 1, 9) : toIndex(5);
    const x = b.input("x", { dtype: "f32", shape: [2, 3, height, 4].map(toIndex) });
    const grid = b.input("grid", { dtype: "f32", shape: [2, 3, 7, 2].map(toIndex) });
    const graph = b.finish([b.node("gridSample", [x, grid], attrs)]);
    const coordinate = () => (rng.integer(0, 5) === 0 ? rng.pick(odd) : 3 * rng.uniform() - 1.5);
    for (const extent of attrs.mode === "linear" ? [5, 1] : [5]) {
      const data = floats([2, 3, extent, 4], () => 2 * rng.uniform() - 1);
      expectSame(graph, [data, floats([2, 3, 7, 2], coordinate)]);
    }
  });
  it("samples volumes", () => {
    const rng = new Rng(8);
    const b = new GraphBuilder("g");
    const x = b.input("x", { dtype: "f32", shape: [1, 2, 3, 4, 5].map(toIndex) });
    const grid = b.input("grid", { dtype: "f32", shape: [1, 2, 2, 3, 3].map(toIndex) });
    const attrs = { mode: "linear", padding: "zeros", alignCorners: false } as const;
    const graph = b.finish([b.node("gridSample", [x, grid], attrs)]);
    const draw = () => 2.4 * rng.uniform() - 1.2;
    expectSame(graph, [floats([1, 2, 3, 4, 5], draw), floats([1, 2, 2, 3, 3], draw)]);
  });
});

describe("roiAlign", () => {
  const variants = (["avg", "max"] as const).flatMap((mode) =>
    [false, true].map((halfPixel) => ({ mode, halfPixel })),
  );
  it.each(variants)("$mode, half pixels $halfPixel", ({ mode, halfPixel }) => {
    const rng = new Rng(9);
    const b = new GraphBuilder("r");
    const count = b.symbol("R", 1, 8);
    const x = b.input("x", { dtype: "f32", shape: [2, 3, 9, 7].map(toIndex) });
    const boxes = b.input("boxes", { dtype: "f32", shape: [count, toIndex(4)] });
    const batches = b.input("batches", { dtype: "i64", shape: [count] });
    const attrs = { outputHeight: 2, outputWidth: 3, samplingRatio: 2, spatialScale: 0.5 };
    const graph = b.finish([
      b.node("roiAlign", [x, boxes, batches], { ...attrs, mode, halfPixel }),
    ]);
    const data = floats([2, 3, 9, 7], () => 2 * rng.uniform() - 1);
    const corner = () => (rng.integer(0, 9) === 0 ? rng.pick([-50, 90]) : 30 * rng.uniform() - 5);
    const which = refTensor("i64", [6], [0, 1, 1, 0, 1, 0]);
    expectSame(graph, [data, floats([6, 4], corner), which]);
  });
});

it("Resize by a scale that is fine: phases of a vocoder by 1 / 300, as the peer does", async () => {
  const scales = { shape: [3], values: [1, 1, Math.fround(1 / 300)], weight: true };
  const drawn = {
    node: { op: "Resize", domain: "", attributes: { mode: "linear" } },
    operands: [[1, 2, 900], undefined, scales],
  };
  expect(await disagreement(drawn, 1)).toBeUndefined();
});
