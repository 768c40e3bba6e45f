/**
 * What rewriting is worth, and what it costs. `effect`: every model of the table as the target runs it,
 * rewritten against not, in turns, with operations and bytes before and after. `onnxruntime`: the exported
 * graph, rewritten, against the model's own file, both in onnxruntime-node. `layers`, `scale`,
 * `reported` and `graph`: see rewrite/. The mean is over `effect` alone.
 */
import { createHash } from "node:crypto";
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import { invariant } from "../../src/support/invariant.ts";
import type { Beside } from "../measure/contest.ts";
import { modelTable } from "../models/table.ts";
import type { BenchRow, SuiteSummary } from "../report.ts";
import { graphCases } from "../rewrite/graph-cases.ts";
import { layerCases, layersChart } from "../rewrite/layer-cases.ts";
import { reportedCases } from "../rewrite/reported-cases.ts";
import { scaleCases } from "../rewrite/scale-cases.ts";
import { exportedRuntime } from "../sessions/exported.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import type { Session } from "../sessions/session.ts";
import { chooseTarget, wavetileRuntime } from "../sessions/wavetile.ts";
import { modelCases } from "./model-cases.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { BenchCase, Suite } from "./suite.ts";

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
    const style = { beside: besideOf, floors: false };
    const effects = modelCases([rewritten, plain], modelTable, { ...style, family: "effect" });
    const exports = modelCases([exportedRuntime(ort, target), ort], modelTable, {
      ...style,
      family: "onnxruntime",
    });
    const cases: readonly BenchCase[] = [
      ...layerCases(target),
      ...scaleCases(target),
      ...reportedCases(),
      ...graphCases(target),
      ...effects.cases,
      ...exports.cases,
    ];
    const versions = { [plain.name]: plain.version, [ort.name]: ort.version };
    const close = async (): Promise<void> => {
      await effects.close();
      await exports.close();
    };
    return { versions, cases, close, summarise, charts: (rows) => [layersChart(rows)] };
  },
};

/** Operations and bytes before and after, and whether anything came of it. */
function besideOf([ours, peer]: readonly [Session, Session]): Beside {
  const { work, program } = ours;
  invariant(work, () => "a rewritten session shows its graph");
  // What the other side runs is the graph before, where it shows it: with the values that are kept wide.
  const before = peer.work?.run ?? work.imported;
  return {
    flops: before.flops,
    "flops after": work.run.flops,
    bytes: before.bytes,
    "bytes after": work.run.bytes,
    ...(program !== undefined && program === peer.program && { "same program": hashOf(program) }),
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

/** Of what was measured: families that were left out have no figure. */
function summarise(rows: readonly BenchRow[]): SuiteSummary {
  const of = (family: string) => rows.filter((row) => row.case.startsWith(`${family}/`));
  const [effect, exported] = [timesOf(of("effect")), timesOf(of("onnxruntime"))];
  const [layers, scale, listed] = [of("layers").at(-1), of("scale"), of("reported")];
  return {
    ...effect,
    cases: rows.length,
    ...(exported && {
      onnxruntime: exported.geomean,
      onnxruntimeWorst: exported.worst,
      onnxruntimeSlower: exported.slower,
    }),
    ...(layers && { layersOver2: 1 / layers.ratio }),
    ...(scale.length > 0 && { slowestNs: Math.max(...scale.map((row) => row.ours)) }),
    ...(listed.length > 0 && {
      reported: listed.length,
      found: listed.filter((row) => row.detail?.found === 1).length,
    }),
  };
}

/** `slower`: rows that are slower beyond noise, whose whole interval is below one. */
function timesOf(rows: readonly BenchRow[]) {
  if (rows.length === 0) return undefined;
  const ratios = rows.map((row) => row.ratio);
  return {
    geomean: geometricMean(ratios),
    worst: Math.min(...ratios),
    slower: rows.filter((row) => row.high < 1).length,
  };
}
