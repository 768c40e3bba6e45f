/** Models in onnxruntime-node, where it can run them at all. */
import { ortNodeRuntime } from "../bench/sessions/ort-node.ts";
import { lacksKernels as isLacking, noKernels } from "../bench/sessions/peer-kernels.ts";
import type { ModelHints, Session } from "../bench/sessions/session.ts";

/** Undefined for element types that the peer lacks, such as bf16 on processors. */
export async function openPeer(bytes: Uint8Array, hints: ModelHints): Promise<Session | undefined> {
  try {
    return await ortNodeRuntime(1).open(bytes, hints);
  } catch (error) {
    if (isLacking(error)) return undefined;
    throw error;
  }
}

/** Why such a model is skipped. */
export function lacksKernels(name: string): string {
  return noKernels("onnxruntime-node", name);
}
