/**
 * The nine light networks of the ONNX suite (`onnx/backend/test/data/light`, Apache-2.0): real
 * classifiers whose weights were replaced by ConstantOfShape nodes to make the files small. Read from
 * the archive beside the repository, or from the one that `WAVETILE_LIGHT_MODELS` names; unpacked once
 * into `.cache`. `seedLightModel` puts seeded numbers in the place of the constants: N(0, 1/fan-in) for
 * what multiplies, statistics near 0 and 1 for batch norms.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  GraphProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  type TensorProto,
} from "../../../src/frontend/onnx/generated/onnx_pb.ts";
import { tensorOf } from "../../../src/frontend/onnx/model-writer.ts";
import { readTensorProto } from "../../../src/frontend/onnx/tensor-proto.ts";
import { attempt, type Result, reject } from "../../../src/support/diagnostic.ts";
import { invariant } from "../../../src/support/invariant.ts";
import { unwrap } from "../../sessions/import-hints.ts";
import { fanIn } from "./layers.ts";
import type { Draw } from "./model-builder.ts";
import { fillNormal, seedOf } from "./normal-fill.ts";
import { storeTensor, type WeightSink } from "./weight-sink.ts";

const shared = new URL("../../../../shared/conformance/onnx-light.tar.xz", import.meta.url);
const unpacked = fileURLToPath(new URL("../../../.cache/light/", import.meta.url));

export const lightNames = [
  "bvlc_alexnet",
  "densenet121",
  "inception_v1",
  "inception_v2",
  "resnet50",
  "shufflenet",
  "squeezenet",
  "vgg19",
  "zfnet512",
] as const;

export type LightName = (typeof lightNames)[number];

/** A file of the archive, `light_vgg19.onnx` for one; FET005 where the archive is not here. */
export function readLightFile(file: string): Result<Uint8Array> {
  return attempt(() => {
    const path = join(unpacked, "light", file);
    const archive = process.env.WAVETILE_LIGHT_MODELS ?? fileURLToPath(shared);
    if (!existsSync(path)) unwrap(unpackLightModels(archive, unpacked));
    return readFileSync(path);
  });
}

/** Unpacks the archive into a folder. */
export function unpackLightModels(archive: string, folder: string): Result<void> {
  return attempt(() => {
    if (!existsSync(archive)) notHere(`${archive} is not here`);
    mkdirSync(folder, { recursive: true });
    const run = spawnSync("tar", ["-xJf", archive, "-C", folder], { encoding: "utf8" });
    if (run.status !== 0) notHere(`tar cannot unpack it: ${run.stderr}`);
  });
}

function notHere(why: string): never {
  return reject("FET005", `the archive of light models cannot be used: ${why}`, {
    help: "put onnx-light.tar.xz there, or name it in WAVETILE_LIGHT_MODELS",
  });
}

/** The model with its constants drawn; weights go to the sink as they are made. */
export function seedLightModel(model: ModelProto, sink: WeightSink, seed: number): Uint8Array {
  const { graph } = model;
  invariant(graph !== undefined, () => "a model without a graph");
  const shapes = new Map(graph.initializer.map((t) => [t.name, t]));
  const drawn: TensorProto[] = [];
  const nodes = graph.node.filter((node) => {
    if (node.opType !== "ConstantOfShape") return true;
    const [name] = node.output;
    const shape = shapeIn(shapes.get(node.input[0]!)!);
    const values = new Float32Array(shape.reduce((a, n) => a * n, 1));
    const draw = drawFor(name!, shape, graph.node);
    fillNormal(values, { mean: 0, ...draw, seed: seedOf(name!, seed) });
    drawn.push(storeTensor(sink, name!, tensorOf("f32", shape, values)));
    return false;
  });
  const kept = new Set(nodes.flatMap((node) => node.input));
  const initializer = [...graph.initializer.filter((t) => kept.has(t.name)), ...drawn];
  const input = graph.input.filter((v) => kept.has(v.name));
  const seeded = create(GraphProtoSchema, { ...graph, node: nodes, initializer, input });
  // Initializers that are no inputs are allowed from version 4 of the format on.
  return toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, { ...model, irVersion: 8n, graph: seeded }),
  );
}

function shapeIn(proto: TensorProto): number[] {
  const read = readTensorProto(proto, "shape of a constant");
  invariant(read.kind === "inline", () => "a shape in external data");
  return [...(read.tensor.data as BigInt64Array)].map(Number);
}

/** What the first node that reads it does with it. */
function drawFor(name: string, shape: readonly number[], nodes: readonly NodeProto[]): Draw {
  const user = nodes.find((node) => node.input.includes(name));
  const place = user?.input.indexOf(name) ?? 0;
  // scale, bias, mean, variance
  if (user?.opType === "BatchNormalization")
    return { mean: place % 3 === 1 ? 1 : 0, deviation: 0.02 };
  if (user?.opType === "Unsqueeze") return { mean: 1, deviation: 0.02 };
  if (shape.length < 2) return { deviation: 0.02 };
  const turned = user?.attribute.some((a) => a.name === "transB" && a.i === 1n) ?? false;
  const terms = user?.opType === "Gemm" && !turned ? shape.slice(0, 1) : shape.slice(1);
  return fanIn(terms.reduce((a, n) => a * n, 1));
}
