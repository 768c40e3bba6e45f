/**
 * Workloads whose candidate schedules are timed against their prices on a device (correlation-suite.ts): one
 * region each, of a size at which a launch is a small part of the time, in another shape than prices were ever
 * looked at for.
 */
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Model, ValueId } from "../../src/graph/graph.ts";
import { noWeights } from "../../src/interp/graph.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { makeTensor } from "../../src/semantics/tensor.ts";
import { attentionGraph } from "./attention-case.ts";
import { take } from "./ptx-launch.ts";

export interface CorrelationCase {
  readonly family: string;
  readonly shape: string;
  readonly dtype: DType;
  /** Candidates that are drawn. */
  readonly count: number;
  readonly model: () => Model;
}

type Inputs = Readonly<Record<string, readonly number[]>>;

function builtCase(
  [family, dtype, count]: readonly [family: string, dtype: DType, count: number],
  inputs: Inputs,
  build: (g: GraphBuilder, operands: readonly ValueId[]) => ValueId,
): CorrelationCase {
  const model = (): Model => {
    const g = new GraphBuilder(family);
    const operands = Object.entries(inputs).map(([name, shape]) =>
      g.input(name, { dtype, shape: shape.map((d) => constant(d)) }),
    );
    return { graph: g.finish([build(g, operands)]), weights: noWeights };
  };
  return { family, shape: Object.values(inputs)[0]!.join("x"), dtype, count, model };
}

interface ConvolutionShape {
  readonly image: readonly [batch: number, channels: number, height: number, width: number];
  readonly filters: readonly [filters: number, channels: number, kernel: number];
  readonly group: number;
}

/** Weights of zeros: times of bodies without branches do not hang on them. */
function convolutionCase(
  [family, dtype, count]: readonly [family: string, dtype: DType, count: number],
  { image, filters: [filters, channels, kernel], group }: ConvolutionShape,
): CorrelationCase {
  const model = (): Model => {
    const bytes = writeModel({
      ...{ name: family, opset: 18, outputs: ["y"] },
      inputs: [{ name: "x", dtype, shape: image }],
      weights: {
        w: makeTensor(dtype, [filters, channels, kernel, kernel]),
        b: makeTensor(dtype, [filters]),
      },
      nodes: [
        {
          ...{ op: "Conv", inputs: ["x", "w", "b"], outputs: ["y"] },
          attributes: { group: BigInt(group), pads: Array(4).fill(BigInt((kernel - 1) / 2)) },
        },
      ],
    });
    return take(importOnnx(bytes, { shapes: {} }));
  };
  return { family, shape: `${image.join("x")} by ${filters}x${kernel}`, dtype, count, model };
}

const gemm = (dtype: "bf16" | "f32", count: number, [m, n, k]: readonly number[]) =>
  builtCase(["gemm", dtype, count], { x: [m!, k!], w: [n!, k!] }, (g, [x, w]) => {
    const product = g.einsum("i k, j k -> i j", x!, w!, "f32");
    return dtype === "f32" ? product : g.cast(product, dtype);
  });
const softmax = (shape: readonly number[]) =>
  builtCase(["softmax", "f32", 60], { x: shape }, (g, [x]) => g.node("softmax", [x!], { axis: 1 }));
const norm = ([rows, width]: readonly number[]) =>
  builtCase(
    ["norm", "bf16", 60],
    { x: [rows!, width!], s: [width!], b: [width!] },
    (g, [x, s, b]) => g.node("layerNorm", [x!, s!, b!], { axis: 1, epsilon: 1e-5 }),
  );
const attention = (heads: number, length: number, depth: number): CorrelationCase => ({
  ...{ family: "attention", shape: `${heads}x${length}x${depth}`, dtype: "bf16", count: 60 },
  model: () => {
    const sizes = { batch: 1, heads, groups: heads, rows: length, columns: length, depth };
    const graph = attentionGraph({ name: "attention", ...sizes, causal: false }, "bf16");
    return { graph, weights: noWeights };
  },
});
const reduction = (shape: readonly number[]) =>
  builtCase(["reduction", "f32", 60], { x: shape }, (g, [x]) => g.reduce("sum", x!, [1], false));
const transpose = (shape: readonly number[]) =>
  builtCase(["transpose", "f32", 60], { x: shape }, (g, [x]) =>
    g.node("transpose", [x!], { permutation: [0, 2, 1] }),
  );
const convolution = (count: number, shape: ConvolutionShape) =>
  convolutionCase(["convolution", "f16", count], shape);
const depthwise = (count: number, shape: ConvolutionShape) =>
  convolutionCase(["depthwise", "f32", count], shape);

/** Shapes by whose times constants of the prices were set. */
export const knownCases: readonly CorrelationCase[] = [
  gemm("bf16", 200, [2304, 2816, 1792]),
  convolution(200, { image: [32, 96, 52, 44], filters: [160, 96, 3], group: 1 }),
  depthwise(60, { image: [32, 224, 60, 52], filters: [224, 1, 3], group: 224 }),
  softmax([36_000, 1200]),
  norm([48_000, 1536]),
  attention(24, 1500, 96),
  reduction([72, 900, 640]),
  transpose([40, 1100, 900]),
  gemm("bf16", 200, [3000, 4096, 1024]),
  gemm("f32", 60, [1536, 1280, 1024]),
  convolution(200, { image: [16, 128, 40, 72], filters: [256, 128, 3], group: 1 }),
  depthwise(60, { image: [24, 320, 48, 64], filters: [320, 1, 5], group: 320 }),
  softmax([9000, 6000]),
  norm([150_000, 512]),
  attention(32, 2048, 64),
  reduction([400, 300, 500]),
  transpose([12, 2000, 1500]),
];

/** Shapes by whose times prices are only judged. */
export const heldOutCases: readonly CorrelationCase[] = [
  gemm("bf16", 200, [1800, 5000, 2500]),
  gemm("f32", 60, [1100, 1900, 900]),
  convolution(200, { image: [24, 192, 28, 36], filters: [320, 192, 3], group: 1 }),
  depthwise(60, { image: [40, 160, 44, 68], filters: [160, 1, 3], group: 160 }),
  softmax([20_000, 2500]),
  norm([64_000, 1024]),
  attention(20, 1152, 128),
  reduction([96, 1200, 400]),
  transpose([24, 1300, 1400]),
];
