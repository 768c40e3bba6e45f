/**
 * Whole models on a GPU, correctness first: random graphs against the float64 oracle, then the models of
 * model-cases.ts against recorded outputs, outputs poisoned before each run; then times of a
 * run without transfers, from events around many, and the kernels that take longest beside their prices.
 * Models are compiled side by side in processes of their own, which take turns on the device.
 * Usage: node models.mjs --expected FOLDER [--only TEXT,…] [--graphs N] [--slowest N], where FOLDER is what
 * record-outputs.ts wrote. Ends with `N passed, N failed`.
 */
import { spawn } from "node:child_process";
import { mkdirSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomGraph } from "../../campaign/random-graph.ts";
import { drawInputs, firstDifference } from "../../campaign/random-values.ts";
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { type CudaInstance, createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { type Feeds, ModelSession, type Outputs } from "../../src/runtime/model-session.ts";
import { printDirective } from "../../src/schedule/directive-text.ts";
import { fromRef, toRef } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { toStored } from "../sessions/stored-tensors.ts";
import { type DeviceCase, deviceModels, openCase, recordedOutput } from "./model-cases.ts";
import { needDevice, take } from "./ptx-launch.ts";

const given = new Map<string, string>();
for (let i = 2; i + 1 < process.argv.length; i += 2)
  given.set(process.argv[i]!, process.argv[i + 1]!);

const only = given.get("--only") ?? "";
const chosen = deviceModels.filter((name) => only.split(",").some((part) => name.includes(part)));
const graphs = Number(given.get("--graphs") ?? 60);
/** Kernels that are named with their times. */
const slowest = Number(given.get("--slowest") ?? 6);

const one = given.get("--one");
if (one !== undefined) await runOne(one, given.get("--expected")!);
else {
  needDevice();
  await runAll(given.get("--expected") ?? "expected");
}

/** Each in a process of its own; their lines are printed whole as they end. */
async function runAll(folder: string): Promise<void> {
  const jobs = [...(graphs > 0 ? ["graphs"] : []), ...chosen];
  let [passed, failed] = [0, 0];
  await Promise.all(
    jobs.map(async (name) => {
      const begin = performance.now();
      const rest = ["--expected", folder, "--graphs", String(graphs), "--slowest", String(slowest)];
      const child = spawn(process.execPath, [process.argv[1]!, "--one", name, ...rest]);
      let text = "";
      for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (d) => (text += String(d)));
      const code = await new Promise((resolve) => child.on("close", resolve));
      if (code === 0) passed++;
      else failed++;
      const seconds = ((performance.now() - begin) / 1000).toFixed(1);
      console.log(
        `${code === 0 ? "ok  " : "FAIL"} ${name} (${seconds} s in all) ${text.trimEnd()}`,
      );
    }),
  );
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function runOne(name: string, folder: string): Promise<void> {
  const features = take(probeCuda());
  const target = targets.get(features.targets[0]!)!;
  if (name === "graphs") {
    const faults = Array.from({ length: graphs }, (_, seed) => randomCase(seed)).filter(Boolean);
    for (const fault of faults) console.log(fault);
    if (faults.length > 0) process.exitCode = 1;
    return;
  }
  const opened = openCase(name);
  const began = performance.now();
  const compiled = take(compileModel(opened.model, { target }));
  const made = performance.now();
  const device = take(features.open());
  const options = { device, store: features.store };
  const instance = take(createCudaInstance(compiled.plan.program, target, options));
  const loaded = performance.now();
  const weight = weightReader(compiled.model);
  const session = new ModelSession(compiled.plan.program, instance, { weight });
  const values = compiled.model.graph.inputs.map((v) => compiled.model.graph.values[v]!.name);
  const feeds: Feeds = Object.fromEntries(
    values.map((value, i) => [value, toStored(opened.feeds[opened.inputNames[i]!]!)]),
  );
  await alone(() => {
    session.poison();
    const fault = compare(opened, compiled, take(session.run(feeds)), folder);
    if (fault !== undefined) process.exitCode = 1;
    console.log(
      `compiled in ${(made - began).toFixed(0)} ms, loaded in ${(loaded - made).toFixed(0)} ms`,
    );
    console.log(`     ${compiled.plan.program.kernels.length} kernels, ${time(instance)}`);
    profile(session, feeds, compiled);
  });
  instance.dispose();
}

/** Every element of every output, relative to the output's largest. */
function compare(
  { name, tolerances }: DeviceCase,
  { nests }: CompiledModel,
  outputs: Outputs,
  folder: string,
): string | undefined {
  let fault: string | undefined;
  nests.outputs.forEach((output, number) => {
    const want = recordedOutput(folder, name, number);
    const { data } = outputs[output]!;
    const scale = want.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-30);
    let worst = data.length === want.length ? 0 : Infinity;
    for (let i = 0; i < want.length; i++) {
      const off = Math.abs(Number(data[i]) - want[i]!) / scale;
      worst = Number.isNaN(off) ? Infinity : Math.max(worst, off);
    }
    const tolerance = tolerances[number]!;
    const words = `output ${number}: ${worst.toExponential(1)} of its largest, allowed ${tolerance.toExponential(1)}`;
    console.log(words);
    if (!(worst <= tolerance)) fault ??= words;
  });
  return fault;
}

/** Microseconds of a run without transfers, median and range of some series. */
function time(instance: CudaInstance): string {
  const { device, stream } = instance;
  const [start, end] = [createEvent(device), createEvent(device)];
  const runs = 10;
  take(instance.repeat({}, 3 * runs));
  stream.synchronize();
  const series = Array.from({ length: 11 }, () => {
    start.record(stream);
    take(instance.repeat({}, runs));
    end.record(stream);
    return (end.since(start) * 1000) / runs;
  }).sort((a, b) => a - b);
  return `${series[5]!.toFixed(1)} us a run (${series[0]!.toFixed(1)} to ${series[10]!.toFixed(1)})`;
}

function profile(session: ModelSession, feeds: Feeds, { regions }: CompiledModel): void {
  const { kernels } = take(session.profile(feeds, () => performance.now() * 1000));
  const rows = kernels.map((k) => ({ name: k.kernel, us: k.endMs - k.startMs }));
  rows.sort((a, b) => b.us - a.us);
  const found = new Map(regions.map((r) => [r.name, r]));
  for (const { name, us } of rows.slice(0, slowest)) {
    const region = found.get(name);
    const product = region?.scheduled.schedule.directives.find((d) => d.kind === "multiply");
    const priced = region ? `priced ${(region.price.estimateNs / 1000).toFixed(1)}` : "";
    const how = product ? printDirective(product) : "loops";
    console.log(
      `       ${us.toFixed(1)} us ${name} ${priced} ${how}: ${region?.origins.join(" ").slice(0, 120)}`,
    );
  }
}

function randomCase(seed: number): string | undefined {
  try {
    const fault = randomFault(seed);
    return fault && `random graph ${seed}: ${fault}`;
  } catch (error) {
    return `random graph ${seed}: ${String(error).slice(0, 600)}`;
  }
}

function randomFault(seed: number): string | undefined {
  const features = take(probeCuda());
  const target = targets.get(features.targets[0]!)!;
  const drawn = randomGraph(seed);
  const inputs = drawInputs(drawn, new Rng(seed));
  const want = take(runGraph(drawn.graph, inputs));
  const source = { graph: drawn.graph, weights: noWeights };
  const { model, nests, plan } = take(compileModel(source, { target }));
  const device = take(features.open());
  const instance = take(createCudaInstance(plan.program, target, { device }));
  try {
    const session = new ModelSession(plan.program, instance, { weight: weightReader(model) });
    session.poison();
    const { values, inputs: ids } = model.graph;
    const feeds = ids.map((id, i) => [values[id]!.name, fromRef(inputs[i]!)] as const);
    const outputs = take(session.run(Object.fromEntries(feeds)));
    for (const [i, output] of nests.outputs.entries()) {
      const fault = firstDifference(toRef(outputs[output]!), want[i]!);
      if (fault !== undefined) return `output ${i}: ${fault}`;
    }
    return undefined;
  } finally {
    instance.dispose();
  }
}

/** Runs while no other process of this script does. */
async function alone(body: () => void): Promise<void> {
  const lock = join(tmpdir(), "wavetile-device-lock");
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  try {
    body();
  } finally {
    rmdirSync(lock);
  }
}
