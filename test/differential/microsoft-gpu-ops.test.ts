/**
 * Operators of com.microsoft that onnxruntime has for GPUs alone, or in types that the peers do not carry:
 * oracle and WebAssembly against their documented formulas on plain arrays.
 */
import { expect, test } from "vitest";
import { worstDifference } from "../../bench/sessions/compare.ts";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import type { Tensors } from "../../bench/sessions/session.ts";
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { type NodeSpec, tensorOf, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { refTensor, type Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

const rng = new Rng(7);
const normals = (count: number) => Float32Array.from({ length: count }, () => rng.normal());
const f32 = (data: Float32Array, ...dims: number[]) => ({ type: "float32", data, dims }) as const;

interface Case {
  readonly node: Pick<NodeSpec, "op" | "attributes">;
  readonly inputs: Tensors;
  readonly weights?: Readonly<Record<string, Tensor>>;
  /** Operands in order: inputs and weights by name. */
  readonly order: readonly string[];
  readonly expected: Tensors;
}

async function check({ node, inputs, weights = {}, order, expected }: Case): Promise<void> {
  const names = Object.keys(expected);
  const bytes = writeModel({
    opset: 17,
    domains: { "com.microsoft": 1 },
    inputs: Object.entries(inputs).map(([name, t]) => ({ name, dtype: "f32", shape: t.dims })),
    weights,
    outputs: names,
    nodes: [{ ...node, domain: "com.microsoft", inputs: order, outputs: names }],
  });
  for (const runtime of [oracleRuntime, wavetileRuntime("wasm", 1)]) {
    const session = await runtime.open(bytes);
    const found = await session.run(inputs);
    await session.release();
    expect(worstDifference(found, expected)).toBeLessThan(2e-5);
  }
}

/** The published function of T5, for one distance. */
function bucket(offset: number, both: boolean, count: number, most: number): number {
  let [first, side, distance] = [0, count, Math.max(0, -offset)];
  if (both) {
    side = count / 2;
    if (offset > 0) first = side;
    distance = Math.abs(offset);
  }
  const exact = Math.floor(side / 2);
  if (distance < exact) return first + distance;
  const grown = (Math.log(distance / exact) / Math.log(most / exact)) * (side - exact);
  return first + Math.min(exact + Math.floor(grown), side - 1);
}

test.each([
  { heads: 3, count: 8, most: 20, both: true, length: 30 },
  { heads: 2, count: 6, most: 11, both: false, length: 17 },
])("RelativePositionBias $count buckets to $most", async ({ heads, count, most, both, length }) => {
  const table = normals(heads * count);
  const expected = new Float32Array(heads * length * length);
  for (let h = 0; h < heads; h++)
    for (let q = 0; q < length; q++)
      for (let k = 0; k < length; k++)
        expected[(h * length + q) * length + k] =
          table[h * count + bucket(k - q, both, count, most)]!;
  const extent = tensorOf("i64", [1], BigInt64Array.of(BigInt(length)));
  await check({
    node: {
      op: "RelativePositionBias",
      attributes: { max_distance: BigInt(most), is_bidirectional: both ? 1n : 0n },
    },
    inputs: { table: f32(table, count, heads) },
    weights: { length: extent },
    order: ["table", "length", "length"],
    expected: { y: f32(expected, 1, heads, length, length) },
  });
});

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

test("GatedRelativePositionBias", async () => {
  const [b, s, heads, d, width] = [2, 3, 2, 4, 6] as const;
  const [layer, queryBias] = [normals(b * s * heads * d), normals(heads * d)];
  const [bias, weight, shift] = [normals(heads * s * s), normals(d * width), normals(width)];
  const scale = normals(heads);
  const expected = new Float32Array(b * heads * s * s);
  for (let at = 0; at < b * heads * s; at++) {
    const [n, h, q] = [Math.floor(at / (heads * s)), Math.floor(at / s) % heads, at % s];
    const raised = Array.from({ length: width }, (_, c) => {
      let sum = shift[c]!;
      for (let i = 0; i < d; i++) {
        const x = layer[((n * s + q) * heads + h) * d + i]! + queryBias[h * d + i]!;
        sum += x * weight[i * width + c]!;
      }
      return sum;
    });
    const half = (from: number) => raised.slice(from, from + width / 2).reduce((x, y) => x + y);
    const [update, reset] = [sigmoid(half(0)), sigmoid(half(width / 2))];
    const factor = update * (reset * scale[h]! - 1) + 2;
    for (let k = 0; k < s; k++) expected[at * s + k] = factor * bias[(h * s + q) * s + k]!;
  }
  await check({
    node: { op: "GatedRelativePositionBias", attributes: { num_heads: BigInt(heads) } },
    inputs: {
      layer: f32(layer, b, s, heads * d),
      queryBias: f32(queryBias, heads * d),
      bias: f32(bias, 1, heads, s, s),
      weight: f32(weight, d, width),
      shift: f32(shift, width),
      scale: f32(scale, 1, heads, 1, 1),
    },
    order: ["layer", "queryBias", "bias", "weight", "shift", "scale"],
    expected: { y: f32(expected, b, heads, s, s) },
  });
});

test.each([true, false])("SkipGroupNorm, a skip for each channel alone: %s", async (short) => {
  const [n, h, w, c, groups] = [2, 3, 4, 6, 3] as const;
  const count = n * h * w * c;
  const [x, skip] = [normals(count), normals(short ? n * c : count)];
  const [gamma, beta, bias] = [normals(c), normals(c), normals(c)];
  const sum = x.map((v, i) => {
    const place = short ? Math.floor(i / (h * w * c)) * c + (i % c) : i;
    return v + skip[place]! + bias[i % c]!;
  });
  const size = c / groups;
  const normed = sum.map((v, i) => {
    const [image, group] = [Math.floor(i / (h * w * c)), Math.floor((i % c) / size)];
    const own = [...sum].filter((_, j) => {
      return Math.floor(j / (h * w * c)) === image && Math.floor((j % c) / size) === group;
    });
    const mean = own.reduce((a, b) => a + b) / own.length;
    const variance = own.reduce((a, b) => a + (b - mean) ** 2, 0) / own.length;
    const y = ((v - mean) / Math.sqrt(variance + 1e-5)) * gamma[i % c]! + beta[i % c]!;
    return y * sigmoid(y);
  });
  await check({
    node: { op: "SkipGroupNorm", attributes: { groups: BigInt(groups), activation: 1n } },
    inputs: {
      x: f32(x, n, h, w, c),
      gamma: f32(gamma, c),
      beta: f32(beta, c),
      skip: short ? f32(skip, n, c) : f32(skip, n, h, w, c),
      bias: f32(bias, c),
    },
    order: ["x", "gamma", "beta", "skip", "bias"],
    expected: { y: f32(normed, n, h, w, c), sum: f32(sum, n, h, w, c) },
  });
});

/** The error function by its series, good to the digits of f32 below 4. */
function erf(x: number): number {
  let [term, sum] = [x, x];
  for (let n = 1; n < 120; n++) {
    term *= -(x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
const gelu = (x: number) => 0.5 * x * (1 + erf(x / Math.SQRT2));
const fastGelu = (x: number) =>
  0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

test("BiasSplitGelu", async () => {
  const [rows, width] = [6, 5] as const;
  const [x, bias] = [normals(rows * 2 * width), normals(2 * width)];
  const at = (row: number, i: number) => x[row * 2 * width + i]! + bias[i]!;
  const expected = Float32Array.from({ length: rows * width }, (_, i) => {
    const [row, column] = [Math.floor(i / width), i % width];
    return at(row, column) * gelu(at(row, width + column));
  });
  await check({
    node: { op: "BiasSplitGelu" },
    inputs: { x: f32(x, 2, 3, 2 * width), bias: f32(bias, 2 * width) },
    order: ["x", "bias"],
    expected: { y: f32(expected, 2, 3, width) },
  });
});

test("BiasSoftmax with one bias for all heads", async () => {
  const [b, h, s] = [2, 3, 4] as const;
  const [x, bias] = [normals(b * h * s * s), normals(b * s * s)];
  const expected = new Float32Array(x.length);
  for (let row = 0; row < b * h * s; row++) {
    const [n, q] = [Math.floor(row / (h * s)), row % s];
    const sums = Array.from({ length: s }, (_, k) =>
      Math.exp(x[row * s + k]! + bias[(n * s + q) * s + k]!),
    );
    const total = sums.reduce((a, c) => a + c);
    for (let k = 0; k < s; k++) expected[row * s + k] = sums[k]! / total;
  }
  await check({
    node: { op: "BiasSoftmax", attributes: { axis: 3n, is_inner_broadcast: 1n } },
    inputs: { x: f32(x, b, h, s, s), bias: f32(bias, b, 1, s, s) },
    order: ["x", "bias"],
    expected: { y: f32(expected, b, h, s, s) },
  });
});

test("GemmFastGelu", async () => {
  const [m, k, n] = [4, 7, 3] as const;
  const [a, w, bias] = [normals(m * k), normals(k * n), normals(n)];
  const expected = Float32Array.from({ length: m * n }, (_, i) => {
    const [row, column] = [Math.floor(i / n), i % n];
    let sum = bias[column]!;
    for (let d = 0; d < k; d++) sum += a[row * k + d]! * w[d * n + column]!;
    return fastGelu(sum);
  });
  await check({
    node: { op: "GemmFastGelu" },
    inputs: { a: f32(a, m, k), w: f32(w, k, n), bias: f32(bias, n) },
    order: ["a", "w", "bias"],
    expected: { y: f32(expected, m, n) },
  });
});

test.each(["ComplexMul", "ComplexMulConj"])("%s", async (op) => {
  const count = 6;
  const [a, b] = [normals(2 * count), normals(2 * count)];
  const sign = op === "ComplexMul" ? 1 : -1;
  const expected = Float32Array.from({ length: 2 * count }, (_, i) => {
    const at = i - (i % 2);
    const [re, im, c, d] = [a[at]!, a[at + 1]!, b[at]!, sign * b[at + 1]!];
    return i % 2 === 0 ? re * c - im * d : re * d + im * c;
  });
  await check({
    node: { op },
    inputs: { a: f32(a, 2, 3, 2), b: f32(b, 2, 3, 2) },
    order: ["a", "b"],
    expected: { y: f32(expected, 2, 3, 2) },
  });
});

test("BiasDropout of a model that is used adds, and drops nothing", async () => {
  const [x, bias, rest] = [normals(12), normals(4), normals(12)];
  const expected = x.map((v, i) => v + bias[i % 4]! + rest[i]!);
  await check({
    node: { op: "BiasDropout" },
    inputs: { x: f32(x, 3, 4), bias: f32(bias, 4), rest: f32(rest, 3, 4) },
    order: ["x", "bias", "rest"],
    expected: { y: f32(expected, 3, 4) },
  });
});

test("MatMulInteger16 sums products of 16 bits in 32", () => {
  const value = (name: string, shape: number[]) => ({ name, dtype: "i16", shape }) as const;
  const bytes = writeModel({
    opset: 17,
    domains: { "com.microsoft": 1 },
    inputs: [value("a", [2, 3]), value("b", [3, 1])],
    outputs: ["y"],
    nodes: [{ op: "MatMulInteger16", domain: "com.microsoft", inputs: ["a", "b"], outputs: ["y"] }],
  });
  const { graph, weights } = unwrap(importOnnx(bytes));
  const a = refTensor("i16", [2, 3], [30000, -30000, 7, 1, 2, 3]);
  const b = refTensor("i16", [3, 1], [30000, 30000, -5]);
  const [y] = unwrap(runGraph(graph, [a, b], weights));
  expect([y!.dtype, ...y!.data]).toEqual(["i32", -35, 90000 - 15]);
});

test.each(["BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"])(
  "%s is refused with what to export instead (ONX009)",
  (op) => {
    const bytes = writeModel({
      opset: 17,
      domains: { "com.microsoft": 1 },
      inputs: [{ name: "ids", dtype: "i32", shape: [1, 4] }],
      outputs: ["y"],
      nodes: [{ op, domain: "com.microsoft", inputs: ["ids"], outputs: ["y"] }],
    });
    const found = importOnnx(bytes);
    expect(found.ok ? [] : found.diagnostics.map((d) => [d.code, d.help])).toEqual([
      ["ONX009", expect.stringMatching(/export the decoder alone/)],
    ]);
  },
);
