/** onnxruntime-node behind the Session interface: the reference of the demo and a peer of the benches. */
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import { installedVersion } from "../installed.ts";
import { fromOrtTensors, infosOf, toOrtTensors } from "./ort-tensors.ts";
import type { Runtime, Session } from "./session.ts";

/** Sequential execution, all graph optimisations, `threads` threads inside an operator. */
export function ortNodeRuntime(threads: number): Runtime {
  const version = installedVersion("onnxruntime-node");
  return {
    name: "onnxruntime-node",
    version,
    threads,
    open: (model, { path } = {}) => openSession(path ?? model, threads),
  };
}

/** @param model its bytes, or the path of its file */
async function openSession(model: Uint8Array | string, threads: number): Promise<Session> {
  const options: InferenceSession.SessionOptions = {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
    logSeverityLevel: 3,
    // Waiting threads that keep spinning after a run would slow the other side of an interleaved pair.
    extra: { session: { force_spinning_stop: "1" } },
  };
  const session =
    typeof model === "string"
      ? await InferenceSession.create(model, options)
      : await InferenceSession.create(model, options);
  return {
    inputs: infosOf(session.inputMetadata),
    outputs: infosOf(session.outputMetadata),
    run: async (feeds, into) => {
      const taken = toOrtTensors(feeds, OrtTensor);
      if (!into) return fromOrtTensors(await session.run(taken));
      return fromOrtTensors(await session.run(taken, toOrtTensors(into, OrtTensor)));
    },
    release: () => session.release(),
  };
}
