/**
 * From a file to the first result: loading an artifact and running it once against onnxruntime-node, which
 * makes a session of the ONNX file with all its optimizations and runs it once. Every sample is a process
 * of its own, of the built package, in turns; the packages' own import is not in it and stands beside.
 * Two cases a model: `here`, where it was optimized (code that was emitted then is in the cache folder),
 * and `first`, with an empty cache folder, as on another machine.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  estimateRatio,
  geometricMean,
  median,
  type TimingPair,
} from "../../src/runtime/measure/statistics.ts";
import { Rng } from "../../src/support/rng.ts";
import { installedVersion, ownVersion } from "../installed.ts";
import { builtIndex, type FirstResult, firstResult } from "../load/first-result.ts";
import { readTensors, writeTensors } from "../load/tensor-files.ts";
import { fetchModel, modelPath } from "../models/fetch.ts";
import { randomInputs } from "../models/random-inputs.ts";
import { roundingOf } from "../models/rounding.ts";
import { type ModelRow, modelTable } from "../models/table.ts";
import type { BenchRow, FailedCase, SuiteSummary } from "../report.ts";
import { countElements, toleranceOf, worstDifference } from "../sessions/compare.ts";
import { unwrap } from "../sessions/import-hints.ts";
import { lacksKernels } from "../sessions/peer-kernels.ts";
import { onnxruntimePeers } from "./onnxruntime-peers.ts";
import type { ForeignCase, Suite } from "./suite.ts";

const rounds = 7;
const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
const peerName = "onnxruntime-node";
/** Loads of the peer that are shorter do not count for the mean: they are all noise and start. */
const leastPeerLoadMs = 10;
const places = ["here", "first"] as const;

export const loadSuite: Suite = {
  name: "load",
  summary: "an artifact's load and first run against onnxruntime's, in fresh processes",
  targets: ["cpu", "wasm", "x64-avx512-vnni", "x64-avx512", "x64-avx2"],
  peers: onnxruntimePeers.filter((p) => p.name === peerName),
  ownClock: "wall",
  load: async ({ target, threads }) => {
    const folder = mkdtempSync(join(tmpdir(), "wavetile-load-"));
    const opened = new Map<ModelRow, Opened | FailedCase>();
    const openOnce = (row: ModelRow): Opened | FailedCase => {
      let found = opened.get(row);
      if (!found) {
        // One model's files at a time.
        for (const [other] of opened) rmSync(join(folder, other.name), { recursive: true });
        opened.clear();
        found = openRow(row, join(folder, row.name), { target, threads });
        opened.set(row, found);
      }
      return found;
    };
    return {
      versions: { wavetile: ownVersion(), [peerName]: installedVersion(peerName) },
      cases: modelTable.flatMap((row) =>
        places.map((where): ForeignCase => {
          const name = `${row.family}/${row.name}/${where}`;
          const measure = async () => {
            const found = openOnce(row);
            return "reason" in found ? { ...found, case: name } : timeRow(name, found, where);
          };
          return { case: name, peerName, measure };
        }),
      ),
      summarise,
      close: async () => rmSync(folder, { recursive: true, force: true }),
    };
  },
};

/** Over the models whose load takes the peer long enough; how many those are stands beside. */
function summarise(rows: readonly BenchRow[]): SuiteSummary {
  const counted = rows.filter((r) => Number(r.beside!.peerLoadMs) > leastPeerLoadMs);
  const ratiosOf = (where: string): number[] =>
    counted.filter((r) => r.case.endsWith(`/${where}`)).map((r) => r.ratio);
  const means = places.flatMap((where) => {
    const ratios = ratiosOf(where);
    return ratios.length > 0 ? [[where, geometricMean(ratios)] as const] : [];
  });
  const least = counted.map((r) => r.ratio);
  return {
    ...Object.fromEntries(means),
    ...(least.length > 0 && { worst: Math.min(...least) }),
    counted: counted.length,
    cases: rows.length,
  };
}

interface Machine {
  readonly target: string;
  readonly threads: number;
}

/** A model on both sides: its files, and what was checked. */
interface Opened {
  readonly folder: string;
  readonly home: string;
  readonly start: (runtime: "ours" | "peer", home: string, outputs?: string) => FirstResult;
}

/** Optimized and run once on both sides, whose outputs have to agree. */
function openRow(row: ModelRow, folder: string, machine: Machine): Opened | FailedCase {
  const refused = (kind: FailedCase["kind"], reason: string): FailedCase => ({
    case: row.name,
    peerName,
    kind,
    reason,
  });
  if (!existsSync(builtIndex)) return refused("unsupported", "there is no build: npm run build");
  const bytes = unwrap(fetchModel(row));
  const model = modelPath(row) ?? join(folder, "model.onnx");
  const artifact = join(folder, "model.wt");
  const [home, inputs] = [join(folder, "home"), join(folder, "inputs.json")];
  mkdirSync(folder);
  writeTensors(inputs, randomInputs(row.cases[0]!, new Rng(1)));
  if (modelPath(row) === undefined) writeFileSync(model, bytes);
  const start = startsOf({ artifact, model, inputs }, machine);
  const [oursFile, peerFile] = [join(folder, "ours.json"), join(folder, "peer.json")];
  try {
    start("peer", home, peerFile);
  } catch (error) {
    if (!lacksKernels(error)) throw error;
    return refused("skipped", `${peerName} has no kernels for ${row.name}`);
  }
  const complaint = optimize({ row, model, artifact, home }, machine.target);
  if (complaint !== undefined) return refused("unsupported", complaint);
  start("ours", home, oursFile);
  const expected = readTensors(peerFile);
  const rounding = unwrap(roundingOf(bytes));
  const tolerance = toleranceOf(rounding, countElements(expected));
  const found = worstDifference(readTensors(oursFile), expected, rounding);
  if (found > tolerance) {
    const differ = `outputs differ by ${found.toExponential(2)}`;
    return refused("wrong", `${differ}, allowed ${tolerance.toExponential(2)}`);
  }
  return { folder, home, start };
}

function startsOf(
  files: { readonly artifact: string; readonly model: string; readonly inputs: string },
  { target, threads }: Machine,
): Opened["start"] {
  const { artifact, model, inputs } = files;
  const peer = {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
    logSeverityLevel: 3,
  };
  return (runtime, home, outputs) => {
    const common = { inputs, home, ...(outputs !== undefined && { outputs }) };
    return runtime === "ours"
      ? firstResult("wavetile", { ...common, path: artifact, options: { target, threads } })
      : firstResult("onnxruntime-node", { ...common, path: model, options: peer });
  };
}

/** What the command said where it refused. */
function optimize(
  {
    row,
    model,
    artifact,
    home,
  }: {
    readonly row: ModelRow;
    readonly model: string;
    readonly artifact: string;
    readonly home: string;
  },
  target: string,
): string | undefined {
  const shapes = Object.entries(row.shapes ?? {}).flatMap(([n, v]) => ["--shape", `${n}=${v}`]);
  const { status, stderr } = spawnSync(
    process.execPath,
    [cli, "optimize", model, "-o", artifact, "--target", target, ...shapes],
    { encoding: "utf8", env: { ...process.env, WAVETILE_HOME: home } },
  );
  return status === 0 ? undefined : stderr.trim();
}

function timeRow(name: string, { folder, home, start }: Opened, where: string): BenchRow {
  const away = join(folder, "away");
  const pairs: TimingPair[] = [];
  const samples: { readonly ours: FirstResult; readonly peer: FirstResult }[] = [];
  for (let round = 0; round < rounds; round++) {
    rmSync(away, { recursive: true, force: true });
    const ours = () => start("ours", where === "here" ? home : away);
    const peer = () => start("peer", home);
    // Each side is first as often as the other.
    const isFirst = round % 2 === 0;
    const early = isFirst ? ours() : peer();
    const late = isFirst ? peer() : ours();
    const sample = isFirst ? { ours: early, peer: late } : { ours: late, peer: early };
    samples.push(sample);
    const total = ({ loadNs, runNs }: FirstResult): number => loadNs + runNs;
    pairs.push({ oursNs: total(sample.ours), peerNs: total(sample.peer) });
  }
  const { oursNs, peerNs, ratio, low, high, n } = estimateRatio(pairs, new Rng(1));
  const milliseconds = (side: "ours" | "peer", part: keyof FirstResult): number =>
    Math.round(median(samples.map((s) => s[side][part])) / 1e4) / 100;
  const beside = {
    loadMs: milliseconds("ours", "loadNs"),
    peerLoadMs: milliseconds("peer", "loadNs"),
    runMs: milliseconds("ours", "runNs"),
    peerRunMs: milliseconds("peer", "runNs"),
    importMs: milliseconds("ours", "importNs"),
    peerImportMs: milliseconds("peer", "importNs"),
  };
  return { case: name, peerName, ours: oursNs, peer: peerNs, ratio, low, high, n, beside };
}
