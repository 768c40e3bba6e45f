/**
 * Saturation and extraction of a transformer of 2 to 96 layers beside that of 2, in processor time, the
 * least of a few runs in turns; and all of rewriting, with what the prices take.
 */
import { rewriteFor } from "../../src/compile.ts";
import { GraphPricer } from "../../src/cost/price-graph.ts";
import { rangesOf } from "../../src/graph/counts.ts";
import type { Graph, Model } from "../../src/graph/graph.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { scopeOf } from "../../src/rewrite/facts.ts";
import { defaultPhases } from "../../src/rewrite/families/index.ts";
import { askParts } from "../../src/rewrite/part.ts";
import { defaultSearch, forSearch } from "../../src/rewrite/rewrite-model.ts";
import { readRuleSet, rewritePart } from "../../src/rewrite/rewrite-part.ts";
import { weightsFirst } from "../../src/rewrite/weights-first.ts";
import type { Target } from "../../src/target/target.ts";
import type { NamedChart } from "../chart.ts";
import type { BenchRow } from "../report.ts";
import { unwrap } from "../sessions/import-hints.ts";
import type { ForeignCase } from "../suites/suite.ts";
import { transformer } from "./networks.ts";
import { processorNs } from "./processor-time.ts";

const layerCounts = [2, 4, 8, 16, 32, 64, 96] as const;
const attempts = 5;
const allOfIt = "all of rewriting, ms";

export function layerCases(target: Target): readonly ForeignCase[] {
  return layerCounts.map((count) => layersCase(count, target));
}

function layersCase(count: number, target: Target): ForeignCase {
  const name = `layers/${count}`;
  const peerName = "2 layers";
  const measure = async (): Promise<BenchRow> => {
    const graphs = [transformer(count), transformer(2)];
    const model: Model = { graph: graphs[0]!, weights: noWeights };
    const all: number[] = [];
    // The first run compiles the code and does not count.
    const runs = Array.from({ length: attempts + 1 }, () => {
      const times = graphs.map((graph) => processorNs(() => searchParts(graph, target)));
      all.push(processorNs(() => unwrap(rewriteFor(model, target, undefined, forSearch))));
      return times;
    }).slice(1);
    const [ours, peer] = [0, 1].map((side) => Math.min(...runs.map((r) => r[side]!)));
    const ratio = peer! / ours!;
    const figures = { ours: ours!, peer: peer!, peerName, ratio, low: ratio, high: ratio };
    const beside = { nodes: graphs[0]!.nodes.length, [allOfIt]: Math.min(...all) / 1e6 };
    return { case: name, ...figures, n: attempts, onlyWorst: true, beside };
  };
  return { case: name, peerName, measure };
}

/** What rewriting does to each part that is like no other before it. */
function searchParts(source: Graph, target: Target): void {
  const graph = weightsFirst(source);
  const pricer = new GraphPricer(target);
  const ranges = rangesOf(graph);
  const rules = unwrap(readRuleSet(defaultPhases, scopeOf(graph)));
  for (const { parts } of askParts(graph)) {
    rewritePart(parts[0]!.graph, {
      rules,
      priceOp: (call) => pricer.op(call, ranges),
      ...defaultSearch,
    });
  }
}

export function layersChart(rows: readonly BenchRow[]): NamedChart {
  const points = rows
    .filter((row) => row.case.startsWith("layers/"))
    .map((row) => ({
      layers: Number(row.case.slice("layers/".length)),
      searchMs: row.ours / 1e6,
      allMs: Number(row.beside?.[allOfIt]),
    }));
  const line = (name: string, ms: "searchMs" | "allMs") => ({
    name,
    points: points.map((p) => [p.layers, p[ms]] as const),
  });
  return {
    name: "rewrite-layers",
    chart: {
      title: "rewriting a transformer",
      x: "layers",
      y: "processor time, ms",
      lines: [
        line("saturation and extraction", "searchMs"),
        line("with splicing and prices", "allMs"),
      ],
    },
  };
}
