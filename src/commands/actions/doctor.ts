/** What this machine offers: Node, cores, WebAssembly features, optional packages, folders. */

import { runnableTargets } from "../../runtime/create-session.ts";
import { cudaName } from "../../runtime/cuda/driver-version.ts";
import { type CudaFeatures, probeCuda } from "../../runtime/cuda/features.ts";
import { folderOf } from "../../runtime/files/folders.ts";
import { installedVersion } from "../../runtime/files/installed-package.ts";
import { nodeVersion } from "../../runtime/files/node-version.ts";
import { probeWasmFeatures } from "../../runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../runtime/wasm/node-worker-host.ts";
import { type Diagnostic, ok, type Result } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { version } from "../version.ts";

const peers = ["onnxruntime-node", "onnxruntime-web"];

export const doctorAction: Action<Record<string, never>> = async () => {
  const features = probeWasmFeatures();
  const gpu = probeCuda();
  const data = {
    wavetile: version,
    node: nodeVersion,
    cores: nodeWorkerHost.parallelism,
    webAssembly: features,
    targets: runnableTargets().names,
    cuda: describeCuda(gpu),
    peers: Object.fromEntries(peers.map((name) => [name, installedVersion(name) ?? null])),
    folders: { cache: folderOf("cache"), data: folderOf("data"), config: folderOf("config") },
  };
  const text = [
    `wavetile ${data.wavetile}, Node ${data.node}, ${data.cores} cores`,
    `WebAssembly: ${Object.entries(features)
      .map(([k, v]) => `${k} ${v}`)
      .join(", ")}`,
    `targets: ${data.targets.join(", ") || "none: this engine has no SIMD"}`,
    ...textOfCuda(data.cuda),
    ...Object.entries(data.peers).map(
      ([name, v]) => `${name}: ${v ?? `not installed (npm install ${name})`}`,
    ),
    ...Object.entries(data.folders).map(([kind, path]) => `${kind}: ${path}`),
  ].join("\n");
  return ok({ data, text }, gpu.ok ? gpu.warnings : []);
};

type CudaReport = ReturnType<typeof describeCuda>;

/** The GPU, and whether its driver takes the PTX that is written for it. */
function describeCuda(features: Result<CudaFeatures>) {
  if (!features.ok) {
    const [{ message, notes, help }] = features.diagnostics as [Diagnostic];
    const why = [message, ...notes.slice(0, 1)].join(": ");
    return { device: null, targets: [], why, cure: help ?? null };
  }
  const { device, driverVersion, driversNeeded, targets } = features.value;
  const driver = {
    cuda: cudaName(driverVersion),
    needed: cudaName(driversNeeded.least.cuda),
    neededForAll: cudaName(driversNeeded.most.cuda),
  };
  return { device, driver, targets };
}

function textOfCuda(cuda: CudaReport): readonly string[] {
  if (cuda.driver === undefined)
    return [`CUDA: ${cuda.why}`, ...(cuda.cure === null ? [] : [`  cure: ${cuda.cure}`])];
  const { device, driver, targets } = cuda;
  const needs = [...new Set([driver.needed, driver.neededForAll])];
  return [
    `CUDA: ${device}, targets ${targets.join(", ")}`,
    `CUDA driver: ${driver.cuda}; kernels need ${needs.join(", some ")}`,
  ];
}
