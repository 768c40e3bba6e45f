/**
 * The model table, same threads. As WebAssembly against onnxruntime-web, the same technique (suite
 * `peers` says how far that is from native code); as machine code (`cpu`: the best that runs here, or a
 * target by name) against onnxruntime-node.
 */
import { atBatch } from "../models/batch.ts";
import { modelTable } from "../models/table.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import { ortWebRuntime } from "../sessions/ort-web.ts";
import { wavetileRuntime } from "../sessions/wavetile.ts";
import { modelCases } from "./model-cases.ts";
import { summariseModels } from "./model-summary.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { Suite } from "./suite.ts";

export const modelsSuite: Suite = {
  name: "models",
  summary: "real models against onnxruntime-web and onnxruntime-node",
  targets: ["wasm", "cpu", "x64-avx512-vnni", "x64-avx512", "x64-avx2"],
  peers: onnxruntimePeers,
  takesBatch: true,
  load: async ({ threads, target, batch }) => {
    const ours = wavetileRuntime(target, threads);
    const peer = target === "wasm" ? await ortWebRuntime(threads) : ortNodeRuntime(threads);
    const versions = [ours, peer].map(({ name, version }) => [name, version]);
    return {
      versions: Object.fromEntries(versions),
      summarise: summariseModels,
      ...modelCases([ours, peer], batch === undefined ? modelTable : atBatch(modelTable, batch)),
    };
  },
};
