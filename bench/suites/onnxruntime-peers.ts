/** The onnxruntime packages as peers of a suite, in the versions that package.json pins. */
import type { PeerPackage } from "./suite.ts";

export const onnxruntimePeers: readonly PeerPackage[] = [
  { name: "onnxruntime-node", version: "1.30.0" },
  { name: "onnxruntime-web", version: "1.30.0" },
];
