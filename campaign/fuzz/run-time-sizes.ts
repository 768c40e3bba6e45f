/**
 * Models in which values that a run is fed decide sizes, counts and ends of loops, with values that no machine
 * has room or time for: each operator that takes such a value, fed with it at run time, through a Cast or as it
 * is. What is not refused runs.
 */
import { tryLoad } from "../../src/commands/library/load.ts";
import {
  type AttributeValue,
  type ModelSpec,
  type NodeSpec,
  tensorOf,
  writeModel,
} from "../../src/frontend/onnx/model-writer.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
import type { Rng } from "../../src/support/rng.ts";
import type { Finding } from "../campaign.ts";
import { judge } from "./judge.ts";

/** Numbers that a size may be asked to be: small ones run, so that what follows is reached. */
const sizes: readonly bigint[] = [
  ...[0n, 1n, 2n, 3n, 7n, 100n, 1000n, 100_000n, 2n ** 20n, 2n ** 24n, 2n ** 26n, 2n ** 28n],
  ...[2n ** 31n - 1n, 2n ** 31n, 2n ** 32n, 2n ** 32n + 1n, 2n ** 33n, 2n ** 40n, 2n ** 53n],
  ...[2n ** 62n, 2n ** 63n - 1n, -1n, -2n, -5n, -(2n ** 31n), -(2n ** 32n) + 1n, -(2n ** 63n)],
];
const factors = [0, 0.5, 1, 3, 1000, 1e6, 1e9, 1e30, -1, Number.NaN, Infinity] as const;

/** A model with its feeds. */
export interface SizedModel {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly feeds: Readonly<Record<string, Tensor>>;
}

interface Part {
  readonly nodes: readonly NodeSpec[];
  readonly feeds: Readonly<Record<string, Tensor>>;
  readonly weights?: Readonly<Record<string, Tensor>>;
}

const node = (
  op: string,
  inputs: readonly string[],
  output: string,
  attributes: Readonly<Record<string, AttributeValue>> = {},
): NodeSpec => ({ op, inputs, outputs: [output], attributes });

const list = (...values: readonly bigint[]): Tensor =>
  tensorOf("i64", [values.length], BigInt64Array.from(values));
const whole = (value: bigint): Tensor => tensorOf("i64", [], BigInt64Array.of(value));
const floats = (...values: readonly number[]): Tensor =>
  tensorOf("f32", [values.length], Float32Array.from(values));
const matrix = (...shape: readonly number[]): Tensor => {
  const count = shape.reduce((a, b) => a * b, 1);
  return tensorOf(
    "f32",
    shape,
    Float32Array.from({ length: count }, (_, i) => (i % 5) - 2),
  );
};
const flag = tensorOf("bool", [], Uint8Array.of(1));
const size = (rng: Rng): bigint => rng.pick(sizes);

const scalarState: ModelSpec["inputs"] = [
  { name: "i", dtype: "i64", shape: [] },
  { name: "c", dtype: "bool", shape: [] },
];

/** A loop whose trips data decide: it keeps a row of each trip, changes a state, or calls a loop like it. */
function loopPart(rng: Rng): Part {
  const rows = (name: string): NodeSpec[] => [
    node("Identity", ["c"], `${name}c`),
    rng.pick([node("Neg", ["x"], name), node("Concat", ["x", "x"], name, { axis: 0n })]),
  ];
  const simple = {
    inputs: scalarState,
    outputs: ["rc", "r"],
    nodes: rows("r"),
  };
  const inner = { op: "Loop", inputs: ["n", "go"], outputs: ["s"], attributes: { body: simple } };
  const nested = {
    inputs: scalarState,
    outputs: ["oc", "o"],
    nodes: [node("Identity", ["c"], "oc"), inner, node("ReduceSum", ["s"], "o")],
  };
  const body = rng.pick([simple, simple, nested]);
  return {
    feeds: { x: matrix(rng.pick([1, 4, 1000])), n: whole(size(rng)), go: flag },
    nodes: [{ op: "Loop", inputs: ["n", "go"], outputs: ["y"], attributes: { body } }],
  };
}

/** A state that grows with each trip. */
function growingLoop(rng: Rng): Part {
  const body = {
    inputs: [...scalarState, { name: "v", dtype: "f32" as const, shape: ["k"] }],
    outputs: ["c2", "v2"],
    nodes: [node("Identity", ["c"], "c2"), node("Concat", ["v", "v"], "v2", { axis: 0n })],
  };
  return {
    feeds: { x: matrix(4), n: whole(size(rng)), go: flag },
    nodes: [{ op: "Loop", inputs: ["n", "go", "x"], outputs: ["y"], attributes: { body } }],
  };
}

function sequencePart(rng: Rng): Part {
  const body = {
    inputs: [{ name: "e", dtype: "f32" as const, shape: ["k"] }],
    outputs: ["f"],
    nodes: [node("Concat", ["e", "x"], "f", { axis: 0n })],
  };
  const split = node("SplitToSequence", ["x", "n"], "s");
  const map = { op: "SequenceMap", inputs: ["s"], outputs: ["t"], attributes: { body } };
  const taken = rng.pick([
    [map, node("ConcatFromSequence", ["t"], "y", { axis: 0n })],
    [node("SequenceAt", ["s", "n"], "y")],
    [node("SequenceErase", ["s", "n"], "t"), node("ConcatFromSequence", ["t"], "y", { axis: 0n })],
    [
      node("SequenceInsert", ["s", "x", "n"], "t"),
      node("ConcatFromSequence", ["t"], "y", { axis: 0n }),
    ],
  ]);
  // Each part is a node: many take long to compile, which is a matter of size.
  return {
    feeds: { x: matrix(rng.pick([4, 12])), n: whole(size(rng)) },
    nodes: [split, ...taken],
  };
}

/** Positions of what is not zero in a tensor that a value has made, and all pairs of them. */
function positions(rng: Rng): Part {
  const found = rng.pick([
    [node("NonZero", ["e"], "p"), node("Cast", ["p"], "q", { to: 1n })],
    [node("Compress", ["e", "b"], "q")],
    [{ op: "Unique", inputs: ["e"], outputs: ["q"], attributes: {} }],
  ]);
  return {
    feeds: { x: floats(1), n: list(size(rng)) },
    nodes: [
      node("Expand", ["x", "n"], "e"),
      node("Cast", ["e"], "b", { to: 9n }),
      ...found,
      node("ReduceSum", ["q"], "y", { keepdims: 0n }),
    ],
  };
}

/** Windows and transforms of signals, whose lengths are operands. */
function signals(rng: Rng): Part {
  const lengths = { n: whole(size(rng)), m: whole(size(rng)) };
  return rng.pick<Part>([
    { feeds: lengths, nodes: [node(rng.pick(["HannWindow", "BlackmanWindow"]), ["n"], "y")] },
    { feeds: { ...lengths, x: matrix(1, 16, 1) }, nodes: [node("DFT", ["x", "n"], "y")] },
    {
      feeds: { ...lengths, x: matrix(1, 64, 1) },
      nodes: [node("STFT", ["x", "n", "", "m"], "y")],
    },
    {
      feeds: {
        ...lengths,
        f: floats(0).data.length ? tensorOf("f32", [], Float32Array.of(8)) : flag,
      },
      nodes: [
        node("Mul", ["f", "f"], "g"),
        node("MelWeightMatrix", ["n", "m", "m", "f", "g"], "y"),
      ],
    },
  ]);
}

function resized(rng: Rng): Part {
  const x = matrix(1, 1, 4, 4);
  const mode = rng.pick(["nearest", "linear", "cubic"]);
  if (rng.integer(0, 1) === 0) {
    const s = list(1n, 1n, size(rng), size(rng));
    return { feeds: { x, s }, nodes: [node("Resize", ["x", "", "", "s"], "y", { mode })] };
  }
  const f = floats(1, 1, rng.pick(factors), rng.pick(factors));
  return { feeds: { x, f }, nodes: [node("Resize", ["x", "", "f"], "y", { mode })] };
}

const makers: Readonly<Record<string, (rng: Rng) => Part>> = {
  range: (rng) => ({
    feeds: {
      a: whole(rng.pick([0n, size(rng)])),
      n: whole(size(rng)),
      d: whole(rng.pick([1n, size(rng)])),
    },
    nodes: [node("Range", ["a", "n", "d"], "y")],
  }),
  floatRange: (rng) => ({
    feeds: {
      a: tensorOf("f32", [], Float32Array.of(0)),
      n: tensorOf("f32", [], Float32Array.of(rng.pick(factors))),
      d: tensorOf("f32", [], Float32Array.of(rng.pick([1, ...factors]))),
    },
    nodes: [node("Range", ["a", "n", "d"], "y")],
  }),
  tile: (rng) => ({
    feeds: { x: matrix(2, 3), n: list(size(rng), size(rng)) },
    nodes: [node("Tile", ["x", "n"], "y")],
  }),
  expand: (rng) => ({
    feeds: { x: matrix(1), n: list(size(rng), rng.pick([1n, size(rng)])) },
    nodes: [node("Expand", ["x", "n"], "y")],
  }),
  squared: (rng) => ({
    // All pairs of what fits take long, which is no fault.
    feeds: { x: matrix(1), n: list(rng.pick(sizes.filter((n) => n <= 1000n || n >= 2n ** 24n))) },
    nodes: [
      node("Expand", ["x", "n"], "e"),
      node("Unsqueeze", ["e", "one"], "u"),
      node("Mul", ["u", "e"], "m"),
      node("ReduceSum", ["m"], "y", { keepdims: 0n }),
    ],
    weights: { one: list(1n) },
  }),
  fill: (rng) => ({
    feeds: { n: list(size(rng), rng.pick([1n, size(rng)])) },
    nodes: [node("ConstantOfShape", ["n"], "e"), node("Neg", ["e"], "y")],
  }),
  reshape: (rng) => ({
    feeds: { x: matrix(4, 6), n: list(size(rng), size(rng)) },
    nodes: [node("Reshape", ["x", "n"], "y")],
  }),
  pad: (rng) => ({
    feeds: { x: matrix(2, 3), n: list(size(rng), size(rng), size(rng), 0n) },
    nodes: [
      node("Pad", ["x", "n"], "y", { mode: rng.pick(["constant", "edge", "reflect", "wrap"]) }),
    ],
  }),
  slice: (rng) => ({
    feeds: {
      x: matrix(8, 3),
      n: list(size(rng)),
      m: list(size(rng)),
      s: list(rng.pick([1n, size(rng)])),
    },
    nodes: [node("Slice", ["x", "n", "m", "axis", "s"], "y")],
    weights: { axis: list(0n) },
  }),
  split: (rng) => ({
    feeds: { x: matrix(8), n: list(size(rng), size(rng)) },
    nodes: [{ op: "Split", inputs: ["x", "n"], outputs: ["y", "z"], attributes: {} }],
  }),
  oneHot: (rng) => ({
    feeds: { x: list(0n, size(rng)), n: whole(size(rng)) },
    nodes: [node("OneHot", ["x", "n", "v"], "y")],
    weights: { v: floats(0, 1) },
  }),
  topK: (rng) => ({
    feeds: { x: matrix(100), n: list(size(rng)) },
    nodes: [{ op: "TopK", inputs: ["x", "n"], outputs: ["y", "i"], attributes: {} }],
  }),
  triangle: (rng) => ({
    feeds: { x: matrix(4, 4), n: whole(size(rng)) },
    nodes: [node("Trilu", ["x", "n"], "y")],
  }),
  axes: (rng) => ({
    feeds: { x: matrix(4, 4), n: list(size(rng)) },
    nodes: [node(rng.pick(["ReduceSum", "Squeeze", "Unsqueeze"]), ["x", "n"], "y")],
  }),
  sums: (rng) => ({
    feeds: { x: matrix(4, 4), n: whole(size(rng)) },
    nodes: [node("CumSum", ["x", "n"], "y")],
  }),
  crop: (rng) => ({
    feeds: { x: matrix(4, 4), n: list(size(rng), size(rng)) },
    nodes: [node("CenterCropPad", ["x", "n"], "y")],
  }),
  unpooled: (rng) => ({
    feeds: {
      x: matrix(1, 1, 2, 2),
      p: tensorOf("i64", [1, 1, 2, 2], BigInt64Array.of(0n, 2n, size(rng), 10n)),
      n: list(1n, 1n, size(rng), size(rng)),
    },
    nodes: [node("MaxUnpool", ["x", "p", "n"], "y", { kernel_shape: [2n, 2n], strides: [2n, 2n] })],
  }),
  columns: (rng) => ({
    feeds: {
      x: matrix(1, 4, 4),
      n: list(size(rng), size(rng)),
      m: list(rng.pick([2n, size(rng)]), 2n),
    },
    nodes: [node("Col2Im", ["x", "n", "m"], "y")],
  }),
  grid: (rng) => ({
    feeds: { x: matrix(1, 2, 3), n: list(1n, 1n, size(rng), size(rng)) },
    nodes: [node("AffineGrid", ["x", "n"], "y")],
  }),
  boxes: (rng) => ({
    feeds: { b: matrix(1, 6, 4), s: matrix(1, 1, 6), n: whole(size(rng)) },
    nodes: [node("NonMaxSuppression", ["b", "s", "n"], "p"), node("Cast", ["p"], "y", { to: 1n })],
  }),
  lengths: (rng) => ({
    feeds: { x: matrix(4, 2), n: list(size(rng), size(rng)) },
    nodes: [node("ReverseSequence", ["x", "n"], "y")],
  }),
  scattered: (rng) => ({
    feeds: {
      x: matrix(8),
      n: tensorOf("i64", [2, 1], BigInt64Array.of(size(rng), size(rng))),
      u: matrix(2),
    },
    nodes: [node("ScatterND", ["x", "n", "u"], "y")],
  }),
  gathered: (rng) => ({
    feeds: { x: matrix(8, 2), n: list(size(rng)) },
    nodes: [node("Gather", ["x", "n"], "y")],
  }),
  drawn: (rng) => ({
    feeds: { x: matrix(1), n: list(size(rng)) },
    nodes: [
      node("Expand", ["x", "n"], "e"),
      node(rng.pick(["RandomNormalLike", "Bernoulli"]), ["e"], "y"),
    ],
  }),
  wantedShape: (rng) => ({
    feeds: {
      n: tensorOf(
        "i64",
        [5000],
        BigInt64Array.from({ length: 5000 }, () => 1n),
      ),
      x: matrix(1),
    },
    nodes: [node("Expand", ["x", rng.pick(["n"])], "y")],
  }),
  ...{ loopPart, growingLoop, sequencePart, positions, signals, resized },
};

export const sizedMakers = Object.keys(makers);

export function sizedModel(rng: Rng, name = rng.pick(sizedMakers)): SizedModel {
  const { nodes, feeds, weights } = makers[name]!(rng);
  // Some values pass through an operator first, so that a program of its own computes them.
  const through = rng.integer(0, 3) === 0 ? "n" : undefined;
  const isThrough = through !== undefined && feeds[through]?.dtype === "i64";
  const before = isThrough ? [node("Add", ["n0", "zero"], "n")] : [];
  const entries = Object.entries(feeds).map(
    ([key, tensor]) => [isThrough && key === "n" ? "n0" : key, tensor] as const,
  );
  const inputs = entries.map(([key, t]) => ({
    name: key,
    dtype: t.dtype as DType,
    shape: t.shape.map((extent, axis) => (rng.integer(0, 7) === 0 ? `${key}${axis}` : extent)),
  }));
  const bytes = writeModel({
    opset: 20,
    inputs,
    outputs: [nodes.at(-1)!.outputs[0]!],
    weights: { ...weights, ...(isThrough && { zero: whole(0n) }) },
    nodes: [...before, ...nodes],
  });
  return { name, bytes, feeds: Object.fromEntries(entries) };
}

/** Of memory that programs for a size may hold: what they refuse is beyond it. */
const limits = { programs: 2, bytes: 2 ** 27 };

export function runTimeSizes(rng: Rng): Finding {
  const { bytes, feeds } = sizedModel(rng);
  const loaded = tryLoad(bytes, { target: "wasm", threads: 1, specialise: limits });
  if (!loaded.ok) return judge(loaded);
  const finding = judge(loaded.value.tryRun(feeds));
  void loaded.value.dispose();
  return finding;
}
