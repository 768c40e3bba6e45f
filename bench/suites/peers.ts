/**
 * The two onnxruntime packages against each other, native and WebAssembly: how far apart the peers
 * of the other suites are on this machine, and a check of the harness with nothing of ours in it.
 * "Ours" is onnxruntime-node here.
 */
import { modelTable } from "../models/table.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import { ortWebRuntime } from "../sessions/ort-web.ts";
import { modelCases } from "./model-cases.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { Suite } from "./suite.ts";

export const peersSuite: Suite = {
  name: "peers",
  summary: "onnxruntime-node against onnxruntime-web on the model table",
  targets: ["cpu"],
  peers: onnxruntimePeers,
  load: async ({ threads }) => {
    const native = ortNodeRuntime(threads);
    const web = await ortWebRuntime(threads);
    return {
      versions: { [native.name]: native.version, [web.name]: web.version },
      ...modelCases([native, web], modelTable),
    };
  },
};
