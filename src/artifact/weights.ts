/** The elements of a program's weights by the names of its buffers' sources. */
import type { Model } from "../graph/graph.ts";
import type { Tensor } from "../semantics/tensor.ts";
import { wideTensor } from "../semantics/wide-tensor.ts";
import { invariant } from "../support/invariant.ts";
import type { ArtifactMeta } from "./artifact.ts";

/** Reads a weight as the graph has it, or in the shape and type of a view of it. */
export function readerOfWeights(
  { graph, weights }: Model,
  views: ArtifactMeta["views"],
): (name: string) => Tensor {
  const sources = new Map(graph.weights.map((w) => [graph.values[w.value]!.name, w.source]));
  const reshaped = new Map(views.map((v) => [v.name, v]));
  const read = (name: string): Tensor => {
    const view = reshaped.get(name);
    if (view) {
      const base = read(view.of);
      return { ...(view.dtype ? wideTensor(base) : base), shape: view.shape };
    }
    const source = sources.get(name);
    invariant(source, () => `no weight ${name}`);
    return source.kind === "inline" ? source.tensor : weights.read(source.key);
  };
  return read;
}
