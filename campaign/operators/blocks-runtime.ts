/** Models compiled for a GPU and run in the program interpreter, behind the Session interface. */
import { importOptions, unwrap } from "../../bench/sessions/import-hints.ts";
import type { Runtime } from "../../bench/sessions/session.ts";
import { describeValue, fromStored, toStored } from "../../bench/sessions/stored-tensors.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { onBlocks } from "../conformance/evaluate-case.ts";

export const blocksRuntime: Runtime = {
  name: "the program for a GPU",
  version: "interpreted",
  threads: 1,
  open: async (bytes, hints = {}) => {
    const model = unwrap(importOnnx(bytes, importOptions(hints)));
    const { graph, inputNames, outputNames } = model;
    const describe = (names: readonly string[], ids: readonly number[]) =>
      names.map((name, i) => describeValue(name, graph.values[ids[i]!]!.type));
    return {
      inputs: describe(inputNames, graph.inputs),
      outputs: describe(outputNames, graph.outputs),
      run: async (feeds) => {
        const inputs = inputNames.map((name) => toStored(feeds[name]!));
        const found = await onBlocks(model, inputs);
        return Object.fromEntries(found.map((t, i) => [outputNames[i]!, fromStored(t)]));
      },
      release: async () => {},
    };
  },
};
