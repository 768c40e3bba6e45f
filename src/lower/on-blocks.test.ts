/** Small graphs that no strategy for blocks is made for: compiled (and so proved), run in the interpreter, compared with the oracle. */
import { expect, it } from "vitest";
import { places, runCompiled } from "../../campaign/campaigns/random-ops.ts";
import { firstDifference } from "../../campaign/random-values.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { ValueId } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { noWeights, runGraph } from "../interp/graph.ts";
import { constantValue } from "../semantics/index-expr.ts";
import { randomRef, type Tensor } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";

async function difference(build: (g: GraphBuilder) => ValueId): Promise<string | undefined> {
  const g = new GraphBuilder("small");
  const graph = g.finish([build(g)]);
  const rng = new Rng(3);
  const inputs = graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    const extents = shape.map((e) => constantValue(e)!);
    return randomRef(dtype, extents, rng);
  });
  const want = runGraph(graph, inputs);
  if (!want.ok) return "the oracle refuses it";
  const model = { graph, weights: noWeights };
  const [found] = await runCompiled(model, inputs, places["cuda-interp"](1));
  return firstDifference(found!, want.value[0]!);
}

function ramp(shape: readonly number[]): Tensor {
  const data = new Float32Array(shape.reduce((m, n) => m * n, 1)).map((_, i) => (i % 7) - 3);
  return { dtype: "f32", shape, data };
}

it("a product whose result is one number", async () => {
  const dot = (g: GraphBuilder): ValueId => {
    const [a, b] = ["a", "b"].map((name) => g.input(name, tensorType("f32", 300)));
    return g.einsum("k, k -> ", a!, b!, "f32");
  };
  expect(await difference(dot)).toBeUndefined();
});

it("channels of which several nests write a part each, read with the channels last", async () => {
  const mirrored = (g: GraphBuilder): ValueId => {
    const x = g.input("x", tensorType("f32", 1, 6, 10, 2));
    const rest = g.mul(g.sliceAxis(x, 1, 1, 4), g.scalar(3, "f32"));
    const all = g.concat([x, rest], 1);
    return g.einsum("n f a p, f p b c -> n b a c", all, g.constant(ramp([10, 2, 10, 2])), "f32");
  };
  expect(await difference(mirrored)).toBeUndefined();
});

it("results that interleave, written through views of other shapes", async () => {
  const upward = (g: GraphBuilder): ValueId => {
    const x = g.input("x", tensorType("f32", 1, 1, 3, 3));
    const attrs = { strides: [3, 2], dilations: [1, 1], groups: 1, outputPadding: [0, 0] };
    const padding = { padLow: [1, 2], padHigh: [1, 2] };
    const w = g.constant(ramp([1, 2, 3, 3]));
    return g.node("transposedConvolution", [x, w], { ...attrs, ...padding });
  };
  expect(await difference(upward)).toBeUndefined();
});

it("results without elements, which no grid has blocks for", async () => {
  const empty = (g: GraphBuilder): ValueId => {
    const x = g.input("x", tensorType("f32", 6, 32));
    return g.node("exp", [g.sliceAxis(x, 1, 32, 0)], {});
  };
  expect(await difference(empty)).toBeUndefined();
});

it("a map and a fold whose loops are as long, and mean others", async () => {
  const folded = (g: GraphBuilder): ValueId => {
    const x = g.input("x", tensorType("f32", 10, 2, 10));
    const w = g.constant(ramp([2, 10, 2, 10]));
    return g.einsum("i p q, p q j k -> i j k", g.node("exp", [x], {}), w, "f32");
  };
  expect(await difference(folded)).toBeUndefined();
});

it("results below a byte, of which neighbours are other threads'", async () => {
  const packed = (g: GraphBuilder): ValueId =>
    g.cast(g.mul(g.input("x", tensorType("f32", 5, 5)), g.scalar(3, "f32")), "i4");
  expect(await difference(packed)).toBeUndefined();
});
