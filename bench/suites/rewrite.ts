/**
 * What rewriting is worth, and what it costs. `effect`: every model of the table as the target runs it,
 * rewritten against not, in turns, with operations and bytes before and after. `onnxruntime`: the exported
 * graph, rewritten, against the model's own file, both in onnxruntime-node. `layers`: saturation and
 * extraction of a transformer of 2 to 96 layers beside that of 2 (processor time, the least of three).
 * `reported`: what TASO and Tensat find, by name: taken; or derived, with the price that speaks against it;
 * or why not. The mean is over `effect` alone.
 */
import { rewriteFor } from "../../src/compile.ts";
import { GraphPricer } from "../../src/cost/price-graph.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { compulsoryBytes, graphFlops, rangesOf } from "../../src/graph/counts.ts";
import type { Graph, Model } from "../../src/graph/graph.ts";
import { prepareModel } from "../../src/graph/prepare.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { scopeOf } from "../../src/rewrite/facts.ts";
import { defaultPhases } from "../../src/rewrite/families/index.ts";
import { contextOf, formOf, partOf } from "../../src/rewrite/part.ts";
import { defaultSearch, lowerToCore } from "../../src/rewrite/rewrite-model.ts";
import { readRuleSet, rewritePart } from "../../src/rewrite/rewrite-part.ts";
import { segmentGraph } from "../../src/rewrite/segment.ts";
import { weightsFirst } from "../../src/rewrite/weights-first.ts";
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import { rangeOf } from "../../src/semantics/index-range.ts";
import type { Target } from "../../src/target/target.ts";
import type { Contest } from "../measure/contest.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor } from "../models/random-inputs.ts";
import { roundingOf } from "../models/rounding.ts";
import { type ModelCase, type ModelRow, modelTable } from "../models/table.ts";
import type { BenchRow, SuiteSummary } from "../report.ts";
import { transformer } from "../rewrite/networks.ts";
import { type Reported, reported } from "../rewrite/reported.ts";
import { exportedRuntime } from "../sessions/exported.ts";
import { importOptions, unwrap } from "../sessions/import-hints.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import type { Runtime } from "../sessions/session.ts";
import { chooseTarget, wavetileRuntime } from "../sessions/wavetile.ts";
import { sessionContest } from "./model-cases.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { BenchCase, ContestCase, ForeignCase, Suite } from "./suite.ts";

const layerCounts = [2, 4, 8, 16, 32, 64, 96] as const;
const attempts = 3;

export const rewriteSuite: Suite = {
  name: "rewrite",
  summary: "models rewritten against not, time of rewriting by layers, what TASO and Tensat report",
  targets: ["wasm", "cpu", "x64-avx512", "x64-avx2"],
  peers: onnxruntimePeers.filter((p) => p.name === "onnxruntime-node"),
  load: async ({ target: name, threads }) => {
    const target = chooseTarget(name);
    const plain = wavetileRuntime(name, threads);
    const rewritten = wavetileRuntime(name, threads, "on");
    const ort = ortNodeRuntime(threads);
    const all = modelTable.flatMap((row) => row.cases.map((modelCase) => ({ row, modelCase })));
    const cases: readonly BenchCase[] = [
      ...layerCounts.map((count) => layersCase(count, target)),
      ...reported.map((r) => reportedCase(r, target)),
      ...all.map(({ row, modelCase }) =>
        effectCase("effect", { row, modelCase, target }, [rewritten, plain]),
      ),
      ...all.map(({ row, modelCase }) =>
        effectCase("onnxruntime", { row, modelCase, target }, [exportedRuntime(ort, target), ort]),
      ),
    ];
    const versions = { [plain.name]: plain.version, [ort.name]: ort.version };
    return { versions, cases, summarise };
  },
};

interface ModelAt {
  readonly row: ModelRow;
  readonly modelCase: ModelCase;
  readonly target: Target;
}

function effectCase(
  family: string,
  at: ModelAt,
  [ours, peer]: readonly [Runtime, Runtime],
): ContestCase {
  const name = `${family}/${at.row.name}/${at.modelCase.name}`;
  const open = async (): Promise<Contest> => {
    const bytes = unwrap(fetchModel(at.row));
    const hints = hintsFor(at.row);
    const sessions = [await ours.open(bytes, hints), await peer.open(bytes, hints)] as const;
    const contest = sessionContest(unwrap(roundingOf(bytes)), at.modelCase, sessions);
    return { ...contest, beside: workOf(bytes, at) };
  };
  return { case: name, peerName: peer.name, open };
}

/** Operations and bytes at the largest extents, before and after. */
function workOf(bytes: Uint8Array, { row, target }: ModelAt): Readonly<Record<string, number>> {
  const imported = prepareModel(unwrap(importOnnx(bytes, importOptions(hintsFor(row)))));
  const { best } = unwrap(rewriteFor(imported, target));
  const [before, after] = [imported, lowerToCore(best.model)].map(({ graph }) => countsOf(graph));
  return {
    flops: before!.flops,
    "flops after": after!.flops,
    bytes: before!.bytes,
    "bytes after": after!.bytes,
  };
}

function countsOf(graph: Graph): { readonly flops: number; readonly bytes: number } {
  const ranges = rangesOf(graph);
  const bytes = graph.nodes.map((node) => rangeOf(compulsoryBytes(node, graph), ranges).max);
  return {
    flops: rangeOf(graphFlops(graph), ranges).max,
    bytes: bytes.reduce((sum, n) => sum + n, 0),
  };
}

/** Saturation and extraction of the distinct parts; beside it all of rewriting, prices included. */
function layersCase(count: number, target: Target): ForeignCase {
  const name = `layers/${count}`;
  const peerName = "2 layers";
  return {
    case: name,
    peerName,
    measure: async () => {
      const [ours, peer] = [transformer(count), transformer(2)] as const;
      const runs = Array.from({ length: attempts + 1 }, () =>
        [ours, peer].map((graph) => processorNs(() => searchParts(graph, target))),
      ).slice(1);
      const [oursNs, peerNs] = [0, 1].map((side) => Math.min(...runs.map((r) => r[side]!)));
      const model: Model = { graph: ours, weights: noWeights };
      const wholeNs = processorNs(() => unwrap(rewriteFor(model, target)));
      const ratio = peerNs! / oursNs!;
      const times = { case: name, ours: oursNs!, peer: peerNs!, peerName };
      const row: BenchRow = {
        ...times,
        ratio,
        low: ratio,
        high: ratio,
        n: attempts,
        onlyWorst: true,
        beside: { nodes: ours.nodes.length, "all of rewriting, ms": wholeNs / 1e6 },
      };
      return row;
    },
  };
}

/** What rewriting does to each part that is like no other before it. */
function searchParts(source: Graph, target: Target): void {
  const graph = weightsFirst(source);
  const pricer = new GraphPricer(target);
  const ranges = rangesOf(graph);
  const rules = unwrap(readRuleSet(defaultPhases, scopeOf(graph)));
  const context = contextOf(graph);
  const parts = new Map(
    segmentGraph(graph)
      .map((segment) => partOf(context, segment))
      .map((part) => [formOf(part), part] as const),
  );
  for (const part of parts.values()) {
    rewritePart(part.graph, {
      rules,
      priceOp: (call) => pricer.op(call, ranges),
      count: defaultSearch.count,
      budget: defaultSearch.budget,
    });
  }
}

function processorNs(run: () => unknown): number {
  const start = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) * 1000;
}

function reportedCase({ network, what, graph, rules, otherwise }: Reported, target: Target) {
  const name = `reported/${network}: ${what}`;
  const foreign: ForeignCase = {
    case: name,
    peerName: "TASO, Tensat",
    measure: async () => {
      const model: Model = { graph: graph(), weights: noWeights };
      const found = unwrap(rewriteFor(model, target, undefined, { explain: true, count: 4 }));
      const uses = (chain: readonly { readonly rule: string }[]) =>
        chain.some((step) => rules.includes(step.rule));
      // Prices of the graphs that the rules led to, over that of the part as it was.
      const priced = found.parts.flatMap((part) =>
        part.prices.flatMap((ns, i) => (uses(part.chains[i] ?? []) ? [ns / part.before] : [])),
      );
      const isTaken = priced.some((share) => share < 1);
      const isKnown = found.parts.some((part) => part.rules.some((r) => rules.includes(r.rule)));
      const price = priced.length > 0 ? { price: Math.min(...priced) } : {};
      const row: BenchRow = {
        case: name,
        ours: found.best.priceNs,
        peer: found.importPriceNs,
        peerName: "TASO, Tensat",
        ratio: isTaken ? 1 : 0,
        low: 0,
        high: 1,
        n: 1,
        detail: { taken: isTaken ? 1 : 0, derived: isKnown ? 1 : 0, ...price },
        beside: isTaken ? {} : { because: otherwise },
      };
      return row;
    },
  };
  return foreign;
}

function summarise(rows: readonly BenchRow[]): SuiteSummary {
  const of = (family: string) => rows.filter((row) => row.case.startsWith(`${family}/`));
  const ratios = (family: string) => of(family).map((row) => row.ratio);
  const mean = (family: string) => (of(family).length > 0 ? geometricMean(ratios(family)) : 0);
  const listed = of("reported");
  const layers = of("layers").at(-1);
  return {
    geomean: mean("effect"),
    worst: Math.min(...ratios("effect")),
    cases: rows.length,
    onnxruntime: mean("onnxruntime"),
    onnxruntimeWorst: Math.min(...ratios("onnxruntime")),
    ...(layers && { layersOver2: 1 / layers.ratio }),
    reported: listed.length,
    taken: listed.filter((row) => row.detail?.taken === 1).length,
  };
}
