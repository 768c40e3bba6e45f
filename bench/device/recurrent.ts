/**
 * LSTM and GRU of many steps on a GPU, whose programs repeat a step's launches: against the float64 oracle, outputs
 * poisoned, then microseconds of a run and of a step. Ends with `N passed, N failed`.
 * Usage: node recurrent.mjs
 */
import { compileModel } from "../../src/compile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { createEvent } from "../../src/runtime/cuda/stream.ts";
import { ModelSession } from "../../src/runtime/model-session.ts";
import { fromRef, refTensor, type Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { take } from "./ptx-launch.ts";

interface RecurrentCase {
  readonly op: "LSTM" | "GRU";
  readonly steps: number;
  readonly batch: number;
  readonly hidden: number;
  readonly direction: "forward" | "reverse" | "bidirectional";
}

const cases: readonly RecurrentCase[] = [
  { op: "LSTM", steps: 100, batch: 8, hidden: 256, direction: "forward" },
  { op: "GRU", steps: 100, batch: 8, hidden: 256, direction: "forward" },
  { op: "LSTM", steps: 65, batch: 1, hidden: 128, direction: "bidirectional" },
  { op: "GRU", steps: 333, batch: 3, hidden: 77, direction: "reverse" },
];

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;
/** Sums of some hundred products in f32, step after step of a contraction. */
const tolerance = 1e-4;

let [passed, failed] = [0, 0];
for (const given of cases) {
  if (run(given)) passed++;
  else failed++;
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function random(rng: Rng, shape: readonly number[], scale: number) {
  const count = shape.reduce((a, b) => a * b, 1);
  return refTensor(
    "f32",
    shape,
    Array.from({ length: count }, () => Math.fround(scale * rng.normal())),
  );
}

function run({ op, steps, batch, hidden, direction }: RecurrentCase): boolean {
  const rng = new Rng(steps);
  const directions = direction === "bidirectional" ? 2 : 1;
  const rows = (op === "LSTM" ? 4 : 3) * hidden;
  const stored = (shape: readonly number[]): Tensor =>
    fromRef(random(rng, shape, 1 / Math.sqrt(hidden)));
  const bytes = writeModel({
    ...{ name: op, opset: 18, outputs: ["y"] },
    inputs: [{ name: "x", dtype: "f32", shape: [steps, batch, hidden] }],
    weights: {
      W: stored([directions, rows, hidden]),
      R: stored([directions, rows, hidden]),
      B: stored([directions, 2 * rows]),
    },
    nodes: [
      {
        ...{ op, inputs: ["x", "W", "R", "B"], outputs: ["y"] },
        attributes: { hidden_size: BigInt(hidden), direction },
      },
    ],
  });
  const model = take(importOnnx(bytes, { shapes: {} }));
  const x = random(rng, [steps, batch, hidden], 1);
  const [want] = take(runGraph(model.graph, [x], model.weights));
  const compiled = take(compileModel(model, { target }));
  const { program } = compiled.plan;
  const device = take(features.open());
  const instance = take(createCudaInstance(program, target, { device, store: features.store }));
  const session = new ModelSession(program, instance, { weight: weightReader(compiled.model) });
  session.poison();
  const { graph } = compiled.model;
  const feeds = { [graph.values[graph.inputs[0]!]!.name]: fromRef(x) };
  const { data } = take(session.run(feeds))[compiled.nests.outputs[0]!]!;
  let worst = 0;
  for (const [i, value] of Array.from(want!.data, Number).entries()) {
    const off = Math.abs(Number(data[i]) - value);
    worst = Number.isNaN(off) ? Infinity : Math.max(worst, off);
  }
  const [start, end] = [createEvent(device), createEvent(device)];
  const runs = 5;
  const series = Array.from({ length: 11 }, () => {
    start.record(instance.stream);
    take(instance.repeat({}, runs));
    end.record(instance.stream);
    return (end.since(start) * 1000) / runs;
  }).sort((a, b) => a - b);
  instance.dispose();
  const us = series[5]!;
  const ok = worst <= tolerance;
  const title = `${op} ${direction} of ${steps} steps, ${batch} x ${hidden}`;
  const kinds = program.tasks.map((t) => t.kind).join(" ");
  console.log(
    `${ok ? "ok  " : "FAIL"} ${title}: off by ${worst.toExponential(1)}, ${us.toFixed(1)} us a run, ${(us / steps).toFixed(2)} a step (${kinds})`,
  );
  return ok;
}
