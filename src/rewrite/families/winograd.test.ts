/** What a target's prices say of Winograd's filtering beside the direct convolution. */
import { describe, expect, it } from "vitest";
import { GraphPricer } from "../../cost/price-graph.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { flopsOf, rangesOf } from "../../graph/counts.ts";
import type { Graph, Model } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { lowerToCore, type Pricer, rewriteModel } from "../rewrite-model.ts";
import { winograd } from "./winograd.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

interface Layer {
  readonly inputs: number;
  readonly outputs: number;
  readonly size: number;
}

function convolution({ inputs, outputs, size }: Layer): Model {
  const b = new GraphBuilder("layer");
  const x = b.input("x", tensorType("f32", 1, inputs, size, size));
  const w = b.weight("w", tensorType("f32", outputs, inputs, 3, 3));
  const window = { strides: [1, 1], padLow: [1, 1], padHigh: [1, 1], dilations: [1, 1], groups: 1 };
  return { graph: b.finish([b.node("convolution", [x, w], window)]), weights: noWeights };
}

/** The convolution as the rule writes it, whatever it costs. */
function filtered(source: Model, pricer: Pricer, rule: string): Model {
  const preferring: Pricer = {
    regions: (graph) => pricer.regions(graph),
    // Its many regions are worth more than the one of the direct form.
    region: () => -1,
    op: (call, ranges) => (call.op === "convolution" ? 1e12 : pricer.op(call, ranges)),
  };
  const rules = winograd.filter((r) => r.name === rule);
  const phases = [{ name: "filter", rules, iterations: 1 }];
  const { candidates } = unwrap(rewriteModel(source, { phases, pricer: preferring }));
  const found = candidates.find(({ model }) =>
    model.graph.nodes.every((n) => n.op !== "convolution"),
  );
  return lowerToCore(found!.model);
}

const priceOf = (graph: Graph, pricer: Pricer): number =>
  unwrap(pricer.regions(graph)).reduce((sum, key) => sum + pricer.region(key), 0);

/** Nanoseconds of the graph's arithmetic at 1.15 times the peak. */
function arithmeticNs(graph: Graph, targetName: string): number {
  const ranges = rangesOf(graph);
  const flops = graph.nodes.map((node) => rangeOf(flopsOf(node, graph), ranges).max);
  const { value: peak } = targets.get(targetName)!.f32FlopsPerNsPerCore;
  return flops.reduce((a, b) => a + b, 0) / (1.15 * peak);
}

const layers: readonly Layer[] = [
  { inputs: 256, outputs: 256, size: 14 },
  { inputs: 64, outputs: 48, size: 7 },
];
const machines = ["x64-avx2", "x64-avx512", "wasm"];
/** They remember prices. */
const pricers = new Map(machines.map((name) => [name, new GraphPricer(targets.get(name)!)]));
const cases = machines.flatMap((target) =>
  layers.flatMap((layer) =>
    (
      [
        ["winograd-two", 2],
        ["winograd-four", 4],
      ] as const
    ).map(([rule, results]) => ({ target, layer, rule, results })),
  ),
);

describe.each(cases)("$rule of $layer on $target", ({ target, layer, rule, results }) => {
  const pricer = pricers.get(target)!;
  const direct = convolution(layer);
  const other = filtered(direct, pricer, rule);
  const prices = [direct, other].map(({ graph }) => priceOf(graph, pricer)) as [number, number];

  it("is priced no lower than its arithmetic, and so is the direct form", () => {
    for (const [i, { graph }] of [direct, other].entries()) {
      expect(prices[i]).toBeGreaterThanOrEqual(arithmeticNs(graph, target));
    }
  });

  it("is priced about as its share of the products, or higher", () => {
    const tiles = Math.ceil(layer.size / results) ** 2;
    const share = ((results + 2) ** 2 * tiles) / (9 * layer.size ** 2);
    // A product of matrices comes somewhat nearer to the peak.
    expect(prices[1] / prices[0]).toBeGreaterThanOrEqual(0.7 * share);
  });

  it("leaves the direct form a price that code for it reaches", () => {
    expect(prices[0]).toBeLessThan(4 * arithmeticNs(direct.graph, target));
  });
});
