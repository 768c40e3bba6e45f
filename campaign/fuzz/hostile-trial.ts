/**
 * One trial of the fuzzing campaign, run in a child process: a damaged model, input or artifact is
 * given to the library's doors. Each answer must be a result or diagnostics with codes, whatever was
 * given; what is thrown is a find. A model that is imported all the same is compiled and run where it
 * is small.
 */
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { LoadedModel } from "../../src/commands/library/loaded-model.ts";
import { openModel, startSession } from "../../src/commands/library/open-model.ts";
import { sampleModel } from "../../src/commands/library/sample-model.test-support.ts";
import { stageModel } from "../../src/commands/library/staged-session.ts";
import { exportOnnx } from "../../src/frontend/onnx/export/export-model.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import type { ShapeOverrides } from "../../src/frontend/onnx/import/shape-override.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { traitsOf } from "../../src/graph/op-table.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { readNpy, writeNpy } from "../../src/runtime/files/npy.ts";
import { allDTypes } from "../../src/semantics/dtype.ts";
import { constantValue } from "../../src/semantics/index-expr.ts";
import { randomTensor, type Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Finding, passed } from "../campaign.ts";
import { randomGraph } from "../random-graph.ts";
import { artifactSeeds } from "./artifact-seeds.ts";
import { baseModels } from "./base-models.ts";
import { deepModel } from "./deep-model.ts";
import { runOnce, stagedArtifact, wholeArtifact } from "./forged-artifact.ts";
import { judge } from "./judge.ts";
import { mutateBytes, mutateModel } from "./mutate.ts";
import { outside } from "./outside.ts";
import { runTimeSizes } from "./run-time-sizes.ts";
import { swollenModel } from "./swollen.ts";

const opened = unwrap(
  openModel(
    { bytes: sampleModel(48) },
    { target: "wasm", seed: 3, shapes: { M: { min: 1, max: 8 } } },
  ),
);
const session = unwrap(startSession(opened, 1));
const model = new LoadedModel(opened, session);
const seeds = artifactSeeds(opened);

const kinds: readonly ((rng: Rng) => Finding)[] = [
  (rng) => readModel(mutateBytes(baseModel(rng), rng), rng),
  (rng) => readModel(mutateBytes(baseModel(rng), rng), rng),
  (rng) => readModel(mutateModel(baseModel(rng), rng), rng),
  (rng) => readModel(mutateModel(baseModel(rng), rng), rng),
  (rng) => readModel(rng.integer(0, 7) === 0 ? deepModel(rng) : swollenModel(rng), rng),
  runTimeSizes,
  outside,
  inputs,
  damagedFile,
  wholeArtifact(seeds),
  wholeArtifact(seeds),
  stagedArtifact(seeds),
  stagedArtifact(seeds),
];

export function hostileTrial(seed: number): Finding {
  const rng = new Rng(seed);
  return kinds[seed % kinds.length]!(rng);
}

/** One that was written by hand for its structure, or a random graph of any ops. */
function baseModel(rng: Rng): Uint8Array {
  if (rng.integer(0, 1) === 0) return rng.pick(baseModels);
  const { graph } = randomGraph(rng.integer(0, 2 ** 31));
  const written = exportOnnx({ graph, weights: noWeights });
  return written.ok ? written.value.bytes : rng.pick(baseModels);
}

/** Extents that a model leaves open get this one. */
const openExtent = 3;
/** Compiling more is a matter of size, not of what a file may do. */
const mostNodes = 60;
const mostElements = 2 ** 16;

function readModel(bytes: Uint8Array, rng: Rng): Finding {
  const imported = importOnnx(bytes);
  if (!imported.ok) return judge(imported);
  const { graph } = imported.value;
  if (!isSmall(graph) || rng.integer(0, 3) > 0) return judge(imported);
  const open = graph.symbols.filter((s) => s.max === Infinity);
  const extent = { min: openExtent, max: openExtent };
  const shapes = Object.fromEntries(open.map((s) => [s.name, extent]));
  const compiled = openModel({ bytes }, { target: "wasm", seed: 3, shapes });
  if (compiled.ok) return runOnce(compiled.value, rng);
  const inStages = compiled.diagnostics.every((d) => d.code === "SCH015");
  return inStages ? runInStages(bytes, shapes, rng) : judge(compiled);
}

/** What no one program holds: sizes and ends of loops that the data decide. */
function runInStages(bytes: Uint8Array, shapes: ShapeOverrides, rng: Rng): Finding {
  const staged = stageModel({ bytes }, { target: "wasm", seed: 3, shapes, threads: 1 });
  if (!staged?.ok) return staged ? judge(staged) : passed;
  const { face, session: stages } = staged.value;
  const model = new LoadedModel(face, stages);
  const feeds = model.inputs.map(({ name, dtype, shape }) => {
    const sizes = shape.map((d) => (typeof d === "number" ? d : openExtent));
    return [name, randomTensor(dtype, sizes, rng)] as const;
  });
  const finding = judge(model.tryRun(Object.fromEntries(feeds)));
  void model.dispose();
  return finding;
}

/** What references make in a run may ask for any size: they have to refuse it. */
function isSmall(graph: Graph): boolean {
  const drawn = new Set(graph.nodes.flatMap((n) => (traitsOf(n, graph).random ? n.outputs : [])));
  const programs = graph.values.filter((_, id) => !drawn.has(id));
  const elements = programs.map((v) =>
    v.type.shape.reduce((count, e) => count * (constantValue(e) ?? openExtent), 1),
  );
  return graph.nodes.length <= mostNodes && Math.max(0, ...elements) <= mostElements;
}

/** Feeds of another type, shape, length or name. */
function inputs(rng: Rng): Finding {
  const feeds: Record<string, Tensor> = {};
  for (const port of session.inputs) {
    const shape = port.shape.map((d) => (d.terms.length > 0 ? rng.integer(1, 8) : d.constant));
    feeds[port.title] = damaged({ dtype: port.dtype, shape }, rng);
    if (rng.integer(0, 15) === 0) delete feeds[port.title];
  }
  if (rng.integer(0, 15) === 0) feeds.other = randomTensor("f32", [1], rng);
  return judge(model.tryRun(feeds));
}

/** Inputs as files: .npy of damaged bytes; what is read all the same is fed. */
function damagedFile(rng: Rng): Finding {
  const written = unwrap(writeNpy(randomTensor("f32", [rng.integer(1, 8), 24], rng)));
  const read = readNpy(mutateBytes(written, rng));
  if (!read.ok) return judge(read);
  return judge(model.tryRun({ [session.inputs[0]!.title]: read.value }));
}

function damaged(type: { dtype: Tensor["dtype"]; shape: number[] }, rng: Rng): Tensor {
  const { dtype, shape } = type;
  const right = randomTensor(dtype, shape, rng);
  switch (rng.integer(0, 5)) {
    case 0:
      return randomTensor(rng.pick(allDTypes), shape, rng);
    case 1:
      return { ...right, shape: [...shape, 1] };
    case 2:
      return { ...right, data: right.data.slice(1) };
    case 3:
      return {
        ...right,
        shape: shape.map(() => rng.pick([0, -1, 2 ** 31, 2 ** 53, 0.5, Number.NaN])),
      };
    case 4:
      return {
        ...right,
        data: Float32Array.from({ length: right.data.length }, () =>
          rng.pick([Number.NaN, Infinity, 1e38]),
        ),
      };
    default:
      return right;
  }
}
