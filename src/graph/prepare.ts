/**
 * The graph passes of the compiler in order: batch norms into the weights before them, composites into
 * core ops, constants folded, equal nodes once, dead ones gone. Constants that are too large to stand
 * in the graph join the model's weights.
 */
import type { Tensor } from "../semantics/tensor.ts";
import type { Graph, Model, WeightStore } from "./graph.ts";
import { eliminateCommonSubexpressions, eliminateDeadCode } from "./transforms/clean.ts";
import { expandComposites } from "./transforms/expand-composites.ts";
import { foldBatchNorm } from "./transforms/fold-batch-norm.ts";
import { foldConstants } from "./transforms/fold-constants.ts";
import type { Rebuilt } from "./transforms/rebuild.ts";

/** Elements and operations up to which a constant node is computed ahead. */
const foldLimits = { elements: 2 ** 22, flops: 2 ** 27 };

export function prepareModel(model: Model): Model {
  const passes: readonly ((graph: Graph, weights: WeightStore) => Rebuilt)[] = [
    foldBatchNorm,
    (graph) => expandComposites(graph),
    (graph, weights) => foldConstants(graph, { ...foldLimits, weights }),
    eliminateCommonSubexpressions,
  ];
  let { graph, weights } = model;
  for (const pass of passes) {
    const rebuilt = pass(eliminateDeadCode(graph), weights);
    graph = rebuilt.graph;
    weights = withConstants(weights, rebuilt.constants);
  }
  return { graph: eliminateDeadCode(graph), weights };
}

function withConstants(store: WeightStore, constants: ReadonlyMap<string, Tensor>): WeightStore {
  if (constants.size === 0) return store;
  return { read: (key) => constants.get(key) ?? store.read(key) };
}

/** Reads the elements of any weight of a model by the name of its value. */
export function weightReader(model: Model): (name: string) => Tensor {
  const sources = new Map(
    model.graph.weights.map((w) => [model.graph.values[w.value]!.name, w.source]),
  );
  return (name) => {
    const source = sources.get(name);
    if (source?.kind === "inline") return source.tensor;
    return model.weights.read(source?.key ?? name);
  };
}
