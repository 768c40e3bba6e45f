/** Small models to start from: every kind of structure that a file can hold. */

import { type ModelSpec, tensorOf, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { writeExternalTensorProto } from "../../src/frontend/onnx/tensor-proto.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";

const f32 = (shape: readonly number[]): Tensor =>
  tensorOf(
    "f32",
    shape,
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => ((i % 7) - 3) / 4),
  );
const u8 = (shape: readonly number[]): Tensor =>
  tensorOf(
    "u8",
    shape,
    Uint8Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => (i * 37) % 256),
  );
const i64 = (...values: readonly number[]): Tensor =>
  tensorOf("i64", [values.length], BigInt64Array.from(values.map(BigInt)));
const x = { name: "x", dtype: "f32", shape: ["N", 3, 8, 8] } as const;

const convolution: ModelSpec = {
  opset: 17,
  inputs: [x],
  outputs: ["y"],
  weights: { w: f32([4, 3, 3, 3]), b: f32([4]), s: i64(0, -1), shape: i64(4, 8) },
  nodes: [
    { op: "Conv", inputs: ["x", "w", "b"], outputs: ["c"], attributes: { pads: [1n, 1n, 1n, 1n] } },
    { op: "Relu", inputs: ["c"], outputs: ["r"] },
    { op: "GlobalAveragePool", inputs: ["r"], outputs: ["p"] },
    { op: "Reshape", inputs: ["p", "s"], outputs: ["f"] },
    { op: "Softmax", inputs: ["f"], outputs: ["y"], attributes: { axis: -1n } },
  ],
};

const shapes: ModelSpec = {
  opset: 20,
  inputs: [{ name: "a", dtype: "f32", shape: ["M", 4] }],
  outputs: ["y"],
  weights: { k: i64(2, 3), one: i64(1), axes: i64(0) },
  nodes: [
    { op: "ConstantOfShape", inputs: ["k"], outputs: ["z"] },
    { op: "Shape", inputs: ["a"], outputs: ["s"] },
    { op: "Gather", inputs: ["s", "axes"], outputs: ["m"] },
    { op: "Concat", inputs: ["m", "k"], outputs: ["e"], attributes: { axis: 0n } },
    { op: "Expand", inputs: ["z", "e"], outputs: ["big"] },
    { op: "Tile", inputs: ["k", "one"], outputs: ["t"] },
    { op: "Slice", inputs: ["big", "axes", "one", "axes"], outputs: ["cut"] },
    { op: "ReduceSum", inputs: ["cut", "axes"], outputs: ["y"] },
  ],
};

const control: ModelSpec = {
  opset: 18,
  inputs: [{ name: "a", dtype: "f32", shape: [4] }],
  outputs: ["y", "z"],
  weights: {
    trips: tensorOf("i64", [], BigInt64Array.of(5n)),
    go: tensorOf("bool", [], Uint8Array.of(1)),
  },
  functions: [
    {
      domain: "own",
      name: "Twice",
      inputs: ["p"],
      outputs: ["q"],
      nodes: [{ op: "Add", inputs: ["p", "p"], outputs: ["q"] }],
    },
  ],
  domains: { own: 1 },
  nodes: [
    { op: "Twice", domain: "own", inputs: ["a"], outputs: ["d"] },
    {
      op: "Loop",
      inputs: ["trips", "go", "d"],
      outputs: ["y", "z"],
      attributes: {
        body: {
          inputs: [
            { name: "i", dtype: "i64", shape: [] },
            { name: "c", dtype: "bool", shape: [] },
            { name: "v", dtype: "f32", shape: [4] },
          ],
          outputs: ["c2", "v2", "o"],
          nodes: [
            { op: "Identity", inputs: ["c"], outputs: ["c2"] },
            { op: "Add", inputs: ["v", "a"], outputs: ["v2"] },
            { op: "Mul", inputs: ["v2", "v2"], outputs: ["o"] },
          ],
        },
      },
    },
  ],
};

const values: ModelSpec = {
  opset: 20,
  inputs: [{ name: "a", dtype: "f32", shape: [6] }],
  outputs: ["y", "m"],
  weights: { size: tensorOf("i64", [], BigInt64Array.of(2n)) },
  nodes: [
    { op: "Constant", inputs: [], outputs: ["t"], attributes: { value_strings: ["aab", "b"] } },
    {
      op: "RegexFullMatch",
      inputs: ["t"],
      outputs: ["m"],
      attributes: { pattern: "(a|b)*b{1,3}" },
    },
    { op: "SplitToSequence", inputs: ["a", "size"], outputs: ["s"] },
    { op: "ConcatFromSequence", inputs: ["s"], outputs: ["y"], attributes: { axis: 0n } },
  ],
};

/** A model whose weight lies in another file. */
export function externalModel(location: string, offset = 0, length = 16): Uint8Array {
  const type = { dtype: "f32", shape: [4] } as const;
  return writeModel({
    opset: 17,
    inputs: [{ name: "a", dtype: "f32", shape: [4] }],
    outputs: ["y"],
    tensors: [writeExternalTensorProto("w", type, { location, offset, length })],
    nodes: [{ op: "Add", inputs: ["a", "w"], outputs: ["y"] }],
  });
}

/** Tables in attributes and weights in parts of bytes: lists that have to fit together. */
const tables: ModelSpec = {
  opset: 22,
  domains: { "com.microsoft": 1, "ai.onnx.ml": 3 },
  inputs: [
    { name: "a", dtype: "f32", shape: ["M", 32] },
    { name: "routes", dtype: "f32", shape: ["M", 2] },
    { name: "p", dtype: "f32", shape: [1, 2, 5, 5] },
  ],
  outputs: ["trees", "mixed", "decoded", "bent"],
  weights: {
    up: u8([2, 32, 16]),
    down: u8([2, 32, 16]),
    scales: f32([2, 32]),
    codes: u8([64]),
    absmax: f32([8]),
    w: f32([3, 2, 2, 2]),
    offsets: f32([1, 8, 4, 4]),
  },
  nodes: [
    {
      domain: "ai.onnx.ml",
      op: "TreeEnsembleRegressor",
      inputs: ["a"],
      outputs: ["trees"],
      attributes: {
        n_targets: 1n,
        nodes_treeids: [0n, 0n, 0n, 1n],
        nodes_nodeids: [0n, 1n, 2n, 0n],
        nodes_featureids: [3n, 0n, 0n, 0n],
        nodes_values: [0.5, 0, 0, 0],
        nodes_modes: ["BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
        nodes_truenodeids: [1n, 0n, 0n, 0n],
        nodes_falsenodeids: [2n, 0n, 0n, 0n],
        target_treeids: [0n, 0n, 1n],
        target_nodeids: [1n, 2n, 0n],
        target_ids: [0n, 0n, 0n],
        target_weights: [1, -1, 0.25],
      },
    },
    {
      domain: "com.microsoft",
      op: "QMoE",
      inputs: ["a", "routes", "up", "scales", "", "down", "scales"],
      outputs: ["mixed"],
      attributes: { k: 1n, activation_type: "silu", expert_weight_bits: 4n },
    },
    {
      domain: "com.microsoft",
      op: "MatMulBnb4",
      inputs: ["a", "codes", "absmax"],
      outputs: ["decoded"],
      attributes: { K: 32n, N: 4n, block_size: 16n, quant_type: 1n },
    },
    { op: "DeformConv", inputs: ["p", "w", "offsets"], outputs: ["bent"] },
  ],
};

export const baseModels: readonly Uint8Array[] = [
  ...[convolution, shapes, control, values, tables].map(writeModel),
  externalModel("data.bin"),
];
