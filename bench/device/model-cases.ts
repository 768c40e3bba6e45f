/**
 * The models that are run on a device, each at the first shape of its row: with all dimensions fixed, on
 * seeded inputs, and what a judge says of them. Judges are slow or not installed where the device is, so
 * their answers are recorded before (record-outputs.ts) and read from a folder; weights are seeded and
 * written anew there.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { readModelFile } from "../../src/frontend/onnx/model-file.ts";
import type { Model } from "../../src/graph/graph.ts";
import { dtypes } from "../../src/semantics/dtype.ts";
import { Rng } from "../../src/support/rng.ts";
import { tolerancesOf } from "../../src/verdict/tolerance.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor, randomInputs } from "../models/random-inputs.ts";
import { roundingOf } from "../models/rounding.ts";
import { findModel, type ModelCase, type ModelRow } from "../models/table.ts";
import { importOptions, unwrap } from "../sessions/import-hints.ts";
import type { Tensors } from "../sessions/session.ts";

export const deviceModels = [
  "ppocr-v2-cls",
  "ppocr-v4-rec",
  "ppocr-v4-det",
  "light-squeezenet",
  "light-shufflenet",
  "light-bvlc-alexnet",
  "light-zfnet512",
  "light-inception-v1",
  "light-inception-v2",
  "light-densenet121",
  "light-resnet50",
  "light-vgg19",
  "mobilenet-v2",
  "resnet-50",
  "resnet-50-int8",
  "mobilenet-v2-int8",
  "minilm-l6-dynamic",
  "bert-base",
  "bert-base-fp16",
  "vit-b",
  "vit-b-fp16",
  "llama-block",
  "llama-block-fp16",
  "moe-block",
  "moe-block-fp16",
] as const;

export interface DeviceCase {
  readonly name: string;
  readonly model: Model;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly feeds: Tensors;
  /** By output, relative to its largest value. */
  readonly tolerances: readonly number[];
}

export const inputSeed = 7;

/** A row of the table, its first case, and the options that fix all dimensions to it. */
export function rowOf(name: string): { readonly row: ModelRow; readonly first: ModelCase } {
  const row = findModel(name);
  if (!row) {
    console.error(`there is no model ${name}: those of bench/models/table.ts have names`);
    process.exit(2);
  }
  return { row, first: row.cases[0]! };
}

export function openCase(name: string): DeviceCase {
  const { row, first } = rowOf(name);
  const bytes = unwrap(fetchModel(row));
  const fixed = fixedShapes(bytes, first);
  // Dimensions without a name are what the row says.
  const shapes = Object.keys(fixed).length > 0 ? fixed : (row.shapes ?? {});
  const imported = unwrap(importOnnx(bytes, importOptions({ ...hintsFor(row), shapes })));
  const { graph, inputNames, outputNames } = imported;
  const { depth } = unwrap(roundingOf(bytes));
  const bits = graph.values.map(({ type }) => dtypes[type.dtype].format?.mantissaBits ?? 23);
  // Values that are kept in a short type are rounded to it layer by layer.
  const short = 2 * depth * 2 ** -Math.min(...bits);
  const tolerances = tolerancesOf(graph).map((t) => Math.max(t, short));
  const feeds = randomInputs(first, new Rng(inputSeed));
  return { name, model: imported, inputNames, outputNames, feeds, tolerances };
}

/** Values of the named dimensions, read off the case's inputs. */
export function fixedShapes(bytes: Uint8Array, { inputs }: ModelCase): Record<string, string> {
  const fixed: Record<string, string> = {};
  for (const { name, type } of unwrap(readModelFile(bytes)).graph!.input) {
    const dims = type?.value.case === "tensorType" ? (type.value.value.shape?.dim ?? []) : [];
    const given = inputs.find((input) => input.name === name);
    dims.forEach(({ value }, axis) => {
      const extent = given?.dims[axis];
      if (value.case === "dimParam" && extent !== undefined) fixed[value.value] = String(extent);
    });
  }
  return fixed;
}

/** The recorded elements of an output. */
export function recordedOutput(folder: string, name: string, number: number): Float32Array {
  const bytes = readFileSync(recordedFile(folder, name, number));
  return new Float32Array(new Uint8Array(bytes).buffer);
}

export function recordedFile(folder: string, name: string, number: number): string {
  return join(folder, `${name}.${number}.f32`);
}
