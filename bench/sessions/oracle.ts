/**
 * Wavetile's oracle behind the Session interface: the imported graph, composites replaced by their
 * definitions, run node by node in float64. Slow; it says whether import and semantics are right
 * before anything is compiled.
 */
import { type ImportedModel, importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import type { WeightStore } from "../../src/graph/graph.ts";
import { expandComposites } from "../../src/graph/transforms/expand-composites.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { fromRef, toRef } from "../../src/semantics/tensor.ts";
import { invariant } from "../../src/support/invariant.ts";
import { importOptions, unwrap } from "./import-hints.ts";
import type { Runtime, Session, Tensors } from "./session.ts";
import { describeValue, fromStored, toStored } from "./stored-tensors.ts";

export const oracleRuntime: Runtime = {
  name: "oracle",
  version: "float64",
  threads: 1,
  open: async (model, hints = {}) => openSession(unwrap(importOnnx(model, importOptions(hints)))),
};

function openSession(model: ImportedModel): Session {
  const { graph, constants } = expandComposites(model.graph);
  const weights: WeightStore = {
    read: (key) => constants.get(key) ?? model.weights.read(key),
  };
  const describe = (names: readonly string[], ids: readonly number[]) =>
    names.map((name, i) => describeValue(name, graph.values[ids[i]!]!.type));
  return {
    inputs: describe(model.inputNames, graph.inputs),
    outputs: describe(model.outputNames, graph.outputs),
    run: async (feeds) => {
      const inputs = model.inputNames.map((name) => toRef(toStored(takeFeed(feeds, name))));
      const results = unwrap(runGraph(graph, inputs, weights));
      return Object.fromEntries(
        results.map((tensor, i) => [model.outputNames[i]!, fromStored(fromRef(tensor))]),
      );
    },
    release: async () => {},
  };
}

function takeFeed(feeds: Tensors, name: string) {
  const tensor = feeds[name];
  invariant(tensor !== undefined, () => `no input ${name} among ${Object.keys(feeds).join(", ")}`);
  return tensor;
}
