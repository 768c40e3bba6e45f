/**
 * The nine light networks of the ONNX suite with the constant weights that they come with, against the
 * outputs that stand beside them, at the suite's own tolerances. The suite's input is a ramp over all
 * elements from 0 up to below 1 (onnx.backend.test.runner, generate_dummy_data). Target `oracle`: import and
 * float64 semantics; `wasm` and `cpu`: compiled and run on one thread.
 */
import { lightNames, readLightFile } from "../../bench/models/export/light.ts";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { load } from "../../src/commands/library/load.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { constantValue } from "../../src/semantics/index-expr.ts";
import { fromRef, type Tensor, toRef } from "../../src/semantics/tensor.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import { differenceOf } from "../conformance/compare-values.ts";
import { readValueFile } from "../conformance/value-file.ts";

export const lightModels: Campaign = {
  name: "light-models",
  summary: "the nine light networks of the ONNX suite against their expected outputs",
  targets: ["wasm", "cpu", "oracle"],
  defaultCount: lightNames.length,
  names: () => lightNames,
  open: async (target) => async (seed) => {
    const name = lightNames[seed % lightNames.length]!;
    const model = readLightFile(`light_${name}.onnx`);
    if (!model.ok) return { kind: "skipped", reason: model.diagnostics[0]!.message };
    const expected = unwrap(readLightFile(`light_${name}_output_0.pb`));
    return judge(await outputOf(model.value, target), expected);
  },
};

function judge(found: Tensor, expected: Uint8Array): Finding {
  const problem = differenceOf(found, readValueFile(expected, undefined));
  return problem === undefined ? passed : { kind: "failed", reason: `the output ${problem}` };
}

async function outputOf(bytes: Uint8Array, target: string): Promise<Tensor> {
  const imported = unwrap(importOnnx(bytes));
  const { graph, weights, inputNames } = imported;
  const shape = graph.values[graph.inputs[0]!]!.type.shape.map((e) => constantValue(e)!);
  const input = ramp(shape);
  if (target === "oracle") return fromRef(unwrap(runGraph(graph, [toRef(input)], weights))[0]!);
  const model = await load(bytes, { target, threads: 1 });
  const outputs = model.run({ [inputNames[0]!]: input });
  await model.dispose();
  return Object.values(outputs)[0]!;
}

function ramp(shape: readonly number[]): Tensor {
  const count = shape.reduce((a, n) => a * n, 1);
  const data = Float32Array.from({ length: count }, (_, i) => i / count);
  return { dtype: "f32", shape, data };
}
