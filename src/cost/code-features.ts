/**
 * What the residual trees see of a region's code: numbers without a unit (shares of the price, lengths of
 * loops and bodies), so that what is learned on some shapes holds for others. The run of code that takes longest is
 * described by itself, the rest by sums. In: a region's code. Out: one row.
 */

import { lineBytes } from "../schedule/states/footprint.ts";
import type { CoreFigures } from "./core-figures.ts";
import { type CodeWork, priceCode, priceRun, type RunPrice } from "./mix-price.ts";
import type { CodeRun, RunMix } from "./program-work.ts";

/** A region's price, and the figures: traffic, the longest run of code, sums over all runs. */
export interface FeatureRow {
  readonly ns: number;
  readonly row: readonly number[];
}

/** Figures of a row. */
export const featureCount = 31;

export function codeFeatures(work: CodeWork, core: CoreFigures): FeatureRow {
  const price = priceCode(work, core);
  const runs = work.runs.map((run) => ({ run, price: priceRun(run, core) }));
  const longest = runs.reduce((a, b) => (b.price.total > a.price.total ? b : a), runs[0]!);
  const row = [
    ...trafficFeatures(work, price),
    longest.price.total / Math.max(1e-9, price.core),
    ...runFeatures(longest.run, longest.price),
    ...sumFeatures(runs),
  ];
  return { ns: price.total, row };
}

function trafficFeatures(
  work: CodeWork,
  price: { readonly core: number; readonly traffic: readonly number[]; readonly total: number },
): readonly number[] {
  let [bytes, scattered, written] = [0, 0, 0];
  for (const levels of work.traffic) {
    bytes += levels[0]?.bytes ?? 0;
    scattered += levels[0]?.scattered ?? 0;
    written += levels[0]?.written ?? 0;
  }
  const moves = work.runs.reduce((n, r) => n + r.executions * (r.mix.loads + r.mix.stores), 0);
  return [
    price.core / price.total,
    (price.traffic[0] ?? 0) / price.total,
    (price.traffic[1] ?? 0) / price.total,
    scattered / Math.max(1, bytes),
    written / Math.max(1, bytes),
    bytes / lineBytes / Math.max(1, moves),
  ];
}

function runFeatures(
  { mix, executions, chains, entries }: CodeRun,
  p: RunPrice,
): readonly number[] {
  const most = Math.max(1e-9, p.issue, p.arithmetic, p.loads, p.stores, p.chain);
  const all = Math.max(1, p.instructions);
  return [
    p.issue / most,
    p.arithmetic / most,
    p.loads / most,
    p.stores / most,
    p.chain / most,
    Math.log(1 + p.instructions),
    Math.log(executions / Math.max(1, entries)),
    Math.log(executions / Math.max(1, chains)),
    mix.alive,
    mix.control / all,
    mix.laneMoves / all,
    mix.splats / all,
    mix.tests / all,
    mix.spills / all,
    mix.series / all,
    mix.chain,
  ];
}

const summed = ["loads", "stores", "laneMoves", "tests", "spills", "series"] as const;

function sumFeatures(
  runs: readonly { readonly run: CodeRun; readonly price: RunPrice }[],
): readonly number[] {
  const total = (of: (mix: RunMix, price: RunPrice) => number): number =>
    runs.reduce((n, { run, price }) => n + run.executions * of(run.mix, price), 0);
  const instructions = Math.max(
    1,
    total((_, price) => price.instructions),
  );
  const entries = runs.reduce((n, { run }) => n + run.entries, 0);
  const code = runs.reduce((n, { price }) => n + price.instructions, 0);
  return [
    ...summed.map((name) => total((mix) => mix[name]) / instructions),
    Math.log(1 + (100 * entries) / instructions),
    Math.log(1 + code),
  ];
}
