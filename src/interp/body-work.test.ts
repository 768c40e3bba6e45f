import { expect, it } from "vitest";
import { importOnnx } from "../frontend/onnx/import/import-model.ts";
import { type NodeSpec, writeModel } from "../frontend/onnx/model-writer.ts";
import { refTensor } from "../semantics/tensor.ts";
import { runBounded, runGraph } from "./graph.ts";

const node = (op: string, inputs: string[], output: string): NodeSpec => ({
  ...{ op, inputs, outputs: [output] },
});

/** A loop in a loop: n trips of n trips each. */
function nested() {
  const state = [
    { name: "i", dtype: "i64", shape: [] },
    { name: "c", dtype: "bool", shape: [] },
  ] as const;
  const loop = (output: string, body: { outputs: string[]; nodes: NodeSpec[] }): NodeSpec => ({
    ...{ op: "Loop", inputs: ["n", "go"], outputs: [output] },
    attributes: { body: { inputs: state, ...body } },
  });
  const inner = {
    outputs: ["d", "r"],
    nodes: [node("Identity", ["c"], "d"), node("Neg", ["x"], "r")],
  };
  const outer = {
    outputs: ["e", "s"],
    nodes: [node("Identity", ["c"], "e"), loop("rs", inner), node("ReduceSum", ["rs"], "s")],
  };
  const bytes = writeModel({
    opset: 18,
    inputs: [
      { name: "x", dtype: "f32", shape: [2] },
      { name: "n", dtype: "i64", shape: [] },
      { name: "go", dtype: "bool", shape: [] },
    ],
    outputs: ["y"],
    nodes: [loop("y", outer)],
  });
  const imported = importOnnx(bytes);
  if (!imported.ok) throw new Error(imported.diagnostics[0]!.message);
  return imported.value;
}

it("ends loops in loops whose trips multiply (RUN007), by what the whole run takes", () => {
  const { graph, weights } = nested();
  const inputs = (n: number) => [
    ...[refTensor("f32", [2], [1, 2]), refTensor("i64", [], [BigInt(n)])],
    refTensor("bool", [], [1]),
  ];
  const most = 2 ** 22;
  expect(runBounded(graph, inputs(10), weights, most).ok).toBe(true);
  expect(runBounded(graph, inputs(100), weights, most)).toMatchObject({
    diagnostics: [{ code: "RUN007" }],
  });
  expect(runGraph(graph, inputs(100), weights).ok).toBe(true);
});
