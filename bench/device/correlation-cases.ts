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

export const correlationCases: readonly CorrelationCase[] = [
  builtCase(["gemm", "bf16", 200], { x: [2304, 1792], w: [2816, 1792] }, (g, [x, w]) =>
    g.cast(g.einsum("i k, j k -> i j", x!, w!, "f32"), "bf16"),
  ),
  convolutionCase(["convolution", "f16", 200], {
    ...{ image: [32, 96, 52, 44], filters: [160, 96, 3], group: 1 },
  }),
  convolutionCase(["depthwise", "f32", 60], {
    ...{ image: [32, 224, 60, 52], filters: [224, 1, 3], group: 224 },
  }),
  builtCase(["softmax", "f32", 60], { x: [36_000, 1200] }, (g, [x]) =>
    g.node("softmax", [x!], { axis: 1 }),
  ),
  builtCase(["norm", "bf16", 60], { x: [48_000, 1536], s: [1536], b: [1536] }, (g, [x, s, b]) =>
    g.node("layerNorm", [x!, s!, b!], { axis: 1, epsilon: 1e-5 }),
  ),
  {
    ...{ family: "attention", shape: "24x1500x96", dtype: "bf16", count: 60 },
    model: () => {
      const sizes = { batch: 2, heads: 12, groups: 12, rows: 1500, columns: 1500, depth: 96 };
      return {
        graph: attentionGraph({ name: "attention", ...sizes, causal: false }, "bf16"),
        weights: noWeights,
      };
    },
  },
  builtCase(["reduction", "f32", 60], { x: [72, 900, 640] }, (g, [x]) =>
    g.reduce("sum", x!, [1], false),
  ),
  builtCase(["transpose", "f32", 60], { x: [40, 1100, 900] }, (g, [x]) =>
    g.node("transpose", [x!], { permutation: [0, 2, 1] }),
  ),
];
