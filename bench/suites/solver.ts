/**
 * The search against toulbar2 (Debian's package, with virtual arc consistency) and HiGHS on seeded networks of
 * layers. Both sides must agree on the optimum. toulbar2's time is the one it prints, without reading the
 * file; a peer that does not finish within the limit counts with the limit, which flatters it.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadHighs } from "../../src/commands/library/highs.ts";
import { estimateRatio, type TimingPair } from "../../src/runtime/measure/statistics.ts";
import { checkOutcome } from "../../src/search/check.ts";
import { collapse } from "../../src/search/collapse.ts";
import { type GeneratorOptions, generate } from "../../src/search/generators.ts";
import { milp } from "../../src/search/milp.ts";
import type { Outcome } from "../../src/search/outcome.ts";
import type { Problem } from "../../src/search/problem.ts";
import { printWcsp } from "../../src/search/wcsp.ts";
import { Rng } from "../../src/support/rng.ts";
import type { BenchRow, FailedCase } from "../report.ts";
import type { ForeignCase, Suite } from "./suite.ts";

const rounds = 3;
const secondsMost = 30;

interface Side {
  readonly ns: number;
  /** Absent when it did not finish. */
  readonly optimum: number | undefined;
}

function runOurs(problem: Problem): { readonly outcome: Outcome; readonly ns: number } {
  const start = performance.now();
  const end = start + secondsMost * 1000;
  const outcome = collapse(problem, { expired: () => performance.now() > end });
  return { outcome, ns: (performance.now() - start) * 1e6 };
}

function toulbarVersion(): string | undefined {
  const run = spawnSync("toulbar2", ["--version"], { encoding: "utf8" });
  return /\d+\.\d+[\w.+-]*/.exec(`${run.stdout}${run.stderr}`)?.[0];
}

function runToulbar(problem: Problem): Side {
  const printed = printWcsp(problem);
  if (!printed.ok) throw new Error(printed.diagnostics[0]!.message);
  const folder = mkdtempSync(join(tmpdir(), "wavetile-toulbar-"));
  try {
    const path = join(folder, "problem.wcsp");
    writeFileSync(path, printed.value.text);
    const args = [path, "-A", `-timer=${secondsMost}`];
    const { stdout } = spawnSync("toulbar2", args, { encoding: "utf8", maxBuffer: 1 << 28 });
    const found = /Optimum: (\d+) .* and ([\d.]+) seconds/.exec(stdout);
    if (found === null) return { ns: secondsMost * 1e9, optimum: undefined };
    return { ns: Number(found[2]) * 1e9, optimum: Number(found[1]) + printed.value.shift };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function solverCase(
  options: GeneratorOptions,
  peerName: string,
  runPeer: (problem: Problem) => Promise<Side> | Side,
): ForeignCase {
  const { shape, layers, states, classes, seed } = options;
  const size = `${layers}x${states}${classes === undefined ? "" : ` in ${classes} classes`}`;
  const name = `${shape}/${size} seed ${seed}`;
  return {
    case: name,
    peerName,
    measure: async (): Promise<BenchRow | FailedCase> => {
      const problem = generate(options);
      const pairs: TimingPair[] = [];
      for (let round = 0; round < rounds; round++) {
        const ours = runOurs(problem);
        const peer = await runPeer(problem);
        const fault = disagreement(problem, ours.outcome, peer);
        if (fault !== undefined) return { case: name, peerName, kind: "wrong", reason: fault };
        pairs.push({ oursNs: ours.ns, peerNs: peer.ns });
      }
      const { oursNs, peerNs, ...ratio } = estimateRatio(pairs, new Rng(1));
      return { case: name, ours: oursNs, peer: peerNs, peerName, ...ratio };
    },
  };
}

function disagreement(problem: Problem, outcome: Outcome, peer: Side): string | undefined {
  const faults = checkOutcome(problem, outcome);
  if (faults.length > 0) return faults.join("; ");
  if (outcome.status !== "optimal") return `not proven: gap ${(outcome.gap * 100).toFixed(3)} %`;
  if (peer.optimum === undefined || peer.optimum === outcome.objective) return undefined;
  return `found ${outcome.objective}, the peer ${peer.optimum}`;
}

const large: readonly GeneratorOptions[] = (
  ["residual", "unet", "dense", "random"] as const
).flatMap((shape) => [1, 2].map((seed) => ({ shape, layers: 1000, states: 40, seed })));
const classed: GeneratorOptions = {
  shape: "residual",
  layers: 1000,
  states: 1000,
  classes: 48,
  seed: 1,
};
const modest: readonly GeneratorOptions[] = [
  { shape: "chain", layers: 20, states: 8, seed: 1 },
  { shape: "residual", layers: 16, states: 8, seed: 1 },
];

export const solverSuite: Suite = {
  name: "solver",
  summary: "the search against toulbar2 and HiGHS",
  targets: ["collapse"],
  peers: [],
  preparePeers: (install) => {
    if (toulbarVersion() !== undefined) return undefined;
    if (install) spawnSync("apt-get", ["install", "-y", "toulbar2"], { stdio: "ignore" });
    if (toulbarVersion() !== undefined) return undefined;
    return "toulbar2 is missing: run again with --install-peers, or apt-get install toulbar2";
  },
  load: async () => {
    const highs = await loadHighs();
    const runHighs = (problem: Problem): Side => {
      const start = performance.now();
      const outcome = milp(problem, { milp: highs, seconds: secondsMost });
      const optimum = outcome.status === "optimal" ? outcome.objective : undefined;
      return { ns: (performance.now() - start) * 1e6, optimum };
    };
    return {
      versions: { toulbar2: toulbarVersion() ?? "none" },
      cases: [
        ...[...large, classed].map((o) => solverCase(o, "toulbar2", runToulbar)),
        ...modest.map((o) => solverCase(o, "highs", runHighs)),
      ],
    };
  },
};
