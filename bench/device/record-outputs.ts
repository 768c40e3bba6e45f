/**
 * Writes what a judge says of the models of model-cases.ts, for models.ts to compare with: Wavetile's
 * oracle in float64 (slow: a gigaflop a second), onnxruntime in float32, or our own WebAssembly program (of
 * quantised models, whose steps make onnxruntime's rounding larger than any tolerance). Runs on any machine.
 * Usage: npx tsx bench/device/record-outputs.ts FOLDER oracle|onnxruntime|wasm NAME…
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { Rng } from "../../src/support/rng.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor, randomInputs } from "../models/random-inputs.ts";
import { unwrap } from "../sessions/import-hints.ts";
import { oracleRuntime } from "../sessions/oracle.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import type { Runtime } from "../sessions/session.ts";
import { wavetileRuntime } from "../sessions/wavetile.ts";
import { fixedShapes, inputSeed, recordedFile, rowOf } from "./model-cases.ts";

const [folder, by, ...names] = process.argv.slice(2) as [string, string, ...string[]];
const judges: Readonly<Record<string, () => Runtime>> = {
  oracle: () => oracleRuntime,
  onnxruntime: () => ortNodeRuntime(1),
  wasm: () => wavetileRuntime("wasm", 1),
};
const judge = judges[by]!();
for (const name of names) {
  const begin = performance.now();
  await recordCase(name, judge);
  console.log(`${name}: ${((performance.now() - begin) / 1000).toFixed(1)} s`);
}

async function recordCase(name: string, runtime: Runtime): Promise<void> {
  const { row, first } = rowOf(name);
  const bytes = unwrap(fetchModel(row));
  const shapes = fixedShapes(bytes, first);
  const session = await runtime.open(bytes, { ...hintsFor(row), shapes });
  const outputs = await session.run(randomInputs(first, new Rng(inputSeed)));
  await session.release();
  mkdirSync(folder, { recursive: true });
  session.outputs.forEach(({ name: output }, number) => {
    const { data } = outputs[output]!;
    const elements = Float32Array.from(data as ArrayLike<number>, Number);
    writeFileSync(recordedFile(folder, name, number), new Uint8Array(elements.buffer));
  });
}
