/**
 * Large models, in a process for each step. Trials by name, around and around:
 *   nodes           a graph of 10,000 nodes is imported within a second of its thread's time (the least of three)
 *   ranges          a model whose weights lie in a file of 3 to 6 GiB: what its nodes use is read at its place, and the
 *                   process stays below 1.3 times those bytes
 *   artifact TARGET 1.5 GiB of weights optimized, loaded and run: right, and no process above 1.3 times those bytes
 *   table TARGET    one weight above 2 GiB of which a run gathers some rows: the same, and the rows are the file's
 */
import { fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import type { Answer, Question } from "../big-models/child.ts";
import {
  columns,
  type Mark,
  manyNodes,
  rows,
  table,
  writeLargeFile,
  writeTableFile,
} from "../big-models/large-models.ts";
import type { Campaign, Finding } from "../campaign.ts";

const nodeCount = 10_000;
const mostImportMs = 1_000;
const mostBytesPerByte = 1.3;

type BigTrial = (folder: string, rng: Rng) => Promise<Finding>;

const trials: Readonly<Record<string, BigTrial>> = {
  nodes: timeNodes,
  ranges: weighBytes,
  "artifact wasm": (folder, rng) => weighArtifact(folder, rng, "wasm"),
  "artifact cpu": (folder, rng) => weighArtifact(folder, rng, "cpu"),
  "table wasm": (folder, rng) => gatherRows(folder, rng, "wasm"),
  "table cpu": (folder, rng) => gatherRows(folder, rng, "cpu"),
};
const names = Object.keys(trials);

export const bigModels: Campaign = {
  name: "big-models",
  summary: "10,000 nodes imported in a second; weights of gigabytes within 1.3 times their bytes",
  targets: ["library"],
  defaultCount: names.length,
  names: () => names,
  open: async () => async (seed) => {
    const folder = mkdtempSync(join(tmpdir(), "wavetile-big-"));
    try {
      return await trials[names[seed % names.length]!]!(folder, new Rng(seed));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
};

async function timeNodes(folder: string, rng: Rng): Promise<Finding> {
  const path = join(folder, "model.onnx");
  writeFileSync(path, manyNodes(nodeCount, rng));
  const times: number[] = [];
  while (times.length < 3) times.push((await ask({ kind: "import", path, marks: [] })).importMs);
  const found = times.map((ms) => `${Math.round(ms)} ms`).join(", ");
  if (Math.min(...times) <= mostImportMs) return { kind: "passed", note: found };
  return { kind: "failed", reason: `${nodeCount} nodes were imported in ${found}` };
}

async function weighBytes(folder: string, rng: Rng): Promise<Finding> {
  const count = rng.integer(24, 48);
  const used = Array.from({ length: count }, (_, i) => i).filter(
    (i) => i === count - 1 || rng.uniform() < 8 / count,
  );
  const { path, marks } = writeLargeFile(folder, { count, used, rng });
  const { wrong, touchedBytes, largestBytes } = await ask({ kind: "import", path, marks });
  if (wrong.length > 0) return { kind: "failed", reason: wrong.join("; ") };
  return judged({ import: largestBytes }, touchedBytes);
}

async function weighArtifact(folder: string, rng: Rng, target: string): Promise<Finding> {
  const used = Array.from({ length: 12 }, (_, i) => i);
  const { path, marks } = writeLargeFile(folder, { count: used.length, used, rng });
  const x = Float32Array.from({ length: rows }, () => 1 + rng.uniform());
  const feed: Tensor = { dtype: "f32", shape: [1, rows], data: x };
  const found = await optimizeAndRun(path, target, feed);
  if (typeof found === "string") return { kind: "failed", reason: found };
  const wrong = firstWrong(found.output, productOf(x, marks), 1e-5);
  if (wrong !== undefined) return { kind: "failed", reason: wrong };
  return judged(found.largestBytes, used.length * rows * columns * 4);
}

/** Of a row with weights that are zeros but for their marks. */
function productOf(x: Float32Array, marks: readonly Mark[]): Float64Array {
  const y = new Float64Array(columns);
  for (const { element, value } of marks) {
    y[element % columns]! += x[Math.floor(element / columns)]! * value;
  }
  return y;
}

async function gatherRows(folder: string, rng: Rng, target: string): Promise<Finding> {
  const { path, filled } = writeTableFile(folder, rng);
  const chosen = [...filled.keys(), rng.integer(1, table.rows - 2)];
  const wanted = chosen.flatMap((row) => [...(filled.get(row) ?? new Float32Array(table.width))]);
  const data = BigInt64Array.from(chosen, BigInt);
  const found = await optimizeAndRun(path, target, { dtype: "i64", shape: [data.length], data });
  if (typeof found === "string") return { kind: "failed", reason: found };
  const wrong = firstWrong(found.output, wanted, 0);
  if (wrong !== undefined) return { kind: "failed", reason: wrong };
  return judged(found.largestBytes, table.rows * table.width * 4);
}

interface Ran {
  readonly output: Tensor;
  readonly largestBytes: Readonly<Record<"optimize" | "run", number>>;
}

/** A text of what went wrong, or what the artifact of a model answers. */
async function optimizeAndRun(path: string, target: string, x: Tensor): Promise<Ran | string> {
  const artifact = `${path}.wt`;
  const shape = ["--shape", `N=${x.shape[0]}`];
  const words = ["optimize", path, "-o", artifact, "--target", target, ...shape];
  const optimized = await ask({ kind: "command", words });
  if (optimized.exit !== 0) return `optimize ended with ${optimized.exit}: ${optimized.text}`;
  const ran = await ask({ kind: "run", path: artifact, target, feeds: { x } });
  const largestBytes = { optimize: optimized.largestBytes, run: ran.largestBytes };
  return { output: ran.output, largestBytes };
}

function firstWrong(
  { data }: Tensor,
  wanted: ArrayLike<number>,
  tolerance: number,
): string | undefined {
  if (data.length !== wanted.length) return `${data.length} elements, not ${wanted.length}`;
  for (let i = 0; i < wanted.length; i++) {
    const [found, expected] = [Number(data[i]), wanted[i]!];
    if (Math.abs(found - expected) <= tolerance * Math.abs(expected)) continue;
    return `element ${i} is ${found}, not ${expected}`;
  }
  return undefined;
}

/** Peaks of memory by step against the bytes of the weights. */
function judged(peaks: Readonly<Record<string, number>>, weightBytes: number): Finding {
  const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
  const told = Object.entries(peaks).map(([step, bytes]) => `${step} ${mib(bytes)}`);
  const text = `${told.join(", ")} for weights of ${mib(weightBytes)}`;
  const isWithin = Math.max(...Object.values(peaks)) <= mostBytesPerByte * weightBytes;
  return isWithin ? { kind: "passed", note: text } : { kind: "failed", reason: text };
}

function ask<K extends Question["kind"]>(question: Question & { kind: K }): Promise<Answer<K>> {
  const path = fileURLToPath(new URL("../big-models/child.ts", import.meta.url));
  // Tensors travel as they are.
  const child = fork(path, { execArgv: ["--import", "tsx"], serialization: "advanced" });
  return new Promise((resolve, reject) => {
    let answered: Answer<K> | undefined;
    child.once("message", (message) => {
      answered = message as Answer<K>;
    });
    child.once("exit", (code, signal) => {
      if (answered) resolve(answered);
      else reject(new Error(`the process ended (${code ?? signal})`));
    });
    child.send(question);
  });
}
