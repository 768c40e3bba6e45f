/**
 * The models of the goldens, as small as they can be and still show what they are for. Weights are
 * seeded; extents are chosen so that every loop has a ragged end somewhere.
 */
import { type ModelSpec, type NodeSpec, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { fromRef, refTensor, type Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

export interface SampleModel {
  readonly name: string;
  /** What it shows. */
  readonly about: string;
  readonly bytes: () => Uint8Array;
  /** Ranges of symbols, as `--shape` takes them. */
  readonly shapes: Readonly<Record<string, string>>;
  /** Inputs that take over an output of the run before. */
  readonly states?: Readonly<Record<string, string>>;
}

/** Seeded quarters, which are short to read; the same shape gives the same tensor. */
function weight(...shape: readonly number[]): Tensor {
  const rng = new Rng(shape.reduce((h, n) => 31 * h + n, 7));
  const count = shape.reduce((a, b) => a * b, 1);
  return values(
    "f32",
    shape,
    Array.from({ length: count }, () => rng.integer(-8, 8) / 4),
  );
}

function values(dtype: DType, shape: readonly number[], list: readonly number[]): Tensor {
  return fromRef(refTensor(dtype, shape, list as number[]));
}

function node(op: string, inputs: string, outputs: string, attributes = {}): NodeSpec {
  const names = (list: string): string[] => list.split(" ").map((n) => (n === "-" ? "" : n));
  return { op, inputs: names(inputs), outputs: names(outputs), attributes };
}

const f32 = (name: string, ...shape: readonly (number | string)[]) =>
  ({ name, dtype: "f32", shape }) as const;

function model(spec: Omit<ModelSpec, "opset" | "outputs"> & { outputs: string }): () => Uint8Array {
  return () => writeModel({ ...spec, opset: 18, outputs: spec.outputs.split(" ") });
}

export const sampleModels: readonly SampleModel[] = [
  {
    name: "mlp",
    about: "y = relu(x·w + b) with M rows: one computation through every form",
    shapes: { M: "1..4096" },
    bytes: model({
      name: "mlp",
      inputs: [f32("x", "M", 24)],
      outputs: "y",
      weights: { "fc1.weight": weight(24, 48), "fc1.bias": weight(48) },
      nodes: [
        node("MatMul", "x fc1.weight", "t0"),
        node("Add", "t0 fc1.bias", "t1"),
        node("Relu", "t1", "y"),
      ],
    }),
  },
  {
    name: "convolution",
    about:
      "a padded convolution, its batch norm folded into it, a residual and relu as its epilogue",
    shapes: {},
    bytes: model({
      name: "block",
      inputs: [f32("x", 1, 2, 5, 6), f32("r", 1, 4, 5, 6)],
      outputs: "y",
      weights: {
        kernel: weight(4, 2, 3, 3),
        scale: values("f32", [4], [1, -0.5, 2, 1]),
        shift: values("f32", [4], [0, 1, 0.25, -1]),
        mean: values("f32", [4], [0.5, 0, -0.25, 1]),
        variance: values("f32", [4], [1, 4, 0.25, 1]),
      },
      nodes: [
        node("Conv", "x kernel", "c", { kernel_shape: [3n, 3n], pads: [1n, 1n, 1n, 1n] }),
        node("BatchNormalization", "c scale shift mean variance", "n"),
        node("Add", "n r", "s"),
        node("Relu", "s", "y"),
      ],
    }),
  },
  {
    name: "attention",
    about: "softmax(q·kᵀ)·v over four places",
    shapes: {},
    bytes: model({
      name: "attention",
      inputs: [f32("q", 4, 4), f32("k", 4, 4), f32("v", 4, 4)],
      outputs: "y",
      weights: { scale: values("f32", [], [0.35]) },
      nodes: [
        node("Transpose", "k", "kt", { perm: [1n, 0n] }),
        node("MatMul", "q kt", "scores"),
        node("Mul", "scores scale", "scaled"),
        node("Softmax", "scaled", "p", { axis: -1n }),
        node("MatMul", "p v", "y"),
      ],
    }),
  },
  {
    name: "symbolic",
    about: "extents that are expressions of two symbols: a strided slice, a join, a mean",
    shapes: { H: "4..32", W: "4..64" },
    bytes: model({
      name: "symbolic",
      inputs: [f32("x", 1, 2, "H", "W")],
      outputs: "wide mean",
      weights: {
        starts: values("i64", [1], [0]),
        ends: values("i64", [1], [1000]),
        axes: values("i64", [1], [3]),
        steps: values("i64", [1], [2]),
        "mean.axes": values("i64", [2], [2, 3]),
      },
      nodes: [
        node("Slice", "x starts ends axes steps", "half"),
        node("Concat", "half x", "wide", { axis: 3n }),
        node("ReduceMean", "wide mean.axes", "mean", { keepdims: 0n }),
      ],
    }),
  },
  {
    name: "stateful",
    about: "h' = tanh(x·w + h·u), kept by the program from run to run",
    shapes: {},
    states: { h: "next" },
    bytes: model({
      name: "cell",
      inputs: [f32("x", 1, 6), f32("h", 1, 5)],
      outputs: "next",
      weights: { w: weight(6, 5), u: weight(5, 5) },
      nodes: [
        node("MatMul", "x w", "a"),
        node("MatMul", "h u", "b"),
        node("Add", "a b", "c"),
        node("Tanh", "c", "next"),
      ],
    }),
  },
  {
    name: "lstm",
    about: "a recurrent layer over S steps: a scan, copied out up to the bound of S",
    shapes: { S: "5..6" },
    bytes: model({
      name: "lstm",
      inputs: [f32("x", "S", 1, 3)],
      outputs: "y",
      weights: { w: weight(1, 16, 3), r: weight(1, 16, 4), b: weight(1, 32) },
      nodes: [node("LSTM", "x w r b", "y - -", { hidden_size: 4n })],
    }),
  },
  {
    name: "running",
    about: "a running sum along the rows: a loop that carries its own result",
    shapes: {},
    bytes: model({
      name: "running",
      inputs: [f32("x", 6, 7)],
      outputs: "y",
      weights: { axis: values("i64", [], [0]) },
      nodes: [node("CumSum", "x axis", "s"), node("Relu", "s", "y")],
    }),
  },
  {
    name: "quantised",
    about: "int8: a quantised product with its rescaling, u8 by i8 into i32",
    shapes: {},
    bytes: model({
      name: "quantised",
      inputs: [f32("x", 3, 16)],
      outputs: "y",
      weights: {
        w: values(
          "i8",
          [16, 8],
          Array.from({ length: 128 }, (_, i) => ((37 * i) % 255) - 127),
        ),
        "x.scale": values("f32", [], [0.02]),
        "x.zero": values("u8", [], [128]),
        "w.zero": values("i8", [], [0]),
        "y.scale": values("f32", [], [0.0005]),
      },
      nodes: [
        node("QuantizeLinear", "x x.scale x.zero", "q"),
        node("MatMulInteger", "q w x.zero w.zero", "i"),
        node("Cast", "i", "f", { to: 1n }),
        node("Mul", "f y.scale", "y"),
      ],
    }),
  },
];
