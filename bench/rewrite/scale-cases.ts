/**
 * All of rewriting (parts, saturation, extraction, splicing, prices) on whole networks, in processor time
 * against a limit of three seconds; every run has to give the same text.
 */
import { rewriteFor } from "../../src/compile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import type { Model } from "../../src/graph/graph.ts";
import { printGraph } from "../../src/graph/graph-text.ts";
import { prepareModel } from "../../src/graph/prepare.ts";
import { noWeights } from "../../src/interp/graph.ts";
import type { Target } from "../../src/target/target.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor } from "../models/random-inputs.ts";
import { modelTable } from "../models/table.ts";
import type { BenchRow, FailedCase } from "../report.ts";
import { importOptions, unwrap } from "../sessions/import-hints.ts";
import type { ForeignCase } from "../suites/suite.ts";
import { processorNs } from "./processor-time.ts";
import { wholeNetworks } from "./whole-networks.ts";

const limitNs = 3e9;
const attempts = 3;
const peerName = "limit of 3 s";
/** The compiler prices whole graphs when it schedules them. */
export const asCompiled = { wholePrices: false } as const;

export function scaleCases(target: Target): readonly ForeignCase[] {
  const built = Object.entries(wholeNetworks).map(([name, graph]) =>
    scaleCase(name, () => ({ graph: graph(), weights: noWeights }), target),
  );
  const read = modelTable
    .filter((row) => row.name.startsWith("ppocr"))
    .map((row) => {
      const open = (): Model => {
        const options = importOptions(hintsFor(row));
        return prepareModel(unwrap(importOnnx(unwrap(fetchModel(row)), options)));
      };
      return scaleCase(row.name, open, target);
    });
  return [...built, ...read];
}

function scaleCase(network: string, open: () => Model, target: Target): ForeignCase {
  const name = `scale/${network}`;
  const measure = async (): Promise<BenchRow | FailedCase> => {
    const model = open();
    const texts = new Set<string>();
    const times = Array.from({ length: attempts }, () =>
      processorNs(() => {
        texts.add(
          printGraph(unwrap(rewriteFor(model, target, undefined, asCompiled)).best.model.graph),
        );
      }),
    );
    if (texts.size > 1) {
      const reason = `${texts.size} different graphs came out of ${attempts} runs`;
      return { case: name, peerName, kind: "wrong", reason };
    }
    const ours = Math.min(...times);
    const ratio = limitNs / ours;
    const figures = { ours, peer: limitNs, peerName, ratio, low: ratio, high: ratio };
    // The first run's code is not compiled yet.
    const beside = { nodes: model.graph.nodes.length, "first, ms": times[0]! / 1e6 };
    return { case: name, ...figures, n: attempts, onlyWorst: true, beside };
  };
  return { case: name, peerName, measure };
}
