/**
 * Random small graphs, computed by the float64 oracle and by the stage under test. Target `wasm`:
 * compiled, and run as WebAssembly on one thread. Target `cpu`: compiled for one of the x86-64 targets
 * that run here, on one to three threads, every buffer in pages of its own between pages that fault.
 * Target `cuda-interp`: compiled for a GPU, its kernels run block by block in the program interpreter,
 * which finds races and reads of what was not written.
 * Target `nests`: the loop nests of every node, run by the nest interpreter.
 */
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { compileModel } from "../../src/compile.ts";
import type { CostModel } from "../../src/cost/calibration.ts";
import type { Model } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { checkNests } from "../../src/interp/check-nests.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import type { Program } from "../../src/program/program.ts";
import { ModelSession, type SessionOptions } from "../../src/runtime/model-session.ts";
import { probeNativeFeatures } from "../../src/runtime/native/features.ts";
import { createNativeInstance } from "../../src/runtime/native/native-instance.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { fromRef, type RefTensor, toRef } from "../../src/semantics/tensor.ts";
import { ok, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { type Campaign, type Finding, passed, type Trial } from "../campaign.ts";
import { interpretProgram } from "../interpreted-instance.ts";
import { randomGraph } from "../random-graph.ts";
import { drawInputs, firstDifference } from "../random-values.ts";

export const randomOps: Campaign = {
  name: "random-ops",
  summary: "random small graphs, each stage against the oracle",
  targets: ["wasm", "nests", "cpu", "cuda-interp"],
  defaultCount: 2000,
  open: async (target) => {
    if (target === "nests") return nestsTrial;
    return compiledTrial(places[target as keyof typeof places]);
  },
};

/** Where a trial runs its program. */
type Place = (seed: number) => {
  readonly target: Target;
  readonly start: (program: Program, options: SessionOptions) => Result<ModelSession>;
};

const onWasm: Place = () => ({
  target: targets.get("wasm")!,
  start: (program, options) => {
    const features = { ...probeWasmFeatures(), threads: false };
    return createWasmSession(program, { ...options, threads: 1, features, host: nodeWorkerHost });
  },
});

/** Threads beyond the cores, too: whoever waits then sleeps. */
const threadCounts = [1, 2, 3];

const onNative: Place = (seed) => {
  const { system, targets: names } = unwrap(probeNativeFeatures());
  // Named machines have the code of a general target.
  const general = names.filter((name) => !targets.get(name)!.machine);
  const target = targets.get(general[seed % general.length]!)!;
  const threads = threadCounts[Math.floor(seed / general.length) % threadCounts.length]!;
  return {
    target,
    start: (program, options) => {
      const apart = { ...program, buffers: program.buffers.map(({ placement: _, ...b }) => b) };
      const { parallelism } = nodeWorkerHost;
      const native = { system, threads, parallelism, guards: true };
      const instance = createNativeInstance(apart, target, native);
      return instance.ok ? ok(new ModelSession(apart, instance.value, options)) : instance;
    },
  };
};

const onBlocks: Place = (seed) => ({
  target: targets.get("h200")!,
  start: (program, options) =>
    ok(new ModelSession(program, interpretProgram(program, seed), options)),
});

export const places = { wasm: onWasm, cpu: onNative, "cuda-interp": onBlocks } as const;

const nestsTrial: Trial = (seed) => {
  const { graph, extents } = randomGraph(seed);
  checkNests(graph, { rng: new Rng(seed), extents });
  return passed;
};

function compiledTrial(place: Place): Trial {
  return async (seed) => {
    const drawn = randomGraph(seed);
    const inputs = drawInputs(drawn, new Rng(seed));
    const expected = unwrap(runGraph(drawn.graph, inputs));
    const model: Model = { graph: drawn.graph, weights: noWeights };
    const found = await runCompiled(model, inputs, place(seed));
    for (const [i, want] of expected.entries()) {
      const reason = firstDifference(found[i]!, want);
      if (reason !== undefined) return { kind: "failed", reason: `output ${i}: ${reason}` };
    }
    return passed satisfies Finding;
  };
}

/** The outputs of a model that is compiled for a place, by the target's prices or others, and run there once. */
export async function runCompiled(
  source: Model,
  inputs: readonly RefTensor[],
  { target, start }: ReturnType<Place>,
  prices?: CostModel,
): Promise<RefTensor[]> {
  const { model, nests, plan } = unwrap(
    compileModel(source, { target, ...(prices && { model: prices }) }),
  );
  const session = unwrap(start(plan.program, { weight: weightReader(model) }));
  session.poison();
  const { values, inputs: ids } = model.graph;
  const feeds = ids.map((id, i) => [values[id]!.name, fromRef(inputs[i]!)] as const);
  const outputs = unwrap(session.run(Object.fromEntries(feeds)));
  await session.dispose();
  return nests.outputs.map((name) => toRef(outputs[name]!));
}
