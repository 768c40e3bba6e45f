/**
 * Programs of whole models on a GPU, correctness first: random graphs against the float64 oracle, the
 * PP-OCR models against WebAssembly on the same machine, outputs poisoned before each run; then times of
 * a run without transfers, from events around many, and the kernels that take longest.
 * Usage: node models.mjs [--graphs N] [--models FOLDER] [--seconds S]. Ends with `N passed, N failed`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { randomGraph } from "../../campaign/random-graph.ts";
import { drawInputs, firstDifference } from "../../campaign/random-values.ts";
import { openModel, startSession } from "../../src/commands/library/open-model.ts";
import { compileModel } from "../../src/compile.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { type CudaInstance, createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { type Feeds, ModelSession } from "../../src/runtime/model-session.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { fromRef, randomRef, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

const given = new Map<string, string>();
for (let i = 2; i + 1 < process.argv.length; i += 2)
  given.set(process.argv[i]!, process.argv[i + 1]!);

let [passed, failed] = [0, 0];
function check(what: string, fault: string | undefined, more = ""): void {
  if (fault === undefined) passed++;
  else failed++;
  if (fault !== undefined) console.log(`FAIL ${what}: ${fault}`);
  else if (more !== "") console.log(`ok   ${what}: ${more}`);
}

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;
console.log(features.device, target.name);

function randomCase(seed: number): string | undefined {
  const drawn = randomGraph(seed);
  const inputs = drawInputs(drawn, new Rng(seed));
  const want = take(runGraph(drawn.graph, inputs));
  const { model, nests, plan } = take(
    compileModel({ graph: drawn.graph, weights: noWeights }, { target }),
  );
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    const session = new ModelSession(plan.program, instance, { weight: weightReader(model) });
    session.poison();
    const { values, inputs: ids } = model.graph;
    const feeds = ids.map((id, i) => [values[id]!.name, fromRef(inputs[i]!)] as const);
    const outputs = take(session.run(Object.fromEntries(feeds)));
    for (const [i, name] of nests.outputs.entries()) {
      const fault = firstDifference(toRef(outputs[name]!), want[i]!);
      if (fault !== undefined) return `output ${i}: ${fault}`;
    }
    return undefined;
  } finally {
    instance.dispose();
  }
}

const graphs = Number(given.get("--graphs") ?? 60);
for (let seed = 0; seed < graphs; seed++) {
  let fault: string | undefined;
  try {
    fault = randomCase(seed);
  } catch (error) {
    fault = String(error).slice(0, 600);
  }
  check(`random graph ${seed}`, fault);
}
console.log(`random graphs: ${passed} of ${graphs}`);

const dimension = (i: number): string => `p2o.DynamicDimension.${i}`;
const models = [
  ["ch_ppocr_mobile_v2.0_cls_infer.onnx", [1, 48, 192]],
  ["ch_PP-OCRv4_rec_infer.onnx", [1, 320]],
  ["ch_PP-OCRv4_det_infer.onnx", [1, 640, 640]],
] as const;

/** Largest difference relative to the largest value. */
function distance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [worst, scale] = [0, 1e-30];
  for (let i = 0; i < a.length; i++) {
    const d = Math.abs(a[i]! - b[i]!);
    worst = Number.isNaN(d) ? Infinity : Math.max(worst, d);
    scale = Math.max(scale, Math.abs(b[i]!));
  }
  return worst / scale;
}

/** Microseconds of a run without transfers, best and median of some series. */
function time(instance: CudaInstance, parameters: Record<string, number>): string {
  const { device, stream } = instance;
  const [start, end] = [createEvent(device), createEvent(device)];
  take(instance.repeat(parameters, 20));
  stream.synchronize();
  const series = Array.from({ length: 15 }, () => {
    start.record(stream);
    take(instance.repeat(parameters, 20));
    end.record(stream);
    return (end.since(start) * 1000) / 20;
  }).sort((a, b) => a - b);
  return `${series[7]!.toFixed(1)} us a run (${series[0]!.toFixed(1)} to ${series[14]!.toFixed(1)})`;
}

const folder = given.get("--models");
for (const [file, extents] of folder ? models : []) {
  const path = join(folder!, file);
  const shapes = Object.fromEntries(extents.map((e, i) => [dimension(i), e]));
  const options = { shapes: shapes as never, seed: 1 };
  const bytes = readFileSync(path);
  try {
    const began = performance.now();
    const ours = take(openModel({ bytes, path } as never, { ...options, target: target.name }));
    const compiled = performance.now();
    const { code } = ours;
    const device = take(features.open());
    const instance = take(
      createCudaInstance(code.program, target, { device, store: features.store }),
    );
    const loaded = performance.now();
    const session = new ModelSession(code.program, instance, { weight: ours.start.weight });
    const wasm = take(openModel({ bytes, path } as never, { ...options, target: "wasm" }));
    const judge = take(startSession(wasm, 8));
    const rng = new Rng(7);
    const feeds: Feeds = Object.fromEntries(
      session.inputs.map((p) => {
        const shape = p.shape.map((e) => evaluate(e, new Map()));
        return [p.name, fromRef(randomRef(p.dtype, shape, rng))];
      }),
    );
    session.poison();
    const found = Object.values(take(session.run(feeds)));
    const want = Object.values(take(await judge.runAsync(feeds)));
    await judge.dispose();
    const worst = Math.max(
      ...found.map((t, i) => distance(t.data as Float32Array, want[i]!.data as Float32Array)),
    );
    const times = `compile ${Math.round(compiled - began)} ms, load ${Math.round(loaded - compiled)} ms`;
    check(
      file,
      worst < 1e-4 ? undefined : `relative difference ${worst}`,
      `${worst.toExponential(1)}, ${times}`,
    );
    console.log(`     ${file}: ${time(instance, {})}, ${code.program.kernels.length} kernels`);
    const profile = take(session.profile(feeds, () => performance.now() * 1000));
    const rows = profile.kernels.map((k) => ({ name: k.kernel, us: k.endMs - k.startMs }));
    rows.sort((a, b) => b.us - a.us);
    for (const { name, us } of rows.slice(0, 8)) {
      const region = ours.origin?.compiled.regions.find((r) => r.name === name);
      const price = region ? `priced ${(region.price.estimateNs / 1000).toFixed(1)}` : "";
      console.log(
        `       ${us.toFixed(1)} us ${name} ${price} ${region?.origins.slice(0, 2).join(" ")}`,
      );
    }
    instance.dispose();
  } catch (error) {
    check(file, String((error as Error).stack).slice(0, 900));
  }
}
console.log(`${passed} passed, ${failed} failed`);
