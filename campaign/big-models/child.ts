/**
 * The child process of the campaign big-models: one question a process, so that time and memory are its own; it
 * loads no more code than that takes.
 */
import { readFileSync } from "node:fs";
import { importOptions, unwrap } from "../../bench/sessions/import-hints.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { readModelFile } from "../../src/runtime/files/model-source.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
import type { Mark } from "./large-models.ts";

export type Question =
  /** Import, and read the weights that have marks. */
  | { readonly kind: "import"; readonly path: string; readonly marks: readonly Mark[] }
  /** The command line. */
  | { readonly kind: "command"; readonly words: readonly string[] }
  /** Load an artifact and run it on one thread. */
  | {
      readonly kind: "run";
      readonly path: string;
      readonly target: string;
      readonly feeds: Readonly<Record<string, Tensor>>;
    };

export interface Answers {
  readonly import: {
    /** Of the importing thread. */
    readonly importMs: number;
    /** Of weights that were read, all held at once. */
    readonly touchedBytes: number;
    readonly wrong: readonly string[];
  };
  readonly command: { readonly exit: number; readonly text: string };
  /** The first output. */
  readonly run: { readonly output: Tensor };
}

export type Answer<K extends Question["kind"]> = Answers[K] & {
  /** Of the whole process. */
  readonly largestBytes: number;
};

/** Time that a processor spent on this thread, whatever runs beside it; where the system does not say, the clock's. */
function ownMs(): number {
  try {
    const [nanoseconds] = readFileSync("/proc/thread-self/schedstat", "utf8").split(" ");
    return Number(nanoseconds) / 1e6;
  } catch {
    return performance.now();
  }
}

function importAgain({ path, marks }: Question & { kind: "import" }): Answers["import"] {
  const { bytes } = unwrap(readModelFile(path));
  const options = importOptions({ path });
  const start = ownMs();
  const { weights } = unwrap(importOnnx(bytes, options));
  const importMs = ownMs() - start;
  const names = [...new Set(marks.map((m) => m.weight))];
  const read = new Map(names.map((name) => [name, weights.read(name)]));
  const wrong = marks.flatMap(({ weight, element, value }) => {
    const found = Number(read.get(weight)!.data[element]);
    return found === value ? [] : [`${weight}[${element}] is ${found}, not ${value}`];
  });
  const touchedBytes = [...read.values()].reduce((sum, t) => sum + t.data.byteLength, 0);
  return { importMs, touchedBytes, wrong };
}

async function runArtifact({ path, target, feeds }: Question & { kind: "run" }) {
  const { load } = await import("../../src/commands/library/load.ts");
  const model = await load(path, { target, threads: 1 });
  const [output] = Object.values(model.run(feeds));
  await model.dispose();
  return { output: output! };
}

async function answer(question: Question): Promise<Answers[Question["kind"]]> {
  if (question.kind === "import") return importAgain(question);
  if (question.kind === "run") return runArtifact(question);
  const { runCaptured } = await import("../../src/cli/run-captured.test-support.ts");
  const { exit, out, err } = await runCaptured(question.words, () => performance.now());
  return { exit, text: exit === 0 ? out : err + out };
}

process.once("message", async (question: Question) => {
  const found = await answer(question);
  const largestBytes = process.resourceUsage().maxRSS * 1024;
  process.send!({ ...found, largestBytes }, () => process.disconnect());
});
