/**
 * The search against independent answers, one trial a seed: 500 small random problems against every
 * assignment tried; 60 random chains on each of four memories against Viterbi (times of both are the
 * bench's business: they hang on what the engine has compiled before); 100 planted contradictions that must be explained, each in 100 ms; published weighted
 * constraint problems whose optima must be proven, and memory plans that must be found, each in 120 s
 * (skipped where the data is not at hand).
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LayerType, layerKinds } from "../../src/layers/layer.ts";
import { defaultTiles, problemOfLayers } from "../../src/layers/layer-problem.ts";
import { checkAgainstOptimum, checkOutcome, exhaustiveOptimum } from "../../src/search/check.ts";
import { collapse } from "../../src/search/collapse.ts";
import { explainConflict } from "../../src/search/conflict.ts";
import { planOffsets } from "../../src/search/offsets.ts";
import { plant } from "../../src/search/planted-conflict.test-support.ts";
import type { Problem } from "../../src/search/problem.ts";
import { randomProblem } from "../../src/search/random-problem.test-support.ts";
import { viterbi } from "../../src/search/viterbi.ts";
import { readWcsp } from "../../src/search/wcsp.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";

const small = 500;
const chainsEach = 60;
const capacities = [8, 12, 32, 192].map((kib) => kib * 1024);
const chains = chainsEach * capacities.length;
const planted = 100;
const published = ["zebra", "warehouse", "latin", "celar6sub0", "cap131", "magic4"];
const packings = [..."ABCDEFGHIJK"];
const total = small + chains + planted + published.length + packings.length;

export const solver: Campaign = {
  name: "solver",
  summary: "the search against brute force, Viterbi, planted contradictions and published optima",
  targets: ["collapse"],
  defaultCount: total,
  open: async () => (seed) => {
    const at = ((seed % total) + total) % total;
    if (at < small) return againstBruteForce(seed);
    if (at < small + chains) return againstViterbi(seed, at - small);
    if (at < small + chains + planted) return explained(seed);
    const data = at - small - chains - planted;
    if (data < published.length) return provesPublished(published[data]!);
    return packs(packings[data - published.length]!);
  },
};

function failed(reason: string): Finding {
  return { kind: "failed", reason };
}

function againstBruteForce(seed: number): Finding {
  const rng = new Rng(seed);
  const problem = randomProblem(rng, {
    variables: rng.integer(2, 7),
    states: rng.integer(2, 5),
    edges: rng.integer(0, 14),
    hard: rng.pick([0, 0.1, 0.4]),
    budgets: rng.pick([0, 0, 1, 2]),
  });
  const outcome = collapse(problem);
  const best = exhaustiveOptimum(problem);
  const faults = [...checkOutcome(problem, outcome), ...checkAgainstOptimum(outcome, best)];
  if (outcome.objective !== best) faults.push(`found ${outcome.objective}, optimum ${best}`);
  if (outcome.status === "feasible") faults.push("not proven");
  return faults.length === 0 ? passed : failed(faults.join("; "));
}

/** Eight layers of random kinds and sizes on one of the four memories. */
function randomChain(rng: Rng, sramBytes: number): Problem {
  const types = Object.keys(layerKinds) as LayerType[];
  const layers = Array.from({ length: 8 }, (_, i) => {
    const type = rng.pick(types);
    const dims = layerKinds[type].dims.map((d) => [
      d,
      d.startsWith("K") && d.length === 2 ? 3 : 2 ** rng.integer(4, 11),
    ]);
    return { name: `layer${i}`, type, dims: Object.fromEntries(dims) as Record<string, number> };
  });
  const machine = {
    name: "virtual",
    sramBytes,
    sramBandwidthGbps: 19000,
    dramBandwidthGbps: 900,
    computeGflops: 312000,
    alignmentBytes: 64,
  };
  const edges = layers.slice(1).map((_, i) => [i, i + 1] as const);
  return problemOfLayers({ name: "chain", machine, layers, edges, tiles: defaultTiles });
}

function againstViterbi(seed: number, at: number): Finding {
  const problem = randomChain(new Rng(seed), capacities[Math.floor(at / chainsEach)]!);
  const exact = viterbi(problem);
  const ours = collapse(problem);
  if (ours.objective !== exact.objective || ours.status !== "optimal") {
    return failed(`found ${ours.objective}, ${ours.status}; Viterbi ${exact.objective}`);
  }
  const faults = checkOutcome(problem, ours);
  if (faults.length > 0) return failed(faults.join("; "));
  return passed;
}

function explained(seed: number): Finding {
  const { problem, kind } = plant(seed);
  const cpu = process.cpuUsage();
  const conflict = explainConflict(problem);
  const ms = process.cpuUsage(cpu).user / 1000;
  const expected = { budget: 1, layouts: 2, exclusion: 3 }[kind];
  if (conflict === undefined) return failed("no conflict found");
  if (conflict.constraints.length !== expected) return failed(conflict.constraints.join("; "));
  if (!conflict.enough) return failed(`not enough: ${conflict.change}`);
  return ms <= 100 ? passed : failed(`took ${ms.toFixed(0)} ms`);
}

const datasets = join(import.meta.dirname, "../../../shared/datasets");
const secondsEach = 120;

/** Unpacks an archive of the data sets; `judge` gets the text of the file that ends as asked. */
function withArchive(name: string, judge: (text: (suffix: string) => string) => Finding): Finding {
  const archive = join(datasets, name);
  if (!existsSync(archive)) return { kind: "skipped", reason: `${name} is not at hand` };
  const folder = mkdtempSync(join(tmpdir(), "wavetile-data-"));
  try {
    spawnSync("tar", ["-xJf", archive, "-C", folder]);
    const files = readdirSync(folder, { recursive: true }) as string[];
    return judge((suffix) => {
      const path = files.find((f) => f.endsWith(suffix));
      if (path === undefined) throw new Error(`${suffix} is not in the archive`);
      return readFileSync(join(folder, path), "utf8");
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function provesPublished(name: string): Finding {
  return withArchive("wcsp.tar.xz", (text) =>
    prove(text(`${name}.wcsp`), Number(text(`${name}.ub`))),
  );
}

const capacity = 1048576;

/** Offsets of a published set of blocks, below the capacity and without overlap. */
function packs(name: string): Finding {
  return withArchive("minimalloc.tar.xz", (text) => {
    const rows = text(`${name}.${capacity}.csv`).trim().split("\n").slice(1);
    const blocks = rows.map((row) => {
      const [, start, end, size] = row.split(",").map(Number);
      return { start: start!, end: end!, size: size! };
    });
    const stop = performance.now() + secondsEach * 1000;
    const found = planOffsets(blocks, { capacity, expired: () => performance.now() > stop });
    if (found.offsets === undefined) return failed(`${name}: ${found.status}`);
    const at = found.offsets;
    const overlap = blocks.some((a, i) =>
      blocks.some((b, j) => {
        const meet = i < j && a.start < b.end && b.start < a.end;
        return meet && at[i]! < at[j]! + b.size && at[j]! < at[i]! + a.size;
      }),
    );
    const high = blocks.some((b, i) => at[i]! < 0 || at[i]! + b.size > capacity);
    return overlap || high ? failed(`${name}: the offsets overlap or pass the capacity`) : passed;
  });
}

function prove(text: string, optimum: number): Finding {
  const read = readWcsp(text);
  if (!read.ok) return failed(read.diagnostics.map((d) => d.message).join("; "));
  const end = performance.now() + secondsEach * 1000;
  const outcome = collapse(read.value, { expired: () => performance.now() > end });
  const faults = checkOutcome(read.value, outcome);
  if (faults.length > 0) return failed(faults.join("; "));
  if (outcome.status === "optimal" && outcome.objective === optimum) return passed;
  return failed(`${outcome.objective} with bound ${outcome.bound}; the optimum is ${optimum}`);
}
