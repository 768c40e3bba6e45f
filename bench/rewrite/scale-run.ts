/**
 * `node --import tsx bench/rewrite/scale-run.ts NETWORK TARGET`: rewrites a network as the compiler does, twice in
 * a process of its own, and prints one line of JSON: processor time of both runs, hashes of what came out.
 */
import { createHash } from "node:crypto";
import { rewriteFor } from "../../src/compile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import type { Model } from "../../src/graph/graph.ts";
import { printGraph } from "../../src/graph/graph-text.ts";
import { prepareModel } from "../../src/graph/prepare.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { forSearch } from "../../src/rewrite/rewrite-model.ts";
import { invariant } from "../../src/support/invariant.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor } from "../models/random-inputs.ts";
import { findModel } from "../models/table.ts";
import { importOptions, unwrap } from "../sessions/import-hints.ts";
import { chooseTarget } from "../sessions/wavetile.ts";
import { processorNs } from "./processor-time.ts";
import type { ScaleRun } from "./scale-cases.ts";
import { wholeNetworks } from "./whole-networks.ts";

function openNetwork(name: string): Model {
  const graph = wholeNetworks[name];
  if (graph) return { graph: graph(), weights: noWeights };
  const row = findModel(name);
  invariant(row, () => `no network ${name}`);
  const options = importOptions(hintsFor(row));
  return prepareModel(unwrap(importOnnx(unwrap(fetchModel(row)), options)));
}

const [network = "", targetName = ""] = process.argv.slice(2);
const target = chooseTarget(targetName);
const model = openNetwork(network);
const hashes: string[] = [];
const rewrite = (): void => {
  const { best } = unwrap(rewriteFor(model, target, undefined, forSearch));
  hashes.push(createHash("sha256").update(printGraph(best.model.graph)).digest("hex"));
};
const run: ScaleRun = {
  firstNs: processorNs(rewrite),
  againNs: processorNs(rewrite),
  nodes: model.graph.nodes.length,
  hashes,
};
process.stdout.write(`${JSON.stringify(run)}\n`);
