/**
 * The statistics of paired timings: median, geometric mean, and a percentile bootstrap interval of
 * the ratio of medians (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13).
 * Pairs are resampled together, so that a machine that slows down slows both sides of a pair.
 */
import { invariant } from "../../support/invariant.ts";
import { rankCorrelation } from "../../support/rank-correlation.ts";
import type { Rng } from "../../support/rng.ts";

/** Times of one round: ours and the peer's, taken one after the other. */
export interface TimingPair {
  readonly oursNs: number;
  readonly peerNs: number;
}

/** A ratio above 1 means that ours is better. */
export interface RatioEstimate {
  readonly oursNs: number;
  readonly peerNs: number;
  readonly ratio: number;
  /** Ends of the 95 % interval of the ratio. */
  readonly low: number;
  readonly high: number;
  readonly n: number;
}

const resamples = 1000;
const confidence = 0.95;

/** The value with `share` of the sorted values below it, linear between neighbours (type 7). */
export function quantile(values: readonly number[], share: number): number {
  invariant(values.length > 0, () => "quantile of no values");
  const sorted = [...values].sort((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (sorted[above]! - sorted[below]!) * (at - below);
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function geometricMean(values: readonly number[]): number {
  invariant(values.length > 0, () => "geometric mean of no values");
  return Math.exp(values.reduce((sum, v) => sum + Math.log(v), 0) / values.length);
}

/** Medians, their ratio, and how far another set of rounds might move it. */
export function estimateRatio(pairs: readonly TimingPair[], rng: Rng): RatioEstimate {
  const bootstrap = Array.from({ length: resamples }, () =>
    medianRatio(pairs.map(() => rng.pick(pairs))),
  );
  return {
    oursNs: median(pairs.map((p) => p.oursNs)),
    peerNs: median(pairs.map((p) => p.peerNs)),
    ratio: medianRatio(pairs),
    low: quantile(bootstrap, (1 - confidence) / 2),
    high: quantile(bootstrap, (1 + confidence) / 2),
    n: pairs.length,
  };
}

function medianRatio(pairs: readonly TimingPair[]): number {
  return median(pairs.map((p) => p.peerNs)) / median(pairs.map((p) => p.oursNs));
}

/** The rank correlation with the ends of its 95 % interval over resampled pairs. */
export function rankCorrelationInterval(
  a: readonly number[],
  b: readonly number[],
  rng: Rng,
): { readonly rho: number; readonly low: number; readonly high: number } {
  const found = Array.from({ length: 200 }, () => {
    const picks = a.map(() => rng.integer(0, a.length - 1));
    return rankCorrelation(
      picks.map((i) => a[i]!),
      picks.map((i) => b[i]!),
    );
  });
  const low = quantile(found, (1 - confidence) / 2);
  return { rho: rankCorrelation(a, b), low, high: quantile(found, (1 + confidence) / 2) };
}
