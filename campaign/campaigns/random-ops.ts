/**
 * Random small graphs, computed by the float64 oracle and by the stage under test. Target `wasm`:
 * compiled, and run as WebAssembly on one thread. Target `nests`: the loop nests of every node, run
 * by the nest interpreter.
 */
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { compileModel } from "../../src/compile.ts";
import type { Graph, Model } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { checkNests } from "../../src/interp/check-nests.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { WasmSession } from "../../src/runtime/wasm/session.ts";
import { dtypes } from "../../src/semantics/dtype.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { fromRef, type RefTensor, randomRef, toRef } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { type Campaign, type Finding, passed, type Trial } from "../campaign.ts";
import { type RandomGraph, randomGraph } from "../random-graph.ts";

export const randomOps: Campaign = {
  name: "random-ops",
  summary: "random small graphs, each stage against the oracle",
  targets: ["wasm", "nests"],
  defaultCount: 2000,
  open: async (target) => (target === "wasm" ? wasmTrial : nestsTrial),
};

const nestsTrial: Trial = (seed) => {
  const { graph, extents } = randomGraph(seed);
  checkNests(graph, { rng: new Rng(seed), extents });
  return passed;
};

const wasmTrial: Trial = async (seed) => {
  const drawn = randomGraph(seed);
  const inputs = drawInputs(drawn, new Rng(seed));
  const expected = unwrap(runGraph(drawn.graph, inputs));
  const found = await runCompiled(drawn.graph, inputs);
  for (const [i, want] of expected.entries()) {
    const reason = firstDifference(found[i]!, want);
    if (reason !== undefined) return { kind: "failed", reason: `output ${i}: ${reason}` };
  }
  return passed satisfies Finding;
};

function drawInputs({ graph, extents }: RandomGraph, rng: Rng): RefTensor[] {
  const symbols = new Map(Object.entries(extents));
  return graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    return randomRef(
      dtype,
      shape.map((d) => evaluate(d, symbols)),
      rng,
    );
  });
}

/** Compiles for this engine's WebAssembly and runs on the calling thread alone. */
async function runCompiled(graph: Graph, inputs: readonly RefTensor[]): Promise<RefTensor[]> {
  const features = { ...probeWasmFeatures(), threads: false };
  const source: Model = { graph, weights: noWeights };
  const { model, nests, plan } = unwrap(compileModel(source, { target: targets.get("wasm")! }));
  const session = unwrap(
    WasmSession.create(plan.program, {
      threads: 1,
      features,
      host: nodeWorkerHost,
      weight: weightReader(model),
    }),
  );
  session.poison();
  const { values, inputs: ids } = model.graph;
  const feeds = ids.map((id, i) => [values[id]!.name, fromRef(inputs[i]!)] as const);
  const outputs = unwrap(session.run(Object.fromEntries(feeds)));
  await session.dispose();
  return nests.outputs.map((name) => toRef(outputs[name]!));
}

/** Integers must be equal; floats equal within the rounding of the graphs that are drawn. */
function firstDifference(found: RefTensor, want: RefTensor): string | undefined {
  const type = (t: RefTensor) => `${t.dtype}[${t.shape.join(", ")}]`;
  if (type(found) !== type(want)) return `${type(found)}, the oracle says ${type(want)}`;
  const relative = dtypes[want.dtype].format === undefined ? 0 : floatTolerance;
  for (let i = 0; i < want.data.length; i++) {
    const [a, b] = [found.data[i]!, want.data[i]!];
    if (Object.is(a, b) || a === b) continue;
    const close = Math.abs(Number(a) - Number(b)) <= relative * Math.max(1, Math.abs(Number(b)));
    if (!close) return `element ${i} is ${a}, the oracle says ${b}`;
  }
  return undefined;
}

/** Six ops over sums of at most a few hundred terms below 64, each rounded to float32. */
const floatTolerance = 2 ** -23 * 64;
