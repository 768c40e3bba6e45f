/** The child process of the campaign big-models: one model a process, so that time and memory are its own. */
import { importOptions, unwrap } from "../../bench/sessions/import-hints.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { readModelFile } from "../../src/runtime/files/model-source.ts";
import type { Mark } from "./large-models.ts";

export interface Question {
  readonly path: string;
  readonly marks: readonly Mark[];
}

export interface Answer {
  readonly importMs: number;
  /** Of weights that were read, all held at once. */
  readonly touchedBytes: number;
  /** Of the whole process. */
  readonly largestBytes: number;
  readonly wrong: readonly string[];
}

function answer({ path, marks }: Question): Answer {
  const { bytes } = unwrap(readModelFile(path));
  const options = importOptions({ path });
  const start = performance.now();
  const { weights } = unwrap(importOnnx(bytes, options));
  const importMs = performance.now() - start;
  const names = [...new Set(marks.map((m) => m.weight))];
  const read = new Map(names.map((name) => [name, weights.read(name)]));
  const wrong = marks.flatMap(({ weight, element, value }) => {
    const found = Number(read.get(weight)!.data[element]);
    return found === value ? [] : [`${weight}[${element}] is ${found}, not ${value}`];
  });
  const touchedBytes = [...read.values()].reduce((sum, t) => sum + t.data.byteLength, 0);
  const largestBytes = process.resourceUsage().maxRSS * 1024;
  return { importMs, touchedBytes, largestBytes, wrong };
}

process.once("message", (question: Question) => {
  process.send!(answer(question), () => process.disconnect());
});
