/**
 * What TASO and Tensat report, looked for as they do: extraction is guided by what a product (or each
 * group of a convolution) costs to be launched, so that fewer and larger products come out whatever a machine thinks of them. `found` where
 * the rules are in the chain of a graph that came out. Each such graph is priced by the cost models of
 * machines of three kinds beside the graph that went in: below 1 the machine takes it; above, `because`
 * has what the price is made of, operations, bytes and regions after over before.
 */
import { GraphPricer } from "../../src/cost/price-graph.ts";
import { compulsoryBytes, graphFlops, rangesOf } from "../../src/graph/counts.ts";
import type { Graph, Model } from "../../src/graph/graph.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { scopeOf } from "../../src/rewrite/facts.ts";
import { defaultPhases } from "../../src/rewrite/families/index.ts";
import { askParts } from "../../src/rewrite/part.ts";
import { defaultSearch, lowerToCore } from "../../src/rewrite/rewrite-model.ts";
import { type OpCost, readRuleSet, rewritePart } from "../../src/rewrite/rewrite-part.ts";
import { countRegions, type RegionCounts, totalNs } from "../../src/rewrite/savings.ts";
import { weightsFirst } from "../../src/rewrite/weights-first.ts";
import type { ConvolutionAttrs } from "../../src/semantics/core-ops.ts";
import { rangeOf } from "../../src/semantics/index-range.ts";
import { targets } from "../../src/target/index.ts";
import type { BenchRow } from "../report.ts";
import { unwrap } from "../sessions/import-hints.ts";
import type { ForeignCase } from "../suites/suite.ts";
import { type Reported, reported } from "./reported.ts";

const machines = ["wasm", "x64-avx2", "h200"] as const;
const launchNs = 1e8;
const candidates = 4;
const peerName = "TASO, Tensat";

export function reportedCases(): readonly ForeignCase[] {
  return reported.map((row) => ({
    case: `reported/${row.network}: ${row.what}`,
    peerName,
    measure: async () => rowOf(row),
  }));
}

function rowOf({ network, what, graph, rules }: Reported): BenchRow {
  const pairs = pairsBy(rules, graph());
  const verdicts = machines.map((machine) => judge(new GraphPricer(targets.get(machine)!), pairs));
  const found = pairs.length > 0;
  const shares = machines.map((machine, i) => [machine, verdicts[i]?.share ?? 0] as const);
  const reasons = machines.flatMap((machine, i) => {
    const verdict = verdicts[i];
    return verdict && verdict.share >= 1 ? [`${machine}: ${verdict.why}`] : [];
  });
  return {
    case: `reported/${network}: ${what}`,
    ours: 0,
    peer: 0,
    peerName,
    ratio: found ? 1 : 0,
    low: 0,
    high: 1,
    n: 1,
    detail: { found: found ? 1 : 0, ...(found && Object.fromEntries(shares)) },
    beside: reasons.length > 0 ? { because: reasons.join("; ") } : {},
  };
}

/** A part of a network, and what one of the rules led to. */
interface Pair {
  readonly before: Graph;
  readonly after: Graph;
}

function pairsBy(names: readonly string[], source: Graph): readonly Pair[] {
  const graph = weightsFirst(source);
  const ranges = rangesOf(graph);
  const pricer = new GraphPricer(targets.get("wasm")!);
  const rules = unwrap(readRuleSet(defaultPhases, scopeOf(graph)));
  return askParts(graph).flatMap(({ parts }) => {
    const before = parts[0]!.graph;
    const { graphs, chains } = rewritePart(before, {
      rules,
      priceOp: (call) => pricer.op(call, ranges) + launchNs * launchesOf(call),
      ...defaultSearch,
      count: candidates,
      explain: true,
    });
    return graphs.flatMap((after, i) =>
      chains[i]!.some((step) => names.includes(step.rule)) ? [{ before, after }] : [],
    );
  });
}

/** Each group of a convolution is launched. */
function launchesOf({ op, attrs }: OpCost): number {
  if (op === "convolution") return (attrs as unknown as ConvolutionAttrs).groups;
  return op === "contract" ? 1 : 0;
}

interface Verdict {
  /** The cheapest graph's price over that of the graph that went in. */
  readonly share: number;
  readonly why: string;
}

function judge(pricer: GraphPricer, pairs: readonly Pair[]): Verdict | undefined {
  const ratios = pairs.map(({ before, after }) => {
    const [own, work] = [workOf(before, pricer), workOf(after, pricer)];
    const share = work.ns / own.ns;
    const [flops, bytes] = [work.flops / own.flops, work.bytes / own.bytes];
    const regions = `regions ${own.regions} to ${work.regions}`;
    const why = `operations x${flops.toFixed(2)}, bytes x${bytes.toFixed(2)}, ${regions}`;
    return { share, why };
  });
  ratios.sort((a, b) => a.share - b.share);
  return ratios[0];
}

function workOf(graph: Graph, pricer: GraphPricer) {
  const model: Model = { graph, weights: noWeights };
  const core = lowerToCore(model).graph;
  const ranges = rangesOf(core);
  const regions: RegionCounts = unwrap(countRegions(model, pricer));
  const bytes = core.nodes.map((node) => rangeOf(compulsoryBytes(node, core), ranges).max);
  return {
    ns: totalNs(regions, pricer),
    flops: rangeOf(graphFlops(core), ranges).max,
    bytes: bytes.reduce((sum, n) => sum + n, 0),
    regions: [...regions.values()].reduce((sum, n) => sum + n, 0),
  };
}
