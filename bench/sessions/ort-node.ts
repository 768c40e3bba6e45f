/** onnxruntime-node behind the Session interface: the reference of the demo and a peer of the benches. */
import { createRequire } from "node:module";
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import { fromOrtTensors, infosOf, toOrtTensors } from "./ort-tensors.ts";
import type { Runtime, Session } from "./session.ts";

/** Sequential execution, all graph optimisations, `threads` threads inside an operator. */
export function ortNodeRuntime(threads: number): Runtime {
  const { version } = createRequire(import.meta.url)("onnxruntime-node/package.json") as {
    version: string;
  };
  return {
    name: "onnxruntime-node",
    version,
    threads,
    open: (model) => openSession(model, threads),
  };
}

async function openSession(model: Uint8Array, threads: number): Promise<Session> {
  const session = await InferenceSession.create(model, {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
    logSeverityLevel: 3,
  });
  return {
    inputs: infosOf(session.inputMetadata),
    outputs: infosOf(session.outputMetadata),
    run: async (feeds) => fromOrtTensors(await session.run(toOrtTensors(feeds, OrtTensor))),
    release: () => session.release(),
  };
}
