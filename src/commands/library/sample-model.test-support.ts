/**
 * A small ONNX model for the tests of the doors: y = relu(x·w + b), with M rows. From 43 columns on, w
 * is too large to be inline in the graph's text.
 */
import { writeModel } from "../../frontend/onnx/model-writer.ts";
import { randomTensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";

export function sampleModel(columns = 40): Uint8Array {
  const rng = new Rng(1);
  return writeModel({
    name: "sample",
    opset: 18,
    inputs: [{ name: "x:0", dtype: "f32", shape: ["M", 24] }],
    outputs: ["y:0"],
    weights: {
      w: randomTensor("f32", [24, columns], rng),
      b: randomTensor("f32", [columns], rng),
    },
    nodes: [
      { op: "MatMul", inputs: ["x:0", "w"], outputs: ["t"] },
      { op: "Add", inputs: ["t", "b"], outputs: ["u"] },
      { op: "Relu", inputs: ["u"], outputs: ["y:0"] },
    ],
  });
}

/** total = s + x, two elements each. */
export const sumModel = (): Uint8Array => sumOf(2);
/** The same of any number of elements. */
export const openSum = (): Uint8Array => sumOf("n");

function sumOf(count: number | string): Uint8Array {
  return writeModel({
    name: "sum",
    opset: 18,
    inputs: [
      { name: "x", dtype: "f32", shape: [count] },
      { name: "s", dtype: "f32", shape: [count] },
    ],
    outputs: ["total"],
    weights: {},
    nodes: [{ op: "Add", inputs: ["s", "x"], outputs: ["total"] }],
  });
}

/** y = x + a + b, where a is to take over x and b is to take over a: one element and two delayed ones. */
export function delayLine(): Uint8Array {
  return writeModel({
    name: "delay",
    opset: 18,
    inputs: ["x", "a", "b"].map((name) => ({ name, dtype: "f32", shape: [1] })),
    outputs: ["y", "a_next", "b_next"],
    weights: {},
    nodes: [
      { op: "Add", inputs: ["x", "a"], outputs: ["t"] },
      { op: "Add", inputs: ["t", "b"], outputs: ["y"] },
      { op: "Identity", inputs: ["x"], outputs: ["a_next"] },
      { op: "Identity", inputs: ["a"], outputs: ["b_next"] },
    ],
  });
}
