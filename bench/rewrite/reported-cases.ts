/**
 * What TASO and Tensat report, looked for as they do: extraction is guided by what a product costs to be
 * launched, and the graph that comes out is priced by the cost models of machines of three kinds beside
 * the graph that went in. `found` where the rules are in its chain; below 1 the machine takes it.
 */
import { GraphPricer } from "../../src/cost/price-graph.ts";
import type { Model } from "../../src/graph/graph.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { type PartReport, type Pricer, rewriteModel } from "../../src/rewrite/rewrite-model.ts";
import { targets } from "../../src/target/index.ts";
import type { BenchRow } from "../report.ts";
import { unwrap } from "../sessions/import-hints.ts";
import type { ForeignCase } from "../suites/suite.ts";
import { type Reported, reported } from "./reported.ts";

const machines = ["wasm", "x64-avx2", "h200"] as const;
const launchNs = 1e6;
const candidates = 4;
const peerName = "TASO, Tensat";

export function reportedCases(): readonly ForeignCase[] {
  return reported.map((row) => ({
    case: `reported/${row.network}: ${row.what}`,
    peerName,
    measure: async () => rowOf(row),
  }));
}

function rowOf({ network, what, graph, rules, otherwise }: Reported): BenchRow {
  const model: Model = { graph: graph(), weights: noWeights };
  const shares = machines.map((machine) => {
    if (rules.length === 0) return Infinity;
    const pricer = countingLaunches(new GraphPricer(targets.get(machine)!));
    const { parts } = unwrap(rewriteModel(model, { pricer, explain: true, count: candidates }));
    return Math.min(...parts.flatMap((part) => sharesWith(part, rules)));
  });
  const priced = machines.flatMap((machine, i) =>
    Number.isFinite(shares[i]) ? [[machine, shares[i]!] as const] : [],
  );
  const isFound = priced.length > 0;
  const isTaken = shares.some((share) => share < 1);
  return {
    case: `reported/${network}: ${what}`,
    ours: 0,
    peer: 0,
    peerName,
    ratio: isFound ? 1 : 0,
    low: 0,
    high: 1,
    n: 1,
    detail: { found: isFound ? 1 : 0, ...Object.fromEntries(priced) },
    beside: isTaken ? {} : { because: otherwise },
  };
}

function countingLaunches(pricer: GraphPricer): Pricer {
  return {
    op: (call, ranges) => {
      const launched = call.op === "contract" || call.op === "convolution";
      return pricer.op(call, ranges) + (launched ? launchNs : 0);
    },
    regions: (graph) => pricer.regions(graph),
    region: (name) => pricer.region(name),
  };
}

/** Prices of the candidates that the rules led to, over that of the part as it was. */
function sharesWith(part: PartReport, rules: readonly string[]): readonly number[] {
  const before = part.priceNs();
  return part.savedNs.flatMap((saved, i) => {
    const isLed = (part.chains[i] ?? []).some((step) => rules.includes(step.rule));
    return isLed ? [(before - saved) / before] : [];
  });
}
