/** Numbers of a model that would size tables and copies at import: refused before memory is asked for. */
import { describe, expect, it } from "vitest";
import type { DType } from "../../../semantics/dtype.ts";
import { fromRef, refTensor, type Tensor } from "../../../semantics/tensor.ts";
import { type ModelSpec, type NodeSpec, type ValueSpec, writeModel } from "../model-writer.ts";
import { importOnnx } from "./import-model.ts";

const f32 = (name: string, ...shape: readonly number[]): ValueSpec => ({
  name,
  dtype: "f32",
  shape,
});

function constant(dtype: DType, shape: readonly number[], values: readonly number[]): Tensor {
  return fromRef(refTensor(dtype, shape, values));
}

const scalars = (values: Readonly<Record<string, number>>, dtype: DType) =>
  Object.fromEntries(Object.entries(values).map(([n, v]) => [n, constant(dtype, [], [v])]));

interface Attack extends Partial<ModelSpec> {
  readonly node: NodeSpec;
}

const ml = (op: string, attributes: NodeSpec["attributes"]): NodeSpec => ({
  domain: "ai.onnx.ml",
  op,
  inputs: ["x"],
  outputs: ["y"],
  ...(attributes && { attributes }),
});
const microsoft = (op: string, inputs: readonly string[], attributes = {}): NodeSpec => ({
  domain: "com.microsoft",
  op,
  inputs,
  outputs: ["y"],
  attributes,
});
const split = (count: bigint): Attack => ({
  inputs: [f32("x", 2, 4)],
  node: { op: "Split", inputs: ["x"], outputs: ["y"], attributes: { num_outputs: count } },
});
const mel = (low: number, rate: number): Attack => ({
  weights: {
    ...scalars({ bins: 8, length: 16, rate }, "i64"),
    ...scalars({ low, high: 8000 }, "f32"),
  },
  node: {
    op: "MelWeightMatrix",
    inputs: ["bins", "length", "rate", "low", "high"],
    outputs: ["y"],
  },
});
const blocks = (layouts: number, width: number): Attack => ({
  inputs: [f32("x", 1, 1, 16)],
  weights: {
    ends: constant("i32", [layouts, width], new Array<number>(layouts * width).fill(0)),
    columns: constant("i32", [layouts, 1], new Array<number>(layouts).fill(0)),
    lengths: constant("i32", [1], [1]),
  },
  node: microsoft(
    "SparseAttention",
    ["x", "", "", "", "", "ends", "columns", "lengths", "lengths"],
    { num_heads: 1n, kv_num_heads: 1n, sparse_block_size: 16n },
  ),
});
const scanBody = {
  inputs: [f32("e", 4)],
  outputs: ["o"],
  nodes: [{ op: "Neg", inputs: ["e"], outputs: ["o"] }],
};

const padded = (mode: string, extent: number, ...pads: readonly number[]): Attack => ({
  inputs: [f32("x", extent)],
  weights: { pads: constant("i64", [2], pads) },
  node: { op: "Pad", inputs: ["x", "pads"], outputs: ["y"], attributes: { mode } },
});

const attacks: Readonly<Record<string, Attack>> = {
  "a wrap around nothing": padded("wrap", 3, -3, 5),
  "a wrap of what is left of less than nothing": padded("wrap", 3, -4, 5),
  "an edge of nothing": padded("edge", 0, 2, 0),
  "a reflection of nothing": padded("reflect", 0, 2, 0),
  "Split into a billion parts": split(1_000_000_000n),
  "Split into no parts": split(0n),
  "Split into fewer than none": split(-4n),
  "a filter bank of 2^40 weights": {
    weights: {
      ...scalars({ bins: 2 ** 20, length: 2 ** 21, rate: 16000 }, "i64"),
      ...scalars({ low: 0, high: 8000 }, "f32"),
    },
    node: mel(0, 1).node,
  },
  "a filter bank below all bins": mel(-1e30, 16000),
  "a filter bank of no rate": mel(100, 0),
  "n-grams in far columns": {
    inputs: [{ name: "x", dtype: "i64", shape: [4] }],
    node: {
      op: "TfIdfVectorizer",
      inputs: ["x"],
      outputs: ["y"],
      attributes: {
        mode: "TF",
        min_gram_length: 1n,
        max_gram_length: 1n,
        max_skip_count: 0n,
        ngram_counts: [0n],
        ngram_indexes: Array.from({ length: 1000 }, (_, i) => (i === 0 ? 2n ** 24n - 1n : 0n)),
        pool_int64s: Array.from({ length: 1000 }, (_, i) => BigInt(i)),
      },
    },
  },
  "n-grams with a trillion skips": {
    inputs: [{ name: "x", dtype: "i64", shape: [2 ** 30] }],
    node: {
      op: "TfIdfVectorizer",
      inputs: ["x"],
      outputs: ["y"],
      attributes: {
        mode: "TF",
        min_gram_length: 2n,
        max_gram_length: 2n,
        max_skip_count: 2n ** 40n,
        ngram_counts: [0n, 0n],
        ngram_indexes: [0n],
        pool_int64s: [1n, 2n],
      },
    },
  },
  "windows of half an axis of 2^20": {
    inputs: [f32("x", 2 ** 20)],
    node: microsoft("UnfoldTensor", ["x"], { dim: 0n, size: 2n ** 19n, step: 1n }),
  },
  "machines of huge and of negative counts": {
    inputs: [f32("x", 2, 1)],
    node: ml("SVMClassifier", {
      vectors_per_class: [2n ** 32n, -(2n ** 32n) + 2n],
      classlabels_ints: [0n, 1n],
      coefficients: [1, 1],
      support_vectors: [1, 1],
      rho: [1],
    }),
  },
  "machines of thousands of classes": {
    inputs: [f32("x", 2, 1)],
    node: ml("SVMClassifier", {
      vectors_per_class: new Array<bigint>(4000).fill(1n),
      classlabels_ints: Array.from({ length: 4000 }, (_, i) => BigInt(i)),
      coefficients: [1, 1],
      support_vectors: [1, 1],
      rho: [1],
    }),
  },
  "a thousand layouts of 4095 blocks": blocks(100, 4096),
  "a Scan of a billion sequences": {
    inputs: [f32("x", 2, 4)],
    node: {
      op: "Scan",
      inputs: ["x"],
      outputs: ["y"],
      attributes: { num_scan_inputs: 1_000_000_000n, body: scanBody },
    },
  },
  "a Scan of a billion sequences, version 8": {
    opset: 8,
    inputs: [f32("x", 1, 2, 4)],
    node: {
      op: "Scan",
      inputs: ["", "x"],
      outputs: ["y"],
      attributes: { num_scan_inputs: 1_000_000_000n, body: scanBody },
    },
  },
};

describe("a model asks for", () => {
  it.each(Object.entries(attacks))("%s, and is refused", (_, { node, ...rest }) => {
    const bytes = writeModel({
      opset: 18,
      domains: { "com.microsoft": 1, "ai.onnx.ml": 3 },
      inputs: [],
      outputs: ["y"],
      nodes: [node],
      ...rest,
    });
    const before = process.cpuUsage();
    const found = importOnnx(bytes);
    const { user } = process.cpuUsage(before);
    expect(found.ok ? ["imported"] : found.diagnostics.map((d) => d.code)).toEqual([
      expect.stringMatching(/^(ONX00[89]|SHP004)$/),
    ]);
    expect(user).toBeLessThan(2e6);
  });

  it("a scale of 2^28 ones, which stays one number", () => {
    const bytes = writeModel({
      opset: 18,
      domains: { "com.microsoft": 1 },
      inputs: [f32("x", 1, 1, 2 ** 28)],
      outputs: ["y"],
      nodes: [microsoft("BranchwiseRMSNorm", ["x"], { num_branches: 1n })],
    });
    const found = importOnnx(bytes);
    if (!found.ok) throw new Error(JSON.stringify(found.diagnostics));
    expect(found.value.graph.nodes.map((n) => n.op)).toContain("broadcast");
  });
});

describe("constants that are computed in every run", () => {
  const big = (nodes: readonly NodeSpec[], weights: ModelSpec["weights"], ...outputs: string[]) =>
    importOnnx(
      writeModel({ opset: 18, inputs: [f32("x", 2, 4)], outputs, nodes, weights: weights ?? {} }),
    );
  const filled = (...extents: readonly number[]) => ({
    one: constant("f32", [1], [1]),
    zero: constant("i64", [], [0]),
    shape: constant("i64", [extents.length], extents),
  });
  const expanded: NodeSpec = { op: "Expand", inputs: ["one", "shape"], outputs: ["e"] };
  const sum: NodeSpec[] = [
    { op: "ReduceSum", inputs: ["e"], outputs: ["r"] },
    { op: "Add", inputs: ["x", "r"], outputs: ["y"] },
  ];

  it.each([
    ["elements", [expanded, ...sum], [1e10]],
    ["running sums", [expanded, { op: "CumSum", inputs: ["e", "zero"], outputs: ["r"] }], [3e8]],
    ["a product", [expanded, { op: "MatMul", inputs: ["e", "e"], outputs: ["r"] }], [8000, 8000]],
  ] as const)("are refused where they are too many %s (ONX019)", (_, nodes, extents) => {
    const found = big(nodes, filled(...extents), nodes.length > 2 ? "y" : "r");
    expect(found).toMatchObject({ ok: false, diagnostics: [{ code: "ONX019" }] });
  });

  it("may be many, or as many as weights explain, or what nothing reads", () => {
    expect(big([expanded, ...sum], filled(2 ** 27), "y").ok).toBe(true);
    expect(
      big([expanded, { op: "Relu", inputs: ["x"], outputs: ["y"] }], filled(1e10), "y").ok,
    ).toBe(true);
    const weights = {
      ...filled(2 ** 29 - 2 ** 26),
      w: constant("f32", [2 ** 24], new Array(2 ** 24).fill(1)),
    };
    const more: NodeSpec[] = [
      { op: "ReduceSum", inputs: ["w"], outputs: ["s"], attributes: { keepdims: 0n } },
      { op: "Add", inputs: ["y", "s"], outputs: ["z"] },
    ];
    expect(big([expanded, ...sum, ...more], weights, "z").ok).toBe(true);
  });
});

/** Nearly five million nodes of eleven classes took minutes to be refused. */
it.each([
  [1, "TreeEnsembleClassifier", { nodes_nodeids: new Array<bigint>(2 ** 20).fill(0n) }],
  [
    5,
    "TreeEnsemble",
    {
      n_targets: 16n,
      nodes_modes: constant("u8", [2 ** 20], new Array<number>(2 ** 20).fill(9)),
      ...Object.fromEntries(
        ["featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs"].map((name) => [
          `nodes_${name}`,
          new Array<bigint>(2 ** 20).fill(0n),
        ]),
      ),
      nodes_splits: constant("f32", [2 ** 20], new Array<number>(2 ** 20).fill(0)),
      leaf_targetids: [0n],
      leaf_weights: constant("f32", [1], [1]),
    },
  ],
] as const)("a forest that is too large is not looked at (version %i)", (version, op, own) => {
  const labels = { classlabels_int64s: Array.from({ length: 17 }, (_, i) => BigInt(i)) };
  const attributes = version === 1 ? { ...own, ...labels } : own;
  const found = importOnnx(
    writeModel({
      opset: 18,
      domains: { "ai.onnx.ml": version },
      inputs: [f32("x", 1, 4)],
      outputs: ["y"],
      nodes: [ml(op, attributes)],
    }),
  );
  expect(found).toMatchObject({
    ok: false,
    diagnostics: [
      { code: "ONX009", message: expect.stringMatching(/^\d+ nodes of 1[67] numbers/) },
    ],
  });
});

describe("tensors of many axes", () => {
  const ofRank = (rank: number) => {
    const shape = new Array<number>(rank).fill(1);
    const x = importOnnx(
      writeModel({
        opset: 18,
        inputs: [f32("x", ...shape)],
        outputs: ["y"],
        nodes: [{ op: "Relu", inputs: ["x"], outputs: ["y"] }],
      }),
    );
    const w = importOnnx(
      writeModel({
        opset: 18,
        inputs: [f32("x", 2)],
        outputs: ["y"],
        weights: { w: constant("f32", shape, [1]) },
        nodes: [
          { op: "ReduceSum", inputs: ["w"], outputs: ["s"], attributes: { keepdims: 0n } },
          { op: "Add", inputs: ["x", "s"], outputs: ["y"] },
        ],
      }),
    );
    return [x, w].map((m) => (m.ok ? "imported" : m.diagnostics[0]!.code));
  };

  it("are imported up to 256 of them, and refused beyond (ONX004)", () => {
    expect(ofRank(256)).toEqual(["imported", "imported"]);
    expect(ofRank(257)).toEqual(["ONX004", "ONX004"]);
    expect(ofRank(3000)).toEqual(["ONX004", "ONX004"]);
  });
});

it("joins very many operands in groups, in their order", () => {
  const names = Array.from({ length: 1100 }, (_, i) => `v${i}`);
  const nodes: NodeSpec[] = [
    { op: "Concat", inputs: names, outputs: ["y"], attributes: { axis: 0n } },
  ];
  const inputs = names.map((name) => f32(name, 1));
  const found = importOnnx(writeModel({ opset: 18, inputs, outputs: ["y"], nodes }));
  if (!found.ok) throw new Error(JSON.stringify(found.diagnostics));
  const { graph } = found.value;
  const groups = graph.nodes.filter((n) => n.op === "concat");
  expect(Math.max(...groups.map((n) => n.inputs.length))).toBeLessThanOrEqual(32);
  const madeBy = new Map(groups.map((n) => [n.outputs[0]!, n.inputs]));
  const leaves = (id: number): readonly number[] => madeBy.get(id)?.flatMap(leaves) ?? [id];
  expect(leaves(graph.outputs[0]!)).toEqual(graph.inputs);
});
