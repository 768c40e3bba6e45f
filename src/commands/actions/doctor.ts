/** What this machine offers: Node, cores, WebAssembly features, optional packages, folders. */

import { runnableTargets } from "../../runtime/create-session.ts";
import { probeCuda } from "../../runtime/cuda/features.ts";
import { folderOf } from "../../runtime/files/folders.ts";
import { installedVersion } from "../../runtime/files/installed-package.ts";
import { nodeVersion } from "../../runtime/files/node-version.ts";
import { probeWasmFeatures } from "../../runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../runtime/wasm/node-worker-host.ts";
import { type Diagnostic, ok } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { version } from "../version.ts";

const peers = ["onnxruntime-node", "onnxruntime-web"];

export const doctorAction: Action<Record<string, never>> = async () => {
  const features = probeWasmFeatures();
  const data = {
    wavetile: version,
    node: nodeVersion,
    cores: nodeWorkerHost.parallelism,
    webAssembly: features,
    targets: runnableTargets().names,
    cuda: describeCuda(),
    peers: Object.fromEntries(peers.map((name) => [name, installedVersion(name) ?? null])),
    folders: { cache: folderOf("cache"), data: folderOf("data"), config: folderOf("config") },
  };
  const text = [
    `wavetile ${data.wavetile}, Node ${data.node}, ${data.cores} cores`,
    `WebAssembly: ${Object.entries(features)
      .map(([k, v]) => `${k} ${v}`)
      .join(", ")}`,
    `targets: ${data.targets.join(", ") || "none: this engine has no SIMD"}`,
    `CUDA: ${data.cuda.device ? `${data.cuda.device}, targets ${data.cuda.targets.join(", ")}` : data.cuda.why}`,
    ...Object.entries(data.peers).map(
      ([name, v]) => `${name}: ${v ?? `not installed (npm install ${name})`}`,
    ),
    ...Object.entries(data.folders).map(([kind, path]) => `${kind}: ${path}`),
  ].join("\n");
  return ok({ data, text });
};

function describeCuda() {
  const features = probeCuda();
  if (features.ok) return { device: features.value.device, targets: features.value.targets };
  const [{ message, notes }] = features.diagnostics as [Diagnostic];
  return { device: null, targets: [], why: [message, ...notes.slice(0, 1)].join(": ") };
}
