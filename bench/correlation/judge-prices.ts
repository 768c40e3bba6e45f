/** How well prices rank the measured times of one workload's candidates. */
import { rankCorrelationInterval } from "../../src/runtime/measure/statistics.ts";
import { rankCorrelation } from "../../src/support/rank-correlation.ts";
import { Rng } from "../../src/support/rng.ts";
import type { SuiteSummary } from "../report.ts";

const seed = 1;

export interface CandidateTimes {
  readonly measured: readonly number[];
  /** Each candidate's time of one half of its measurements and of the other. */
  readonly halves: readonly (readonly [number, number])[];
}

/**
 * Spearman's rho with its interval, the ceiling that noise sets to any model (one half of the measurements against
 * the other), rho in the fastest tenth, and how much slower than the fastest candidate the one is that prices put
 * first, and the best of the ten that they put first.
 */
export function judgePrices(
  { measured, halves }: CandidateTimes,
  predicted: readonly number[],
): SuiteSummary {
  const byPrice = predicted.map((_, i) => i).sort((a, b) => predicted[a]! - predicted[b]!);
  const byTime = measured.map((_, i) => i).sort((a, b) => measured[a]! - measured[b]!);
  const best = measured[byTime[0]!]!;
  const regret = (k: number): number =>
    Math.min(...byPrice.slice(0, k).map((i) => measured[i]!)) / best - 1;
  const fastest = byTime.slice(0, Math.max(6, Math.ceil(measured.length / 10)));
  const ceiling = rankCorrelation(
    halves.map((h) => h[0]),
    halves.map((h) => h[1]),
  );
  const { rho, low, high } = rankCorrelationInterval(measured, predicted, new Rng(seed));
  const rhoTop = rankCorrelation(
    fastest.map((i) => measured[i]!),
    fastest.map((i) => predicted[i]!),
  );
  const spread = measured[byTime.at(-1)!]! / best;
  return { rho, low, high, ceiling, rhoTop, regret1: regret(1), regret10: regret(10), spread };
}
