/** Whether a graph computes with weights that it dequantizes. */
import type { Graph } from "../graph/graph.ts";

/**
 * Runtimes run what stands between such a dequantization and a quantization as one operator on integers, and
 * know it by this form alone: rewritten, with its weights folded, it would run in floats.
 */
export function hasQuantisedWeights({ nodes, weights }: Graph): boolean {
  const stored = new Set(weights.map((w) => w.value));
  return nodes.some(
    ({ op, inputs }) =>
      op === "dequantize" &&
      stored.has(inputs[0]!) &&
      inputs.slice(1).every((id) => stored.has(id)),
  );
}
