/**
 * Writes an exported model into a folder: `model.onnx`, and beside it `model.onnx_data` with every
 * weight of a kilobyte or more, in the order of their use, unaligned, as onnx.save_model leaves them.
 * The weights go to disk as they are drawn. `exportModel` fills the cache; what is there is taken as
 * it is, so `exporterVersion` changes whenever any recipe writes something else.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { ModelBuilder, type WeightSink } from "./model-builder.ts";
import type { Recipe } from "./recipes.ts";

const exporterVersion = 1;
const seed = 1;

/** The path of the model file below `folder`, written when it is not there yet. */
export function exportModel(name: string, recipe: Recipe, folder: string): string {
  const home = join(folder, `v${exporterVersion}`);
  const kept = join(home, name);
  if (!existsSync(kept)) {
    mkdirSync(home, { recursive: true });
    const made = mkdtempSync(join(home, "writing-"));
    writeExport(name, recipe, made);
    settle(made, kept);
  }
  return join(kept, "model.onnx");
}

/** Writes the two files of a model. */
export function writeExport(name: string, recipe: Recipe, folder: string): void {
  const sink = new FileSink(folder, "model.onnx_data");
  try {
    const { opset, precision } = recipe;
    const builder = new ModelBuilder({ opset, precision, seed, sink });
    recipe.build(builder);
    writeFileSync(join(folder, "model.onnx"), builder.finish(name));
  } finally {
    sink.close();
  }
}

/** Another process may have written the same meanwhile: then its folder stays. */
function settle(made: string, kept: string): void {
  try {
    renameSync(made, kept);
  } catch (error) {
    if (!existsSync(kept)) throw error;
    rmSync(made, { recursive: true });
  }
}

class FileSink implements WeightSink {
  readonly location: string;
  readonly #file: number;
  #end = 0;

  constructor(folder: string, location: string) {
    this.location = location;
    this.#file = openSync(join(folder, location), "w");
  }

  append(bytes: Uint8Array): number {
    const start = this.#end;
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(this.#file, bytes, done, bytes.length - done, start + done);
    }
    this.#end += bytes.length;
    return start;
  }

  close(): void {
    closeSync(this.#file);
  }
}
