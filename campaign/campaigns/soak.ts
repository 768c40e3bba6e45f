/**
 * Long use of one process: a million runs of one model, a thousand loads and unloads, 64 callers at once. Results
 * are compared with those of the first run bit by bit; memory may not grow with the number of runs or loads, and
 * behind the last `dispose` all threads and pages of code are back.
 */

import { load } from "../../src/commands/library/load.ts";
import type { LoadedModel } from "../../src/commands/library/loaded-model.ts";
import { tensorOf, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { randomTensor, type Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Campaign, type Finding, passed, type Trial } from "../campaign.ts";
import { type Footprint, footprint, leftBehind } from "../footprint.ts";

const runs = 1_000_000;
const loads = 1000;
const callers = 64;
const roundsOfCallers = 200;
const mostRows = 8;
/** What the heap and the allocator move by; a thousand programs that were kept have a page of code each, and more of memory. */
const allowed = { residentBytes: 32 * 1024 * 1024, codeMappings: 32 } as const;

const parts = ["runs", "loads", "callers"] as const;

export const soak: Campaign = {
  name: "soak",
  summary: "a million runs, a thousand loads, 64 callers: memory, threads and pages come back",
  targets: ["cpu", "wasm"],
  defaultCount: parts.length,
  names: () => parts,
  open: async (target) => {
    const trials: Readonly<Record<(typeof parts)[number], Trial>> = {
      runs: () => manyRuns(target),
      loads: () => manyLoads(target),
      callers: () => manyCallers(target),
    };
    return (seed) => trials[parts[seed % parts.length]!](seed);
  },
};

/** softmax(relu(x a) b) of up to eight rows: kernels that wait for each other. */
function model(): Uint8Array {
  const rng = new Rng(1);
  return writeModel({
    name: "soak",
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: ["M", 24] }],
    outputs: ["y"],
    weights: { a: randomTensor("f32", [24, 64], rng), b: randomTensor("f32", [64, 40], rng) },
    nodes: [
      { op: "MatMul", inputs: ["x", "a"], outputs: ["t"] },
      { op: "Relu", inputs: ["t"], outputs: ["u"] },
      { op: "MatMul", inputs: ["u", "b"], outputs: ["v"] },
      { op: "Softmax", inputs: ["v"], outputs: ["y"], attributes: { axis: -1n } },
    ],
  });
}

function open(target: string): Promise<LoadedModel> {
  return load(model(), { target, threads: 2, shapes: { M: `1..${mostRows}` } });
}

function rows(count: number, seed: number): Tensor {
  const rng = new Rng(seed);
  return tensorOf(
    "f32",
    [count, 24],
    Float32Array.from({ length: 24 * count }, () => rng.normal()),
  );
}

/** Uses models some times, after a tenth of that; what is wrong with the results, or what stays behind, fails. */
async function between(
  times: number,
  use: (times: number) => Promise<string | undefined>,
): Promise<Finding> {
  // Brings what any use does: threads of pools, code of the engine, its heap.
  const early = await use(times / 10);
  const before = footprint();
  if (!before) return { kind: "skipped", reason: "the system does not say what a process holds" };
  const wrong = early ?? (await use(times)) ?? leftBehind(before, await settled(before), allowed);
  return wrong === undefined ? passed : { kind: "failed", reason: wrong };
}

/** The footprint once threads that were told to end have ended. */
async function settled(before: Footprint): Promise<Footprint> {
  for (let turn = 0; turn < 50; turn++) {
    const now = footprint()!;
    if (now.threads <= before.threads) return now;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return footprint()!;
}

function manyRuns(target: string): Promise<Finding> {
  return between(runs, async (times) => {
    const loaded = await open(target);
    const feeds = Array.from({ length: mostRows }, (_, i) => ({ x: rows(i + 1, i) }));
    const wanted = feeds.map((feed) => copyOf(loaded.run(feed)));
    for (let run = 0; run < times; run++) {
      const i = run % mostRows;
      if (!isSame(loaded.run(feeds[i]!), wanted[i]!)) return `run ${run} differs from the first`;
      // Lets what is waiting elsewhere in the process go on.
      if (run % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await loaded.dispose();
    return undefined;
  });
}

function manyLoads(target: string): Promise<Finding> {
  return between(loads, async (times) => {
    let wanted: Float32Array | undefined;
    for (let turn = 0; turn < times; turn++) {
      const loaded = await open(target);
      const feed = { x: rows(5, 3) };
      const found = turn % 2 === 0 ? loaded.run(feed) : await loaded.runAsync(feed);
      wanted ??= copyOf(found);
      if (!isSame(found, wanted)) return `load ${turn} differs from the first`;
      await loaded.dispose();
    }
    return undefined;
  });
}

function manyCallers(target: string): Promise<Finding> {
  return between(roundsOfCallers, async (rounds) => {
    const models = await Promise.all([open(target), open(target), open(target), open(target)]);
    const call = async (caller: number): Promise<string | undefined> => {
      const loaded = models[caller % models.length]!;
      const feed = { x: rows(1 + (caller % mostRows), caller) };
      const wanted = copyOf(await loaded.runAsync(feed));
      for (let round = 0; round < rounds; round++) {
        const found = await loaded.runAsync(feed);
        if (!isSame(found, wanted)) return `caller ${caller}: run ${round} differs from its first`;
      }
      return undefined;
    };
    const found = await Promise.all(Array.from({ length: callers }, (_, i) => call(i)));
    for (const loaded of models) await loaded.dispose();
    return found.find((wrong) => wrong !== undefined);
  });
}

type Outputs = Readonly<Record<string, Pick<Tensor, "data">>>;

function copyOf(outputs: Outputs): Float32Array {
  return Float32Array.from(outputs.y!.data as Float32Array);
}

function isSame(outputs: Outputs, wanted: Float32Array): boolean {
  const found = outputs.y!.data as Float32Array;
  return found.length === wanted.length && wanted.every((value, i) => Object.is(found[i], value));
}
