/** Which convolutions become filterings: by price, and equal by the oracle. */
import { expect, it } from "vitest";
import { GraphPricer } from "../cost/price-graph.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Model, ValueId } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { runGraph } from "../interp/graph.ts";
import { constantValue } from "../semantics/index-expr.ts";
import { fromRef, randomRef } from "../semantics/tensor.ts";
import { formatDiagnostic, ok, type Result } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { worstDifference } from "../verdict/tolerance.ts";
import { filterConvolutions } from "./filter-convolutions.ts";
import type { Pricer } from "./savings.ts";

const pricer = new GraphPricer(targets.get("x64-avx2")!);

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

interface Layer {
  readonly inputs: number;
  readonly outputs: number;
  readonly size: number;
  readonly stride?: number;
  readonly groups?: number;
}

/** Two layers of one shape, if it allows that, and magnitudes behind. */
function network({ inputs, outputs, size, stride = 1, groups = 1 }: Layer): Model {
  const b = new GraphBuilder("net");
  const pad = [1, 1];
  const window = {
    strides: [stride, stride],
    padLow: pad,
    padHigh: pad,
    dilations: [1, 1],
    groups,
  };
  const layer = (x: ValueId, name: string): ValueId => {
    const w = b.weight(name, tensorType("f32", outputs, inputs / groups, 3, 3));
    return b.node("abs", [b.node("convolution", [x, w], window)], {});
  };
  const first = layer(b.input("x", tensorType("f32", 1, inputs, size, size)), "w");
  const graph = b.finish([inputs === outputs ? layer(first, "w2") : first]);
  const shape = [outputs, inputs / groups, 3, 3];
  const read = (key: string) => fromRef(randomRef("f32", shape, new Rng(key.length)));
  return { graph, weights: { read } };
}

const opsOf = ({ graph }: Model): readonly string[] => graph.nodes.map((n) => n.op);

/** One region a graph, dear where it convolves; the guide says so too. */
const willing: Pricer = {
  op: ({ op }) => (op === "convolution" ? 100 : 1),
  regions: ({ nodes }) => ok([nodes.some((n) => n.op === "convolution") ? "direct" : "filtered"]),
  region: (name) => (name === "direct" ? 3 : 1),
};

it("filters wide layers", () => {
  const found = filterConvolutions(network({ inputs: 256, outputs: 256, size: 14 }), pricer)!;
  expect(found.count).toBe(2);
  expect(found.savedNs).toBeGreaterThan(0);
  expect(opsOf(found.model)).not.toContain("convolution");
});

it.each([6, 7])("computes what the layers did, on maps of %i", (size) => {
  const model = network({ inputs: 8, outputs: 8, size });
  const found = filterConvolutions(model, willing)!;
  expect(found).toMatchObject({ count: 2, savedNs: 4 });
  const x = randomRef("f32", [1, 8, size, size], new Rng(3));
  const [expected] = unwrap(runGraph(model.graph, [x], model.weights));
  const [actual] = unwrap(runGraph(found.model.graph, [x], found.model.weights));
  expect(worstDifference(actual!, expected!).relative).toBeLessThan(1e-5);
});

it.each([
  { inputs: 3, outputs: 32, size: 32 },
  { inputs: 64, outputs: 64, size: 14, stride: 2 },
  { inputs: 64, outputs: 64, size: 14, groups: 64 },
])("leaves %o as it is", (layer) => {
  expect(filterConvolutions(network(layer), pricer)).toBeUndefined();
});

it("leaves what the prices say is cheaper as it is", () => {
  const dear: Pricer = {
    op: willing.op,
    regions: willing.regions,
    region: (name) => 4 - willing.region(name),
  };
  expect(filterConvolutions(network({ inputs: 64, outputs: 64, size: 14 }), dear)).toBeUndefined();
});

it("asks no price where arithmetic and bytes alone say that it is dearer", () => {
  const asked: string[] = [];
  const counting: Pricer = {
    op: (call, ranges) => pricer.op(call, ranges),
    regions: (graph) => {
      asked.push(graph.name);
      return pricer.regions(graph);
    },
    region: (name) => pricer.region(name),
  };
  expect(
    filterConvolutions(network({ inputs: 8, outputs: 8, size: 12 }), counting),
  ).toBeUndefined();
  expect(asked).toEqual([]);
});

it("prices the fewest channels on maps of one size, and takes more of them with it", () => {
  const b = new GraphBuilder("net");
  const window = { strides: [1, 1], padLow: [1, 1], padHigh: [1, 1], dilations: [1, 1], groups: 1 };
  const inputs = [32, 16].map((n) => b.input(`x${n}`, tensorType("f32", 1, n, 8, 8)));
  const results = [32, 16].map((channels, i) => {
    const x = inputs[i]!;
    const w = b.weight(`w${channels}`, tensorType("f32", channels, channels, 3, 3));
    return b.node("convolution", [x, w], window);
  });
  const asked: number[] = [];
  const counting: Pricer = {
    ...willing,
    regions: (graph) => {
      asked.push(Number(constantValue(graph.values[graph.inputs[0]!]!.type.shape[1]!)));
      return willing.regions(graph);
    },
  };
  const weights = { read: () => fromRef(randomRef("f32", [1], new Rng(1))) };
  const found = filterConvolutions({ graph: b.finish(results), weights }, counting);
  expect(found).toMatchObject({ count: 2, savedNs: 2 + 2 * 4 });
  expect(asked).toEqual([16, 16]);
});
