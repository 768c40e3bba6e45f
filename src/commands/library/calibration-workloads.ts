/**
 * Workloads whose schedules are measured against their prices: a family each, in several shapes that are
 * small enough for hundreds of candidates, and large enough to outlast the start of a program by far. A
 * workload is an ONNX model of one operator with all its regions: a candidate is a state of each.
 */

import { importOnnx } from "../../frontend/onnx/import/import-model.ts";
import { type NodeSpec, writeModel } from "../../frontend/onnx/model-writer.ts";
import type { Model } from "../../graph/graph.ts";
import { prepareModel } from "../../graph/prepare.ts";
import { buildNests } from "../../region/builders/build-nests.ts";
import { type ProgramRegions, regionsOf } from "../../region/regions-of.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { unwrap } from "./wavetile-error.ts";

export interface Workload {
  readonly family: string;
  readonly shape: string;
  readonly model: Model;
  readonly program: ProgramRegions;
}

interface ModelParts {
  readonly inputs: readonly { readonly name: string; readonly shape: readonly number[] }[];
  readonly weights?: Readonly<Record<string, readonly number[]>>;
  readonly nodes: readonly NodeSpec[];
}

type Maker = (dims: readonly number[]) => ModelParts;

const node = (
  op: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes?: NodeSpec["attributes"],
): NodeSpec => ({ op, inputs, outputs, ...(attributes && { attributes }) });

const makers = {
  gemm: ([m, n, k]) => ({
    inputs: [{ name: "x", shape: [m!, k!] }],
    weights: { w: [k!, n!] },
    nodes: [node("MatMul", ["x", "w"], ["y"])],
  }),
  convolution: ([c, o, h, w, kernel]) => ({
    inputs: [{ name: "x", shape: [1, c!, h!, w!] }],
    weights: { w: [o!, c!, kernel!, kernel!], b: [o!] },
    nodes: [
      node("Conv", ["x", "w", "b"], ["t"], { pads: Array(4).fill(BigInt((kernel! - 1) / 2)) }),
      node("Relu", ["t"], ["y"]),
    ],
  }),
  depthwise: ([c, h, w, kernel]) => ({
    inputs: [{ name: "x", shape: [1, c!, h!, w!] }],
    weights: { w: [c!, 1, kernel!, kernel!], b: [c!] },
    nodes: [
      node("Conv", ["x", "w", "b"], ["y"], {
        group: BigInt(c!),
        pads: Array(4).fill(BigInt((kernel! - 1) / 2)),
      }),
    ],
  }),
  softmax: (shape) => ({
    inputs: [{ name: "x", shape }],
    nodes: [node("Softmax", ["x"], ["y"], { axis: -1n })],
  }),
  norm: ([rows, width]) => ({
    inputs: [{ name: "x", shape: [rows!, width!] }],
    weights: { s: [width!], b: [width!] },
    nodes: [node("LayerNormalization", ["x", "s", "b"], ["y"], { axis: -1n })],
  }),
  attention: ([heads, length, depth]) => ({
    inputs: ["q", "k", "v"].map((name) => ({ name, shape: [heads!, length!, depth!] })),
    nodes: [
      node("Transpose", ["k"], ["t"], { perm: [0n, 2n, 1n] }),
      node("MatMul", ["q", "t"], ["a"]),
      node("Softmax", ["a"], ["p"], { axis: -1n }),
      node("MatMul", ["p", "v"], ["y"]),
    ],
  }),
  reduction: ([a, b, c]) => ({
    inputs: [{ name: "x", shape: [a!, b!, c!] }],
    nodes: [node("ReduceSum", ["x", "axes"], ["y"], { keepdims: 0n })],
    weights: {},
  }),
  transpose: ([a, b, c]) => ({
    inputs: [{ name: "x", shape: [a!, b!, c!] }],
    nodes: [node("Transpose", ["x"], ["y"], { perm: [0n, 2n, 1n] })],
  }),
} satisfies Record<string, Maker>;

export type Family = keyof typeof makers;

/** Shapes of each family. What is fitted is judged on shapes that it was not fitted to. */
export const familyShapes: Readonly<Record<Family, readonly (readonly number[])[]>> = {
  gemm: [
    [64, 64, 64],
    [96, 160, 128],
    [33, 256, 100],
    [128, 128, 256],
  ],
  convolution: [
    [16, 32, 14, 14, 3],
    [32, 48, 10, 20, 1],
    [8, 24, 24, 24, 3],
    [24, 32, 13, 18, 3],
  ],
  depthwise: [
    [32, 28, 28, 3],
    [48, 14, 20, 5],
    [24, 40, 30, 3],
  ],
  softmax: [
    [256, 128],
    [64, 500],
    [240, 197],
  ],
  norm: [
    [256, 192],
    [64, 768],
    [120, 320],
  ],
  attention: [
    [4, 64, 32],
    [2, 96, 48],
    [3, 50, 64],
  ],
  reduction: [
    [32, 96, 80],
    [16, 100, 128],
    [24, 60, 120],
  ],
  transpose: [
    [16, 96, 96],
    [4, 160, 240],
    [6, 130, 100],
  ],
};

function tensor(shape: readonly number[], value?: (i: number) => number): Tensor {
  const count = shape.reduce((n, e) => n * e, 1);
  const data = Float32Array.from(
    { length: count },
    (_, i) => value?.(i) ?? ((i * 7) % 13) / 13 - 0.4,
  );
  return { dtype: "f32", shape, data };
}

/** A family's model in one shape. */
export function makeWorkload(family: Family, dims: readonly number[]): Workload {
  const { inputs, weights = {}, nodes } = (makers as Record<Family, Maker>)[family](dims);
  const stored: Record<string, Tensor> = Object.fromEntries(
    Object.entries(weights).map(([name, shape]) => [name, tensor(shape)]),
  );
  if (family === "reduction") {
    stored.axes = { dtype: "i64", shape: [1], data: BigInt64Array.of(1n) };
  }
  const bytes = writeModel({
    name: family,
    opset: 18,
    inputs: inputs.map((i) => ({ ...i, dtype: "f32" })),
    outputs: ["y"],
    weights: stored,
    nodes,
  });
  const model = unwrap(importOnnx(bytes, { shapes: {} }));
  const nests = unwrap(buildNests(prepareModel(model).graph));
  return { family, shape: dims.join("x"), model, program: regionsOf(nests) };
}
