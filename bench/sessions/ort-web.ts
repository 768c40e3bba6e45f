/**
 * onnxruntime-web (WebAssembly) behind the Session interface. Its thread count belongs to the
 * process: it is fixed by the first session, so one process measures one thread count. The package
 * is loaded only when a suite asks for it.
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { invariant } from "../../src/support/invariant.ts";
import { installedVersion } from "../installed.ts";
import { fromOrtTensors, infosOf, toOrtTensors } from "./ort-tensors.ts";
import type { Runtime, Session } from "./session.ts";

type OrtWeb = typeof import("onnxruntime-web");

export async function ortWebRuntime(threads: number): Promise<Runtime> {
  const ort = await import("onnxruntime-web");
  const fixed = ort.env.wasm.numThreads;
  invariant(
    fixed === undefined || fixed === 0 || fixed === threads,
    () => `onnxruntime-web already runs with ${fixed} threads, not ${threads}`,
  );
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  const version = installedVersion("onnxruntime-web");
  return {
    name: "onnxruntime-web",
    version,
    threads,
    open: (model, { path } = {}) => openSession(ort, model, path),
  };
}

async function openSession(ort: OrtWeb, model: Uint8Array, path?: string): Promise<Session> {
  const externalData = path === undefined ? [] : [dataBeside(path)];
  const session = await ort.InferenceSession.create(model, {
    executionProviders: ["wasm"],
    logSeverityLevel: 3,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
    externalData,
  });
  return {
    inputs: infosOf(session.inputMetadata),
    outputs: infosOf(session.outputMetadata),
    // Into arrays that are given it writes nothing (1.30): its results are new ones.
    run: async (feeds) => fromOrtTensors(await session.run(toOrtTensors(feeds, ort.Tensor))),
    release: () => session.release(),
  };
}

/** The weights beside a model, which have its name and `_data`. */
function dataBeside(path: string): { readonly path: string; readonly data: Uint8Array } {
  const data = `${path}_data`;
  return { path: basename(data), data: readFileSync(data) };
}
