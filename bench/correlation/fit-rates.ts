/**
 * `npx tsx bench/correlation/fit-rates.ts [--target T] [--count N] [--record FILE | --replay FILE] [--only FAMILY,…]`:
 * which rates of a core rank schedules best. Measures schedules of every family's shapes, drawn by a seed, on this
 * machine (or takes the times that `--record` kept), and prints for each figure that target data may give the mean rank correlation
 * within a workload, and the lowest, under multiples of its value with the others as they stand. Nothing is
 * written into the target: what is taken over from the table is a decision.
 */
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
import { type ProgramTimes, programTimes } from "./program-times.ts";

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

interface Measuring {
  readonly count: number;
  readonly times: ProgramTimes;
  readonly only: readonly string[];
}

function measure(target: Target, { count, times, only }: Measuring): readonly CostSample[] {
  setFlagsFromString("--no-liftoff");
  const families = Object.keys(familyShapes) as Family[];
  const taken = families.filter((f) => only.length === 0 || only.includes(f));
  return taken.flatMap((family) =>
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

async function main(): Promise<void> {
  const target = targets.get(argument("target") ?? "x64-avx2")!;
  const [record, replay] = [argument("record"), argument("replay")];
  const times = programTimes(target.name, { ...(record && { record }), ...(replay && { replay }) });
  const count = Number(argument("count") ?? 50);
  const only = argument("only")?.split(",") ?? [];
  const samples = measure(target, { count, times, only });
  await times.close();
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

await main();
