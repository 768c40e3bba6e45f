/**
 * Large models, in a process each. Even trials: a graph of 10,000 nodes is imported within a second (the
 * least of three, so run it where nothing else runs). Odd trials: a model whose weights lie in a file of
 * 3 to 6 GiB; what its nodes use is read at its place, and the process stays below 1.3 times those bytes.
 */
import { fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Rng } from "../../src/support/rng.ts";
import type { Answer, Question } from "../big-models/child.ts";
import { manyNodes, writeLargeFile } from "../big-models/large-models.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";

const nodeCount = 10_000;
const mostImportMs = 1_000;
const mostBytesPerByte = 1.3;

export const bigModels: Campaign = {
  name: "big-models",
  summary: "10,000 nodes imported in a second; weights of gigabytes read by range, within memory",
  targets: ["library"],
  defaultCount: 6,
  open: async () => async (seed) => {
    const folder = mkdtempSync(join(tmpdir(), "wavetile-big-"));
    try {
      return await (seed % 2 === 0 ? timeNodes : weighBytes)(folder, new Rng(seed));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
};

async function timeNodes(folder: string, rng: Rng): Promise<Finding> {
  const path = join(folder, "model.onnx");
  writeFileSync(path, manyNodes(nodeCount, rng));
  const times: number[] = [];
  while (times.length < 3) times.push((await ask({ path, marks: [] })).importMs);
  const least = Math.min(...times);
  if (least <= mostImportMs) return passed;
  const found = times.map((ms) => `${Math.round(ms)} ms`).join(", ");
  return { kind: "failed", reason: `${nodeCount} nodes were imported in ${found}` };
}

async function weighBytes(folder: string, rng: Rng): Promise<Finding> {
  const count = rng.integer(24, 48);
  const used = Array.from({ length: count }, (_, i) => i).filter(
    (i) => i === count - 1 || rng.uniform() < 8 / count,
  );
  const { path, marks } = writeLargeFile(folder, { count, used, rng });
  const { wrong, touchedBytes, largestBytes } = await ask({ path, marks });
  if (wrong.length > 0) return { kind: "failed", reason: wrong.join("; ") };
  if (largestBytes <= mostBytesPerByte * touchedBytes) return passed;
  const [largest, touched] = [largestBytes, touchedBytes].map((n) => Math.round(n / 2 ** 20));
  return { kind: "failed", reason: `${largest} MiB for weights of ${touched} MiB` };
}

function ask(question: Question): Promise<Answer> {
  const path = fileURLToPath(new URL("../big-models/child.ts", import.meta.url));
  const child = fork(path, { execArgv: ["--import", "tsx"] });
  return new Promise((resolve, reject) => {
    let answered: Answer | undefined;
    child.once("message", (message) => {
      answered = message as Answer;
    });
    child.once("exit", (code, signal) => {
      if (answered) resolve(answered);
      else reject(new Error(`the process ended (${code ?? signal})`));
    });
    child.send(question);
  });
}
