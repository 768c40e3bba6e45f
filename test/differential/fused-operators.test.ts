/**
 * Operators of com.microsoft that onnxruntime has for GPUs and browsers alone: by the oracle the same as the
 * model written in operators that others judge.
 */
import { expect, test } from "vitest";
import { worstDifference } from "../../bench/sessions/compare.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import { fromStored } from "../../bench/sessions/stored-tensors.ts";
import { load } from "../../src/commands/library/load.ts";
import { tensor } from "../../src/commands/library/tensor.ts";
import { type NodeSpec, type ValueSpec, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { randomTensor, type Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

interface Compared {
  readonly inputs: Readonly<Record<string, Tensor>>;
  readonly weights?: Readonly<Record<string, Tensor>>;
  readonly fused: readonly NodeSpec[];
  readonly plain: readonly NodeSpec[];
  readonly outputs?: readonly string[];
}

async function check({ inputs, weights = {}, fused, plain, outputs = ["y"] }: Compared) {
  const feeds = Object.entries(inputs).map(([name, t]) => [name, fromStored(t)] as const);
  const [ours, theirs] = await Promise.all(
    [fused, plain].map(async (nodes) => {
      const ports = Object.entries(inputs).map(
        ([name, { dtype, shape }]): ValueSpec => ({ name, dtype, shape }),
      );
      const domains = { "com.microsoft": 1 };
      const bytes = writeModel({ opset: 17, domains, inputs: ports, outputs, weights, nodes });
      const session = await oracleRuntime.open(bytes);
      return session.run(Object.fromEntries(feeds));
    }),
  );
  expect(worstDifference(ours!, theirs!)).toBeLessThan(2e-5);
}

const rng = new Rng(11);
const f32 = (...shape: number[]) => randomTensor("f32", shape, rng);
const ms = (op: string, inputs: string[], outputs: string[], attributes = {}): NodeSpec => ({
  op,
  domain: "com.microsoft",
  inputs,
  outputs,
  attributes,
});
const onnx = (op: string, inputs: string[], outputs: string[], attributes = {}): NodeSpec => ({
  op,
  inputs,
  outputs,
  attributes,
});
const scalar = (value: number) => tensor("f32", [], [value]);

test.each([true, false])("SwiGLU with limits, both halves in one operand: %s", async (joined) => {
  const halves = joined ? { x: f32(3, 8) } : { g: f32(3, 4), u: f32(3, 4) };
  const attributes = { activation_alpha: 1.7, activation_beta: 1, limit: 0.8 };
  await check({
    inputs: halves,
    weights: { low: scalar(-0.8), high: scalar(0.8), alpha: scalar(1.7), one: scalar(1) },
    fused: [ms("SwiGLU", joined ? ["x"] : ["g", "u"], ["y"], attributes)],
    plain: [
      ...(joined ? [onnx("Split", ["x"], ["g", "u"], { axis: -1n })] : []),
      onnx("Min", ["g", "high"], ["gate"]),
      onnx("Clip", ["u", "low", "high"], ["limited"]),
      onnx("Mul", ["gate", "alpha"], ["scaled"]),
      onnx("Sigmoid", ["scaled"], ["open"]),
      onnx("Mul", ["gate", "open"], ["left"]),
      onnx("Add", ["limited", "one"], ["right"]),
      onnx("Mul", ["left", "right"], ["y"]),
    ],
  });
});

test("GemmaRotaryEmbedding", async () => {
  const [b, s, h, d] = [2, 3, 2, 4] as const;
  const states = {
    q: f32(b, h, s, d),
    qr: f32(b, h, s, d),
    k: f32(b, h, s, d),
    kr: f32(b, h, s, d),
  };
  const turned = (x: string, y: string): readonly NodeSpec[] => [
    onnx("Mul", [x, "c"], [`${y}1`]),
    onnx("Mul", [`${x}r`, "s"], [`${y}2`]),
    onnx("Add", [`${y}1`, `${y}2`], [y]),
  ];
  await check({
    inputs: { angles: f32(b, s, d), ...states },
    weights: { axis: tensor("i64", [1], [1n]) },
    outputs: ["y", "z"],
    fused: [ms("GemmaRotaryEmbedding", ["angles", "q", "qr", "k", "kr"], ["y", "z"])],
    plain: [
      onnx("Sin", ["angles"], ["sine"]),
      onnx("Cos", ["angles"], ["cosine"]),
      onnx("Unsqueeze", ["sine", "axis"], ["s"]),
      onnx("Unsqueeze", ["cosine", "axis"], ["c"]),
      ...turned("q", "y"),
      ...turned("k", "z"),
    ],
  });
});

test("GatedAdd whose gate is projected", async () => {
  await check({
    inputs: { x: f32(2, 3, 5), v: f32(2, 3, 5), g: f32(2, 3, 4) },
    weights: { w: f32(4, 1) },
    fused: [ms("GatedAdd", ["x", "v", "g", "w"], ["y"])],
    plain: [
      onnx("MatMul", ["g", "w"], ["p"]),
      onnx("Sigmoid", ["p"], ["s"]),
      onnx("Mul", ["v", "s"], ["t"]),
      onnx("Add", ["x", "t"], ["y"]),
    ],
  });
});

test.each(["NhwcConv", "NhwcFusedConv"])("%s", async (op) => {
  const fused = op === "NhwcFusedConv";
  const window = { pads: [1n, 0n, 1n, 0n], group: 2n };
  const last = { perm: [0n, 2n, 3n, 1n] };
  const first = { perm: [0n, 3n, 1n, 2n] };
  const weight = fused ? f32(6, 2, 3, 2) : f32(6, 3, 2, 2);
  await check({
    inputs: { x: f32(2, 5, 6, 4), ...(fused && { z: f32(2, 5, 5, 6) }) },
    weights: { w: weight, b: f32(6) },
    fused: [
      ms(op, ["x", "w", "b", ...(fused ? ["z"] : [])], ["y"], {
        ...window,
        ...(fused && { activation: "Relu" }),
      }),
    ],
    plain: [
      onnx("Transpose", ["x"], ["t"], first),
      ...(fused ? [] : [onnx("Transpose", ["w"], ["wt"], first)]),
      onnx("Conv", ["t", fused ? "w" : "wt", "b"], ["c"], window),
      onnx("Transpose", ["c"], [fused ? "l" : "y"], last),
      ...(fused ? [onnx("Add", ["l", "z"], ["a"]), onnx("Relu", ["a"], ["y"])] : []),
    ],
  });
});

const packed = (n: number) =>
  tensor(
    "u8",
    [n, 2, 16],
    Uint8Array.from({ length: n * 32 }, () => rng.integer(0, 255)),
  );
const product = { K: 64n, bits: 4n, block_size: 32n };

test.each([true, false])("MatMulNBitsMlp, its norm of a sum: %s", async (skips) => {
  const inputs = { x: f32(3, 64), ...(skips && { s: f32(3, 64) }) };
  const weights = {
    scale: f32(64),
    ...{ g: packed(8), gs: f32(8, 2), gb: f32(8), u: packed(8), us: f32(8, 2) },
  };
  const norm = skips
    ? ms("SkipSimplifiedLayerNormalization", ["x", "s", "scale"], ["n", "", "", "sum"])
    : onnx("SimplifiedLayerNormalization", ["x", "scale"], ["n"]);
  await check({
    inputs,
    weights,
    outputs: skips ? ["y", "sum"] : ["y"],
    fused: [
      ms(
        "MatMulNBitsMlp",
        ["x", skips ? "s" : "", "scale", "g", "gs", "gb", "u", "us"],
        skips ? ["y", "sum"] : ["y"],
        { ...product, N: 8n, activation: "silu" },
      ),
    ],
    plain: [
      norm,
      ms("MatMulNBits", ["n", "g", "gs", "", "", "gb"], ["gate"], { ...product, N: 8n }),
      ms("MatMulNBits", ["n", "u", "us"], ["up"], { ...product, N: 8n }),
      onnx("Sigmoid", ["gate"], ["open"]),
      onnx("Mul", ["gate", "open"], ["left"]),
      onnx("Mul", ["left", "up"], ["y"]),
    ],
  });
});

test("MatMulNBitsQkv", async () => {
  const weights = {
    scale: f32(64),
    ...{ q: packed(8), qs: f32(8, 2), k: packed(4), ks: f32(4, 2), kb: f32(4) },
    ...{ v: packed(4), vs: f32(4, 2) },
  };
  const operands = ["x", "", "scale", "q", "qs", "", "k", "ks", "kb", "v", "vs"];
  await check({
    inputs: { x: f32(3, 64) },
    weights,
    outputs: ["a", "b", "c"],
    fused: [ms("MatMulNBitsQkv", operands, ["a", "b", "c"], { ...product, Nq: 8n, Nkv: 4n })],
    plain: [
      onnx("SimplifiedLayerNormalization", ["x", "scale"], ["n"], { epsilon: 1e-6 }),
      ms("MatMulNBits", ["n", "q", "qs"], ["a"], { ...product, N: 8n }),
      ms("MatMulNBits", ["n", "k", "ks", "", "", "kb"], ["b"], { ...product, N: 4n }),
      ms("MatMulNBits", ["n", "v", "vs"], ["c"], { ...product, N: 4n }),
    ],
  });
});

const unpadded: readonly NodeSpec[] = [
  ms("RemovePadding", ["x", "counts"], ["tokens", "places", "sums", "longest"]),
];

test("attention over tokens without padding is that of the padded batch", async () => {
  const heads = { num_heads: 2n };
  const inputs = { x: f32(3, 4, 6), counts: tensor("i32", [3], Int32Array.of(1, 4, 2)) };
  await check({
    inputs,
    weights: { w: f32(6, 18), b: f32(18), bias: f32(1, 2, 4, 4) },
    outputs: ["y"],
    fused: [
      ...unpadded,
      ms("PackedAttention", ["tokens", "w", "b", "places", "sums", "bias"], ["t"], heads),
      ms("RestorePadding", ["t", "places"], ["y"]),
    ],
    plain: [
      ms("Attention", ["x", "w", "b", "counts", "", "bias"], ["all"], {
        ...heads,
        mask_filter_value: -1e9,
      }),
      ...unpadded,
      ms("RemovePadding", ["all", "counts"], ["t", "p2", "s2", "l2"]),
      ms("RestorePadding", ["t", "places"], ["y"]),
    ],
  });
});

test.each([true, false])("PackedMultiHeadAttention, operands in one: %s", async (joined) => {
  const counts = tensor("i32", [3], Int32Array.of(2, 3, 1));
  const parts = ["q", "k", "v"];
  const split = joined
    ? [
        onnx("Reshape", ["tokens", "shape"], ["packed"]),
        ms("PackedMultiHeadAttention", ["packed", "", "", "", "places", "sums"], ["t"], {
          num_heads: 2n,
        }),
      ]
    : [
        onnx("Split", ["tokens"], parts, { axis: 1n }),
        ms("PackedMultiHeadAttention", [...parts, "b", "places", "sums"], ["t"], {
          num_heads: 2n,
        }),
      ];
  const bare = joined
    ? [
        onnx("Reshape", ["x", "wide"], ["packed"]),
        ms("MultiHeadAttention", ["packed", "", "", "", "counts"], ["all"], {
          num_heads: 2n,
          mask_filter_value: -1e9,
        }),
      ]
    : [
        onnx("Split", ["x"], parts, { axis: 2n }),
        ms("MultiHeadAttention", [...parts, "b", "counts"], ["all"], {
          num_heads: 2n,
          mask_filter_value: -1e9,
        }),
      ];
  await check({
    inputs: { x: f32(3, 3, 12), counts },
    weights: {
      b: f32(12),
      shape: tensor("i64", [4], [-1n, 2n, 3n, 2n]),
      wide: tensor("i64", [5], [3n, 3n, 2n, 3n, 2n]),
    },
    outputs: ["y"],
    fused: [...unpadded, ...split, ms("RestorePadding", ["t", "places"], ["y"])],
    plain: [
      ...bare,
      ms("RemovePadding", ["all", "counts"], ["t", "places", "sums", "longest"]),
      ms("RestorePadding", ["t", "places"], ["y"]),
    ],
  });
});

test("RemovePadding and RestorePadding are run by load, in stages", async () => {
  const bytes = writeModel({
    opset: 17,
    domains: { "com.microsoft": 1 },
    inputs: [
      { name: "x", dtype: "f32", shape: [3, 4, 1] },
      { name: "counts", dtype: "i32", shape: [3] },
    ],
    outputs: ["tokens", "places", "sums", "longest", "back"],
    weights: {},
    nodes: [...unpadded, ms("RestorePadding", ["tokens", "places"], ["back"])],
  });
  const model = await load(bytes, { threads: 1 });
  const found = model.run({
    x: tensor(
      "f32",
      [3, 4, 1],
      Float32Array.from({ length: 12 }, (_, i) => i),
    ),
    counts: tensor("i32", [3], Int32Array.of(1, 2, 4)),
  });
  await model.dispose();
  const of = (name: string) => Array.from(found[name]!.data as Int32Array);
  expect(of("tokens")).toEqual([0, 4, 5, 8, 9, 10, 11]);
  expect(of("back")).toEqual([0, 0, 0, 0, 4, 5, 0, 0, 8, 9, 10, 11]);
  expect(of("places")).toEqual([0, 4, 5, 8, 9, 10, 11, 1, 2, 3, 6, 7]);
  expect([of("sums"), of("longest")]).toEqual([[0, 1, 3, 7], [4]]);
});

test("Rfft along two axes, and back", async () => {
  const ahead = (axis: bigint, onesided: bigint) => ({ axis, onesided });
  await check({
    inputs: { x: f32(2, 5, 6) },
    weights: { axes: tensor("i64", [1], [3n]) },
    outputs: ["y", "z"],
    fused: [
      ms("Rfft", ["x"], ["y"], { signal_ndim: 2n, onesided: 1n, normalized: 0n }),
      ms("Irfft", ["y"], ["z"], { signal_ndim: 2n, onesided: 1n, normalized: 0n }),
    ],
    plain: [
      onnx("Unsqueeze", ["x", "axes"], ["pairs"]),
      onnx("DFT", ["pairs"], ["rows"], ahead(2n, 1n)),
      onnx("DFT", ["rows"], ["y"], ahead(1n, 0n)),
      onnx("Identity", ["x"], ["z"]),
    ],
  });
});

test("TorchEmbedding, IsAllFinite, FusedMatMulActivation", async () => {
  const product = { transB: 1n, alpha: 0.5, activation: "LeakyRelu", activation_alpha: 0.3 };
  const weights = {
    table: f32(5, 3),
    half: scalar(0.5),
    infinite: tensor("f32", [2], [1, Infinity]),
    no: tensor("f32", [], [0]),
    yes: tensor("f32", [], [1]),
  };
  const cast = (x: string, y: string) => onnx("Cast", [x], [y], { to: 1n });
  await check({
    inputs: { ids: tensor("i64", [2, 2], [4n, 0n, 1n, 4n]), a: f32(2, 3) },
    weights,
    outputs: ["y", "f", "g", "h"],
    fused: [
      ms("TorchEmbedding", ["table", "ids"], ["e"]),
      ms("FusedMatMulActivation", ["e", "a"], ["y"], product),
      ms("IsAllFinite", ["a", "infinite"], ["bad"]),
      ms("IsAllFinite", ["a", "infinite"], ["numbers"], { isnan_only: 1n }),
      ms("IsAllFinite", ["a", "half"], ["good"]),
      cast("bad", "f"),
      cast("numbers", "g"),
      cast("good", "h"),
    ],
    plain: [
      onnx("Gather", ["table", "ids"], ["e"]),
      onnx("Transpose", ["a"], ["t"], { perm: [1n, 0n] }),
      onnx("MatMul", ["e", "t"], ["p"]),
      onnx("Mul", ["p", "half"], ["s"]),
      onnx("LeakyRelu", ["s"], ["y"], { alpha: 0.3 }),
      onnx("Identity", ["no"], ["f"]),
      onnx("Identity", ["yes"], ["g"]),
      onnx("Identity", ["yes"], ["h"]),
    ],
  });
});

test("ReduceSumInteger, MulInteger, QLinearReduceMean", async () => {
  const axes = { axes: [1n], keepdims: 0n };
  const wide = (x: string, y: string, to = 6n) => onnx("Cast", [x], [y], { to });
  await check({
    inputs: {
      x: randomTensor("u8", [3, 20], rng),
      a: randomTensor("i8", [3, 20], rng),
      b: randomTensor("i8", [20], rng),
    },
    weights: {
      three: tensor("i8", [], Int8Array.of(3)),
      three32: tensor("i32", [], Int32Array.of(3)),
      scale: scalar(0.05),
      less: scalar(0.02),
      zero: tensor("u8", [], Uint8Array.of(110)),
      axis: tensor("i64", [1], [1n]),
    },
    outputs: ["y", "z", "m"],
    fused: [
      ms("ReduceSumInteger", ["x"], ["sum"], axes),
      wide("sum", "y"),
      ms("MulInteger", ["a", "three", "b"], ["z"]),
      ms("QLinearReduceMean", ["x", "scale", "zero", "less", "zero"], ["mean"], axes),
      wide("mean", "m"),
    ],
    plain: [
      wide("x", "x32"),
      onnx("ReduceSum", ["x32", "axis"], ["y"], { keepdims: 0n }),
      wide("a", "a32"),
      wide("b", "b32"),
      onnx("Sub", ["a32", "three32"], ["moved"]),
      onnx("Mul", ["moved", "b32"], ["z"]),
      onnx("DequantizeLinear", ["x", "scale", "zero"], ["real"]),
      onnx("ReduceMean", ["real"], ["average"], axes),
      onnx("QuantizeLinear", ["average", "less", "zero"], ["rounded"]),
      wide("rounded", "m"),
    ],
  });
});

test("SparseAttention of sequences of several lengths is that of each", async () => {
  const attributes = { num_heads: 4n, kv_num_heads: 2n, sparse_block_size: 16n };
  const one = (i: number) => (name: string) => `${name}${i}`;
  const split = (name: string) => onnx("Split", [name], [`${name}0`, `${name}1`], { axis: 0n });
  const [ends, columns] = ["ends", "columns"];
  const parts = ["q", "k", "v", "past", "past_v"];
  await check({
    inputs: {
      q: f32(2, 1, 64),
      k: f32(2, 1, 32),
      v: f32(2, 1, 32),
      past: f32(2, 2, 32, 16),
      past_v: f32(2, 2, 32, 16),
    },
    weights: {
      ends: tensor("i32", [1, 3], Int32Array.of(0, 1, 2)),
      columns: tensor("i32", [1, 2], Int32Array.of(0, 1)),
      most: tensor("i32", [1], Int32Array.of(30)),
      filled: tensor("i32", [2], Int32Array.of(30, 10)),
      filled0: tensor("i32", [1], Int32Array.of(30)),
      filled1: tensor("i32", [1], Int32Array.of(10)),
    },
    outputs: ["y", "key", "value"],
    fused: [
      ms(
        "SparseAttention",
        [...parts, ends, columns, "most", "filled"],
        ["y", "key", "value"],
        attributes,
      ),
    ],
    plain: [
      ...parts.map(split),
      ...[0, 1].map((i) =>
        ms(
          "SparseAttention",
          [...parts.map(one(i)), ends, columns, one(i)("filled"), one(i)("filled")],
          ["y", "key", "value"].map(one(i)),
          attributes,
        ),
      ),
      ...["y", "key", "value"].map((name) =>
        onnx("Concat", [`${name}0`, `${name}1`], [name], { axis: 0n }),
      ),
    ],
  });
});
