/**
 * `npx tsx bench/correlation/fit-rates.ts [--target T] [--count N] [--save FILE] [--from FILE]`: which rates of a
 * core rank schedules best. Measures schedules of every family's shapes, drawn by a seed, on this machine (or reads
 * those that `--save` kept), and prints for each figure that target data may give the mean rank correlation
 * within a workload, and the lowest, under multiples of its value with the others as they stand. Nothing is
 * written into the target: what is taken over from the table is a decision.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import {
  type Family,
  familyShapes,
  makeWorkload,
} from "../../src/commands/library/calibration-workloads.ts";
import { type CostSample, priceSample } from "../../src/cost/calibrated.ts";
import { type CoreFigure, type CoreFigures, coreFigures } from "../../src/cost/core-figures.ts";
import { rankCorrelation } from "../../src/support/rank-correlation.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { measureCandidates } from "./measured-set.ts";
import { programTimes } from "./program-times.ts";

const fitted: readonly CoreFigure[] = [
  ...(["issuePerNs", "loadsPerNs", "storesPerNs", "latencyNs", "additionNs"] as const),
  ...(["gatherInstructions", "overlapLoss", "loopEndNs"] as const),
  ...(["stallNsPerByte1", "stallNsPerByte2", "stallNsPerByte3"] as const),
];
const factors = [0.25, 0.5, 0.7, 1, 1.4, 2, 4] as const;
const seed = 1;

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
}

function measure(target: Target, count: number): readonly CostSample[] {
  setFlagsFromString("--no-liftoff");
  const times = programTimes(target.name, {});
  return (Object.keys(familyShapes) as Family[]).flatMap((family) =>
    familyShapes[family].flatMap(
      (dims) =>
        measureCandidates(makeWorkload(family, dims), target, { count, seed, times }).samples,
    ),
  );
}

/** Rank correlations by workload. */
function correlations(samples: readonly CostSample[], core: CoreFigures): readonly number[] {
  const workloads = new Map<string, { readonly ns: number[]; readonly prices: number[] }>();
  for (const sample of samples) {
    const found = workloads.get(sample.workload) ?? { ns: [], prices: [] };
    workloads.set(sample.workload, found);
    found.ns.push(sample.ns);
    found.prices.push(priceSample(sample, core));
  }
  return [...workloads.values()].map(({ ns, prices }) => rankCorrelation(ns, prices));
}

function describe(rhos: readonly number[]): string {
  const mean = rhos.reduce((sum, rho) => sum + rho, 0) / rhos.length;
  return `${mean.toFixed(3)} (${Math.min(...rhos).toFixed(2)})`;
}

function main(): void {
  const target = targets.get(argument("target") ?? "x64-avx2")!;
  const from = argument("from");
  const samples: readonly CostSample[] = from
    ? (JSON.parse(readFileSync(from, "utf8")) as readonly CostSample[])
    : measure(target, Number(argument("count") ?? 50));
  const save = argument("save");
  if (save) writeFileSync(save, JSON.stringify(samples));
  const core = coreFigures(target);
  const now = correlations(samples, core);
  const head = `${samples.length} schedules of ${now.length} workloads, ${target.name}`;
  process.stdout.write(`${head}: mean (lowest) rank correlation ${describe(now)}\n`);
  for (const figure of fitted) {
    const row = factors.map((factor) => {
      const rhos = correlations(samples, { ...core, [figure]: core[figure] * factor });
      return `x${factor} ${describe(rhos)}`;
    });
    process.stdout.write(`${figure} ${core[figure].toPrecision(3)}: ${row.join("  ")}\n`);
  }
}

main();
