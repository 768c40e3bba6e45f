/**
 * Networks that stand here as graphs alone, with types for weights: too large to be run. What rewriting makes of
 * them is told in operations and bytes, before and after; nothing is timed, and the ratio is of bytes.
 */
import { rewriteFor } from "../../src/compile.ts";
import { prepareModel } from "../../src/graph/prepare.ts";
import { bytesOf } from "../../src/graph/tensor-type.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { forSearch, lowerToCore } from "../../src/rewrite/rewrite-model.ts";
import { constantValue } from "../../src/semantics/index-expr.ts";
import type { Target } from "../../src/target/target.ts";
import type { BenchRow } from "../report.ts";
import { workOfGraph } from "../sessions/graph-work.ts";
import { unwrap } from "../sessions/import-hints.ts";
import type { ForeignCase } from "../suites/suite.ts";
import { wholeNetworks } from "./whole-networks.ts";

const graphsAlone = ["Llama-3-8B"] as const;
const peerName = "import";

export function graphCases(target: Target): readonly ForeignCase[] {
  return graphsAlone.map((network) => {
    const name = `graph/${network}`;
    return { case: name, peerName, measure: async () => rowOf(name, network, target) };
  });
}

function rowOf(name: string, network: (typeof graphsAlone)[number], target: Target): BenchRow {
  const model = prepareModel({ graph: wholeNetworks[network]!(), weights: noWeights });
  const { best } = unwrap(rewriteFor(model, target, undefined, forSearch));
  const [before, after] = [model, lowerToCore(best.model)].map(({ graph }) => workOfGraph(graph));
  const ratio = before!.bytes / after!.bytes;
  const { values, weights } = model.graph;
  const stored = weights.reduce(
    (n, w) => n + (constantValue(bytesOf(values[w.value]!.type)) ?? 0),
    0,
  );
  return {
    case: name,
    ours: 0,
    peer: 0,
    peerName,
    ratio,
    low: ratio,
    high: ratio,
    n: 1,
    detail: { "bytes after over before": 1 / ratio },
    beside: {
      flops: before!.flops,
      "flops after": after!.flops,
      bytes: before!.bytes,
      "bytes after": after!.bytes,
      "not timed": `a graph alone, its weights would be ${(stored / 1e9).toFixed(1)} GB`,
    },
  };
}
