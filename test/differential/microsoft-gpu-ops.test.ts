/**
 * Operators of com.microsoft that onnxruntime has for GPUs alone: oracle and WebAssembly against their
 * documented formulas on plain arrays.
 */
import { expect, test } from "vitest";
import { worstDifference } from "../../bench/sessions/compare.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import type { Tensors } from "../../bench/sessions/session.ts";
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import { type NodeSpec, tensorOf, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
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
