/**
 * Writes an exported model into a folder: `model.onnx`, and beside it `model.onnx_data` with every
 * weight of a kilobyte or more, in the order of their use, unaligned, as onnx.save_model leaves them.
 * The weights go to disk as they are drawn. `exportModel` fills the cache; what is there is taken as
 * it is, so `exporterVersion` changes whenever any recipe writes something else.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readModelFile } from "../../../src/frontend/onnx/model-file.ts";
import { unwrap } from "../../sessions/import-hints.ts";
import { readLightFile, seedLightModel } from "./light.ts";
import { ModelBuilder } from "./model-builder.ts";
import type { Recipe } from "./recipes.ts";
import { FileSink } from "./weight-sink.ts";

const exporterVersion = 1;
const seed = 1;

/** The path of the model file below `folder`, written when it is not there yet. */
export function exportModel(name: string, recipe: Recipe, folder: string): string {
  const home = join(folder, `v${exporterVersion}`);
  const kept = join(home, name);
  if (!existsSync(kept)) {
    mkdirSync(home, { recursive: true });
    const made = mkdtempSync(join(home, "writing-"));
    try {
      writeExport(name, recipe, made);
      settle(made, kept);
    } finally {
      rmSync(made, { recursive: true, force: true });
    }
  }
  return join(kept, "model.onnx");
}

/** Writes the two files of a model. */
export function writeExport(name: string, recipe: Recipe, folder: string): void {
  const sink = new FileSink(folder, "model.onnx_data");
  try {
    writeFileSync(join(folder, "model.onnx"), modelBytes(name, recipe, sink));
  } finally {
    sink.close();
  }
}

function modelBytes(name: string, recipe: Recipe, sink: FileSink): Uint8Array {
  if ("light" in recipe) {
    const file = unwrap(readLightFile(`light_${recipe.light}.onnx`));
    return seedLightModel(unwrap(readModelFile(file)), sink, seed);
  }
  const { opset, precision } = recipe;
  const builder = new ModelBuilder({ opset, precision, seed, sink });
  recipe.build(builder);
  return builder.finish(name);
}

/** Another process may have written the same meanwhile: then its folder stays. */
function settle(made: string, kept: string): void {
  try {
    renameSync(made, kept);
  } catch (error) {
    if (!existsSync(kept)) throw error;
  }
}
