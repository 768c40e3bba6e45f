/**
 * Graphs written as ONNX and run by onnxruntime-node, as they are and rewritten by the prices of
 * WebAssembly. Target `random`: random graphs (of core ops, and by turns of composites and control flow)
 * against the oracle. Target `models`: the model table on random inputs, against the model's own file
 * within its rounding, `models-cpu` by the prices of x86-64; a model that cannot be fetched, or whose types
 * onnxruntime lacks, is skipped.
 */
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import { fetchModel } from "../../bench/models/fetch.ts";
import { hintsFor, randomInputs } from "../../bench/models/random-inputs.ts";
import { roundingOf } from "../../bench/models/rounding.ts";
import { modelTable } from "../../bench/models/table.ts";
import { countElements, toleranceOf, worstDifference } from "../../bench/sessions/compare.ts";
import { exportedRuntime, rewriteForExport } from "../../bench/sessions/exported.ts";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { ortNodeRuntime } from "../../bench/sessions/ort-node.ts";
import { fromOrtTensors, toOrtTensors } from "../../bench/sessions/ort-tensors.ts";
import type { Tensors } from "../../bench/sessions/session.ts";
import { fromStored, toStored } from "../../bench/sessions/stored-tensors.ts";
import { exportOnnx } from "../../src/frontend/onnx/export/export-model.ts";
import type { Model } from "../../src/graph/graph.ts";
import { randomGraph as randomComposed } from "../../src/graph/random-graph.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { fromRef, toRef } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import { lacksKernels, openPeer } from "../open-peer.ts";
import { type RandomGraph, randomGraph } from "../random-graph.ts";
import { drawInputs, firstDifference } from "../random-values.ts";

const wasm = targets.get("wasm")!;
/** Whose prices decide about the models. */
const pricedBy: Readonly<Record<string, Target>> = {
  models: wasm,
  "models-cpu": targets.get("x64-avx512")!,
};
const cases = modelTable.flatMap((row) => row.cases.map((modelCase) => ({ row, modelCase })));

export const exported: Campaign = {
  name: "export",
  summary: "graphs written as ONNX, as they are and rewritten, run by onnxruntime-node",
  targets: ["random", ...Object.keys(pricedBy)],
  defaultCount: 500,
  names: (name) =>
    name in pricedBy ? cases.map(({ row, modelCase }) => `${row.name}/${modelCase.name}`) : [],
  open: async (name) => {
    const target = pricedBy[name];
    return target ? (seed) => modelTrial(seed, target) : randomTrial;
  },
};

async function randomTrial(seed: number): Promise<Finding> {
  const drawn: RandomGraph =
    seed % 2 === 0
      ? randomGraph(seed)
      : {
          graph: randomComposed({ seed, nodes: 8, symbolic: seed % 4 === 1 }),
          extents: { N: 1 + (seed % 5) },
        };
  const inputs = drawInputs(drawn, new Rng(seed));
  const expected = unwrap(runGraph(drawn.graph, inputs));
  const { graph } = drawn;
  const feeds = Object.fromEntries(
    graph.inputs.map((id, i) => [graph.values[id]!.name, fromStored(fromRef(inputs[i]!))]),
  );
  const source: Model = { graph, weights: noWeights };
  const names = {
    inputNames: graph.inputs.map((id) => graph.values[id]!.name),
    outputNames: graph.outputs.map((_, i) => `y${i}`),
  };
  for (const [what, model] of [
    ["as it is", source],
    ["rewritten", rewriteForExport(source, wasm)],
  ] as const) {
    const found = await runBytes(unwrap(exportOnnx(model, names)).bytes, feeds);
    for (const [i, want] of expected.entries()) {
      const reason = firstDifference(toRef(toStored(found[`y${i}`]!)), want);
      if (reason !== undefined) {
        return { kind: "failed", reason: `${what}, output ${i}: ${reason}` };
      }
    }
  }
  return passed;
}

async function runBytes(bytes: Uint8Array, feeds: Tensors): Promise<Tensors> {
  const session = await InferenceSession.create(bytes, { logSeverityLevel: 4 });
  const results = fromOrtTensors(await session.run(toOrtTensors(feeds, OrtTensor)));
  await session.release();
  return results;
}

async function modelTrial(seed: number, target: Target): Promise<Finding> {
  const { row, modelCase } = cases[seed % cases.length]!;
  const fetched = fetchModel(row);
  if (!fetched.ok) return { kind: "skipped", reason: fetched.diagnostics[0]!.message };
  const inputs = randomInputs(modelCase, new Rng(seed));
  const runtime = ortNodeRuntime(1);
  const session = await openPeer(fetched.value, hintsFor(row));
  if (!session) return { kind: "skipped", reason: lacksKernels(row.name) };
  const expected = await session.run(inputs);
  await session.release();
  const rounding = unwrap(roundingOf(fetched.value));
  const tolerance = toleranceOf(rounding, countElements(expected));
  const notes: string[] = [];
  for (const ours of [exportedRuntime(runtime), exportedRuntime(runtime, target)]) {
    const opened = await ours.open(fetched.value, hintsFor(row));
    const worst = worstDifference(await opened.run(inputs), expected, rounding);
    await opened.release();
    const found = `differs by ${worst.toExponential(2)}, allowed ${tolerance.toExponential(2)}`;
    if (worst > tolerance) {
      return { kind: "failed", reason: `${row.name} ${modelCase.name}, ${ours.name}: ${found}` };
    }
    notes.push(`${ours.name} ${found}`);
  }
  return { kind: "passed", note: notes.join("; ") };
}
