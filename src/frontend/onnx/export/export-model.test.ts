import { describe, expect, test } from "vitest";
import { GraphBuilder } from "../../../graph/builder.ts";
import type { Graph, Model } from "../../../graph/graph.ts";
import { randomGraph } from "../../../graph/random-graph.ts";
import { tensorType } from "../../../graph/tensor-type.ts";
import { noWeights, runGraph } from "../../../interp/graph.ts";
import { dtypes } from "../../../semantics/dtype.ts";
import { add, evaluate, constant as index, mul } from "../../../semantics/index-expr.ts";
import {
  fromRef,
  numbersOf,
  type RefTensor,
  randomRef,
  refTensor,
  tensorBytes,
} from "../../../semantics/tensor.ts";
import { ok, type Result } from "../../../support/diagnostic.ts";
import { Rng } from "../../../support/rng.ts";
import { importOnnx } from "../import/import-model.ts";
import { readModelFile } from "../model-file.ts";
import { type ExportOptions, exportOnnx } from "./export-model.ts";

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map((d) => d.message).join("; "));
  return result.value;
}

function inputsOf(graph: Graph, symbols: ReadonlyMap<string, number>, seed: number): RefTensor[] {
  const rng = new Rng(seed);
  return graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    return randomRef(
      dtype,
      shape.map((d) => evaluate(d, symbols)),
      rng,
    );
  });
}

function importAgain(model: Model, options?: ExportOptions): Model {
  return unwrap(importOnnx(unwrap(exportOnnx(model, options)).bytes));
}

/** Written, read and computed: what the graph itself gives. */
function checkRoundTrip(graph: Graph, extent: number, seed: number): void {
  const inputs = inputsOf(graph, new Map([["N", extent]]), seed);
  const want = unwrap(runGraph(graph, inputs));
  const { graph: read, weights } = importAgain({ graph, weights: noWeights });
  const found = unwrap(runGraph(read, inputs, weights));
  for (const [i, expected] of want.entries()) {
    expect([found[i]!.dtype, found[i]!.shape]).toEqual([expected.dtype, expected.shape]);
    const isFloat = dtypes[expected.dtype].kind === "float";
    for (const [j, value] of [...expected.data].entries()) {
      const got = found[i]!.data[j]!;
      if (Object.is(got, value)) continue;
      const error = Math.abs(Number(got) - Number(value)) / Math.max(1, Math.abs(Number(value)));
      expect(error).toBeLessThanOrEqual(isFloat ? 1e-5 : 0);
    }
  }
}

test.each(Array.from({ length: 60 }, (_, seed) => seed))(
  "composites, branches and scans of random graph %i come back",
  (seed) => {
    const graph = randomGraph({ seed, nodes: 8, symbolic: seed % 2 === 1 });
    checkRoundTrip(graph, 1 + (seed % 5), seed);
  },
);

/** Convolutions with sums on top, of which only some are operands of Conv. */
function channelSumsOf(bias: readonly number[], extra?: "used twice" | "an output"): Graph {
  const b = new GraphBuilder("sums");
  const x = b.input("x", tensorType("f32", 2, 3, 5, 4));
  const w = b.input("w", tensorType("f32", 4, 3, 2, 1));
  const v = b.input("v", tensorType("f32", 4));
  const attrs = { strides: [1, 1], dilations: [1, 1], padLow: [0, 0], padHigh: [0, 0], groups: 1 };
  const c = b.node("convolution", [x, w], attrs);
  const y = b.add(b.node("reshape", [v], { shape: bias.map((n) => index(n)) }), c);
  if (extra === undefined) return b.finish([y]);
  return b.finish(extra === "an output" ? [y, c] : [b.apply("exp", c), y]);
}

const channelSumCases: readonly {
  readonly bias: readonly number[];
  readonly extra?: "used twice" | "an output";
}[] = [
  { bias: [4, 1, 1] },
  { bias: [1, 4, 1, 1] },
  { bias: [4, 1] },
  { bias: [4] },
  { bias: [4, 1, 1], extra: "used twice" },
  { bias: [4, 1, 1], extra: "an output" },
];

test.each(channelSumCases)("a sum of shape $bias on a convolution comes back ($extra)", (c) => {
  const { bias, extra } = c;
  const graph = channelSumsOf(bias, extra);
  const { bytes } = unwrap(exportOnnx({ graph, weights: noWeights }));
  const operators = unwrap(readModelFile(bytes)).graph!.node.map((n) => n.opType);
  const isOperand = bias.length > 2 && extra === undefined;
  if (isOperand) expect(operators).toEqual(["Conv"]);
  else expect(operators).toContain("Add");
  checkRoundTrip(graph, 1, 7);
});

/** Products of matrices, in any order of axes, with something added. */
const productCases: readonly {
  readonly product: string;
  readonly added?: readonly number[];
  readonly dtype?: "f16";
  readonly operators: readonly string[];
}[] = [
  { product: "i k, k j -> i j", operators: ["MatMul"] },
  { product: "i k, k j -> i j", added: [5], operators: ["Gemm"] },
  { product: "i k, j k -> i j", operators: ["Gemm"] },
  { product: "i k, j k -> i j", added: [5], operators: ["Gemm"] },
  { product: "k i, j k -> i j", added: [3, 1], operators: ["Gemm"] },
  { product: "k i, k j -> j i", added: [5, 3], operators: ["Gemm"] },
  { product: "i k, k j -> i j", added: [2, 3, 5], operators: ["MatMul", "Add"] },
  {
    product: "i k, j k -> i j",
    added: [5],
    dtype: "f16",
    operators: ["Transpose", "MatMul", "Add"],
  },
  { product: "i k, j k -> i", added: [3], operators: ["ReduceSum", "MatMul", "Add"] },
];

test.each(productCases)("$product with $added added is $operators", (c) => {
  const { product, added, dtype = "f32", operators } = c;
  const extents: Readonly<Record<string, number>> = { i: 3, j: 5, k: 4 };
  const b = new GraphBuilder("product");
  const [left, right] = product.split(" -> ")[0]!.split(", ");
  const operands = [left!, right!].map((labels, i) =>
    b.input(`x${i}`, tensorType(dtype, ...labels.split(" ").map((l) => extents[l]!))),
  );
  const summand = added && b.input("c", tensorType(dtype, ...added));
  const made = b.einsum(product, operands[0]!, operands[1]!);
  const y = summand === undefined ? made : b.add(summand, made);
  const graph = b.finish([y]);
  const { bytes } = unwrap(exportOnnx({ graph, weights: noWeights }));
  const found = unwrap(readModelFile(bytes)).graph!.node.map((n) => n.opType);
  expect(found).toEqual(expect.arrayContaining([...operators]));
  expect(found.includes("Gemm")).toBe(operators.includes("Gemm"));
  if (dtype !== "f16") checkRoundTrip(graph, 1, 3);
});

/** One op over one or two inputs of these shapes; N is 4. */
const calls: readonly (readonly [string, (b: GraphBuilder) => readonly number[]])[] = [
  [
    "diagonal",
    (b) => {
      const n = b.symbol("N", 1, 8);
      const x = b.input("x", tensorType("f32", 2, n, 3, n));
      return [b.node("diagonal", [x], { axis: 1, other: 3 })];
    },
  ],
  [
    "diagonal from the other side",
    (b) => {
      const x = b.input("x", tensorType("f32", 3, 2, 3));
      return [b.node("diagonal", [x], { axis: 2, other: 0 })];
    },
  ],
  [
    "floorMod of floats",
    (b) => {
      const x = b.input("x", tensorType("f32", 40));
      const y = b.input("y", tensorType("f32", 40));
      return [b.apply("floorMod", x, y), b.apply("atan2", x, y), b.apply("trunc", x)];
    },
  ],
  [
    "extents from 2 * N + 1",
    (b) => {
      const n = b.symbol("N", 1, 8);
      const x = b.input("x", { dtype: "f32", shape: [add(mul(n, 2), 1)] });
      return [b.node("iota", [], { shape: [n], axis: 0, dtype: "i32" }), b.apply("exp", x)];
    },
  ],
  [
    "a contraction of many axes",
    (b) => {
      const x = b.input("x", tensorType("f32", 2, 3, 4, 5));
      const y = b.input("y", tensorType("f32", 5, 2, 3, 6, 2));
      return [
        b.einsum("b i j k, k b i m n -> n j b m", x, y),
        b.einsum("b i j k, k b u m n -> b k", x, y),
      ];
    },
  ],
  [
    "saturating conversions",
    (b) => {
      const x = b.input("x", tensorType("f32", 6));
      const far = b.applyNumber("mul", x, 1e20);
      return (["i8", "u8", "i16", "i32", "i64"] as const).map((to) => b.cast(far, to));
    },
  ],
  [
    "outputs that are inputs, constants and each other",
    (b) => {
      const x = b.input("x", tensorType("f32", 3));
      const y = b.apply("exp", x);
      return [y, x, y, b.constant(fromRef(refTensor("f32", [2], [1, 2])))];
    },
  ],
];

describe("single ops", () => {
  test.each(calls)("%s", (_, build) => {
    const b = new GraphBuilder("one");
    const outputs = build(b);
    checkRoundTrip(b.finish(outputs), 4, 7);
  });
});

test("quantised without a zero point the type of the results is said", () => {
  for (const to of ["f8e4m3fn", "f8e5m2", "i8"] as const) {
    const g = new GraphBuilder("quantised");
    const [x, step] = [g.input("x", tensorType("f32", 3, 4)), g.input("s", tensorType("f32"))];
    checkRoundTrip(g.finish([g.node("quantize", [x, step], { to, saturate: true })]), 1, 3);
  }
});

test("names are those asked for; composites keep their operators", () => {
  const b = new GraphBuilder("named");
  const x = b.input("x", tensorType("f32", 2, 3));
  const y = b.node("softmax", [b.node("gelu", [x], { approximate: "none" })], { axis: 1 });
  const model: Model = { graph: b.finish([y]), weights: noWeights };
  const { bytes } = unwrap(exportOnnx(model, { inputNames: ["in::0"], outputNames: ["out.1"] }));
  const { graph } = unwrap(readModelFile(bytes));
  expect(graph!.input.map((v) => v.name)).toEqual(["in::0"]);
  expect(graph!.output.map((v) => v.name)).toEqual(["out.1"]);
  expect(graph!.node.map((n) => n.opType)).toEqual(["Gelu", "Softmax"]);
});

test("large weights lie in a second file, and come back from it", () => {
  const b = new GraphBuilder("large");
  const x = b.input("x", tensorType("f32", 2, 600));
  const w = b.weight("w", tensorType("f32", 600, 3));
  const v = b.weight("v", tensorType("f32", 3, 1000));
  const y = b.einsum("i j, j l -> i l", b.einsum("i k, k j -> i j", x, w), v);
  const stored = new Map(
    (["w", "v"] as const).map((key, i) => {
      const shape = key === "w" ? [600, 3] : [3, 1000];
      return [key as string, fromRef(randomRef("f32", shape, new Rng(i)))];
    }),
  );
  const model: Model = { graph: b.finish([y]), weights: { read: (key) => stored.get(key)! } };
  const made = unwrap(exportOnnx(model, { inlineBytes: 5000, dataLocation: "m.onnx.data" }));
  expect(made.external.map((p) => [p.offset, p.bytes])).toEqual([
    [0, 7200],
    [8192, 12000],
  ]);
  const file = new Uint8Array(8192 + 12000);
  for (const { offset, read } of made.external) file.set(tensorBytes(read()), offset);
  const back = unwrap(
    importOnnx(made.bytes, {
      readExternal: (location, offset, length) => {
        expect(location).toBe("m.onnx.data");
        return ok(file.slice(offset, offset + length));
      },
    }),
  );
  const inputs = [randomRef("f32", [2, 600], new Rng(9))];
  const want = numbersOf(unwrap(runGraph(model.graph, inputs, model.weights))[0]!);
  const found = numbersOf(unwrap(runGraph(back.graph, inputs, back.weights))[0]!);
  expect([...found]).toEqual([...want]);
});

test.each([
  [
    "a running product",
    (b: GraphBuilder) => {
      const x = b.input("x", tensorType("f32", 4));
      const attrs = { kind: "prod", axis: 0, exclusive: false, reverse: false } as const;
      return b.node("cumulative", [x], attrs);
    },
  ],
  [
    "an extent that no value has by itself",
    (b: GraphBuilder) => {
      const [n, m] = [b.symbol("N", 1, 8), b.symbol("M", 1, 8)];
      const x = b.input("x", { dtype: "f32", shape: [mul(n, m)] });
      return b.reshape(x, [n, m]);
    },
  ],
])("ONX018: %s", (_, build) => {
  const b = new GraphBuilder("refused");
  const graph = b.finish([build(b)]);
  const result = exportOnnx({ graph, weights: noWeights });
  expect(result.ok ? [] : result.diagnostics.map((d) => d.code)).toEqual(["ONX018"]);
});
