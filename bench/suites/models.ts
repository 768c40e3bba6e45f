/**
 * The model table on Wavetile's WebAssembly against onnxruntime-web (the same technique) and
 * onnxruntime-node (native code, for orientation), same threads.
 */
import { modelTable } from "../models/table.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import { ortWebRuntime } from "../sessions/ort-web.ts";
import { wavetileWasmRuntime } from "../sessions/wavetile-wasm.ts";
import { modelCases } from "./model-cases.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { Suite } from "./suite.ts";

export const modelsSuite: Suite = {
  name: "models",
  summary: "real models against onnxruntime-web and onnxruntime-node",
  targets: ["wasm"],
  peers: onnxruntimePeers,
  load: async ({ threads }) => {
    const ours = wavetileWasmRuntime(threads);
    const peers = [await ortWebRuntime(threads), ortNodeRuntime(threads)];
    const versions = [ours, ...peers].map(({ name, version }) => [name, version]);
    return {
      versions: Object.fromEntries(versions),
      cases: modelCases(ours, peers, modelTable),
    };
  },
};
