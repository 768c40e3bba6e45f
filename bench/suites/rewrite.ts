/**
 * What rewriting is worth, and what it costs. `effect`: every model of the table as the target runs it,
 * rewritten against not, in turns, with operations and bytes before and after. `onnxruntime`: the exported
 * graph, rewritten, against the model's own file, both in onnxruntime-node. `layers`, `scale` and
 * `reported`: see rewrite/. The mean is over `effect` alone.
 */
import { rewriteFor } from "../../src/compile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { compulsoryBytes, graphFlops, rangesOf } from "../../src/graph/counts.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { prepareModel } from "../../src/graph/prepare.ts";
import { lowerToCore } from "../../src/rewrite/rewrite-model.ts";
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import { rangeOf } from "../../src/semantics/index-range.ts";
import type { Target } from "../../src/target/target.ts";
import type { Contest } from "../measure/contest.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor } from "../models/random-inputs.ts";
import { roundingOf } from "../models/rounding.ts";
import { type ModelCase, type ModelRow, modelTable } from "../models/table.ts";
import type { BenchRow, SuiteSummary } from "../report.ts";
import { layerCases, layersChart } from "../rewrite/layer-cases.ts";
import { reportedCases } from "../rewrite/reported-cases.ts";
import { scaleCases } from "../rewrite/scale-cases.ts";
import { exportedRuntime } from "../sessions/exported.ts";
import { importOptions, unwrap } from "../sessions/import-hints.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import type { Runtime } from "../sessions/session.ts";
import { chooseTarget, wavetileRuntime } from "../sessions/wavetile.ts";
import { sessionContest } from "./model-cases.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { BenchCase, ContestCase, Suite } from "./suite.ts";

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
      ...layerCases(target),
      ...scaleCases(target),
      ...reportedCases(),
      ...all.map(({ row, modelCase }) =>
        effectCase("effect", { row, modelCase, target }, [rewritten, plain]),
      ),
      ...all.map(({ row, modelCase }) =>
        effectCase("onnxruntime", { row, modelCase, target }, [exportedRuntime(ort, target), ort]),
      ),
    ];
    const versions = { [plain.name]: plain.version, [ort.name]: ort.version };
    return { versions, cases, summarise, charts: (rows) => [layersChart(rows)] };
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

function summarise(rows: readonly BenchRow[]): SuiteSummary {
  const of = (family: string) => rows.filter((row) => row.case.startsWith(`${family}/`));
  const ratios = (family: string) => of(family).map((row) => row.ratio);
  const mean = (family: string) => (of(family).length > 0 ? geometricMean(ratios(family)) : 0);
  const [layers, scale, listed] = [of("layers").at(-1), of("scale"), of("reported")];
  return {
    geomean: mean("effect"),
    worst: Math.min(...ratios("effect")),
    cases: rows.length,
    onnxruntime: mean("onnxruntime"),
    onnxruntimeWorst: Math.min(...ratios("onnxruntime")),
    ...(layers && { layersOver2: 1 / layers.ratio }),
    slowestNs: Math.max(...scale.map((row) => row.ours)),
    reported: listed.length,
    found: listed.filter((row) => row.detail?.found === 1).length,
  };
}
