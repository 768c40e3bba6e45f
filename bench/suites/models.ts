/**
 * The model table, same threads. As WebAssembly: against onnxruntime-web (the same technique) and
 * onnxruntime-node (native code, for orientation). As machine code (`cpu`: the best that runs here, or
 * a target by name): against onnxruntime-node.
 */
import { modelTable } from "../models/table.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import { ortWebRuntime } from "../sessions/ort-web.ts";
import { wavetileRuntime } from "../sessions/wavetile.ts";
import { modelCases } from "./model-cases.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { Suite } from "./suite.ts";

export const modelsSuite: Suite = {
  name: "models",
  summary: "real models against onnxruntime-web and onnxruntime-node",
  targets: ["wasm", "cpu", "x64-avx512", "x64-avx2"],
  peers: onnxruntimePeers,
  load: async ({ threads, target }) => {
    const ours = wavetileRuntime(target, threads);
    const web = target === "wasm" ? [await ortWebRuntime(threads)] : [];
    const peers = [...web, ortNodeRuntime(threads)];
    const versions = [ours, ...peers].map(({ name, version }) => [name, version]);
    return {
      versions: Object.fromEntries(versions),
      cases: modelCases(ours, peers, modelTable),
    };
  },
};
