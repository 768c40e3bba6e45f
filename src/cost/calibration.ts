/**
 * A machine's own figures: the analytical model fitted to samples, and trees for what it leaves. Either is taken
 * only if it does better on shapes that it was not fitted to: by rank correlation within each workload, since
 * trees that come closer in nanoseconds can still swap what lies close together; where order is the same, by the
 * error. In: samples. Out: a calibration as data, what it improved, and prices with an interval. How samples are
 * taken is the caller's.
 */

import { invariant } from "../support/invariant.ts";
import { rankCorrelation } from "../support/rank-correlation.ts";
import type { Target } from "../target/target.ts";
import { type CostSample, fitCore, priceSample } from "./calibrated.ts";
import { codeFeatures } from "./code-features.ts";
import { type CoreFigures, coreFigures } from "./core-figures.ts";
import { countedSample } from "./counted-work.ts";
import type { CodeWork } from "./mix-price.ts";
import { fitResidual, type ResidualModel, residualOf } from "./residual-trees.ts";

/** What prices code: figures of a core, and what trees add to it. */
export interface CostModel {
  readonly core: CoreFigures;
  /** Absent where trees did not help on shapes that they were not fitted to. */
  readonly residual?: ResidualModel;
  /** The part of what the trees say that is believed. */
  readonly trust: number;
  /** Spread of the logarithm of measured over priced time within a workload. */
  readonly sigma: number;
}

export interface Calibration extends CostModel {
  readonly heldOut: HeldOut;
}

/** How prices did on shapes that were left out, under the first figures and under what is kept. */
export interface Comparison {
  /** Rank correlation within a workload. */
  readonly before: number;
  readonly after: number;
  /** Mean distance of the logarithm of the price from that of the time. */
  readonly errorBefore: number;
  readonly errorAfter: number;
}

/** Means over the workloads, and each. */
export interface HeldOut extends Comparison {
  readonly workloads: readonly (Comparison & { readonly workload: string; readonly n: number })[];
}

export interface CalibratedPrice {
  readonly ns: number;
  /** Two sigmas around it. */
  readonly low: number;
  readonly high: number;
}

/** Spread where nothing was measured: what fits of several machines found before they were fitted. */
const analyticalSigma = 0.3;

/** Prices from the target's data alone. */
export function analyticalModel(target: Target): CostModel {
  return { core: coreFigures(target), trust: 0, sigma: analyticalSigma };
}

/** Largest factor on a figure, up or down. */
export const mostScaled = 4;
const fit = { most: mostScaled, rounds: 4 } as const;
/** Parts of each family's shapes that are left out in turn. */
const folds = 4;
/** What a candidate must gain of what is missing to a perfect order, and may lose of it in one fold. */
const leastGain = 0.1;
/** Or what part of the error, where it loses next to nothing of the order. */
const leastErrorGain = 0.2;
/** Order that is missing where it seems perfect: a few samples cannot tell. */
const leastMissing = 0.1;
/** What an error is worth beside the order. */
const errorWeight = 0.25;

/** A way to price: fitted figures or the first ones, and how far trees upon them are believed. */
interface Candidate {
  readonly fitted: boolean;
  readonly trust: number;
}

const candidates: readonly Candidate[] = [false, true].flatMap((fitted) =>
  [0, 0.25, 0.5, 0.75, 1].map((trust) => ({ fitted, trust })),
);

/** How a candidate did on a workload that was left out. */
interface Judged {
  readonly workload: string;
  readonly n: number;
  readonly rho: number;
  readonly error: number;
  /** Of the logarithms, without what the workload is off by as a whole. */
  readonly variance: number;
}

/** By candidate, what was found on the workloads of one fold. */
type Fold = readonly (readonly Judged[])[];

/** Fits learn from the spills that were counted; they are judged by prices of what nobody has emitted yet. */
export function calibrate(samples: readonly CostSample[], start: CoreFigures): Calibration {
  invariant(samples.length > 0, () => "a calibration without samples");
  const counted = samples.map(countedSample);
  const foldOf = foldsOf(samples);
  const judged: Fold[] = [];
  for (let fold = 0; fold < folds; fold++) {
    const isOut = (s: CostSample): boolean => foldOf.get(s.workload) === fold;
    const inside = counted.filter((s) => !isOut(s));
    const outside = samples.filter(isOut);
    if (inside.length === 0 || outside.length === 0) continue;
    const models = modelsOf(inside, start);
    judged.push(candidates.map((c) => judge(outside, (s) => models.price(s, c))));
  }
  const best = bestOf(judged);
  const { fitted, trust } = candidates[best]!;
  const core = fitted ? fitCore(counted, { start, ...fit }) : start;
  const after = judged.flatMap((fold) => fold[best]!);
  return {
    core,
    ...(trust > 0 && { residual: fitResidual(counted, core) }),
    trust,
    sigma: Math.sqrt(meanOf(after.map((j) => j.variance))),
    heldOut: heldOut(
      judged.flatMap((fold) => fold[0]!),
      after,
    ),
  };
}

/** A fold leaves out one shape of each family, so that a family is known when its shape is judged. */
function foldsOf(samples: readonly CostSample[]): ReadonlyMap<string, number> {
  const seen = new Map<string, number>();
  const found = new Map<string, number>();
  for (const { workload, family } of samples) {
    if (found.has(workload)) continue;
    const at = seen.get(family) ?? 0;
    seen.set(family, at + 1);
    found.set(workload, at % folds);
  }
  return found;
}

function heldOut(before: readonly Judged[], after: readonly Judged[]): HeldOut {
  const workloads = before.map(({ workload, n, rho, error }, i) => ({
    workload,
    n,
    before: rho,
    after: after[i]!.rho,
    errorBefore: error,
    errorAfter: after[i]!.error,
  }));
  const mean = (of: keyof Comparison): number => meanOf(workloads.map((w) => w[of]));
  return {
    before: mean("before"),
    after: mean("after"),
    errorBefore: mean("errorBefore"),
    errorAfter: mean("errorAfter"),
    workloads,
  };
}

/** The first candidate is what there was before. */
function bestOf(judged: readonly Fold[]): number {
  let best = 0;
  let bestGain = 0;
  for (let at = 1; at < candidates.length; at++) {
    const gain = gainOf(judged, at);
    if (gain <= bestGain) continue;
    best = at;
    bestGain = gain;
  }
  return best;
}

/** What a candidate gains; nothing where it is too little, or loses in some fold. */
function gainOf(judged: readonly Fold[], at: number): number {
  const rho = (fold: Fold, of: number): number => meanOf(fold[of]!.map((j) => j.rho));
  const error = (of: number): number =>
    meanOf(judged.flatMap((fold) => fold[of]!.map((j) => j.error)));
  const gains = judged.map((f) => (rho(f, at) - rho(f, 0)) / (1 - rho(f, 0) + leastMissing));
  if (gains.length === 0 || gains.some((g) => g < -leastGain)) return 0;
  const gain = meanOf(gains);
  const nearer = 1 - error(at) / (error(0) + 1e-9);
  const isBetter = gain > leastGain || (gain > -leastGain / 2 && nearer > leastErrorGain);
  return isBetter ? gain + errorWeight * nearer : 0;
}

function meanOf(xs: readonly number[]): number {
  return xs.reduce((sum, x) => sum + x, 0) / Math.max(1, xs.length);
}

function modelsOf(
  samples: readonly CostSample[],
  start: CoreFigures,
): { readonly price: (sample: CostSample, candidate: Candidate) => number } {
  const made = [start, fitCore(samples, { start, ...fit })].map((core) => {
    return { core, residual: fitResidual(samples, core) };
  });
  return {
    price: (sample, { fitted, trust }) => {
      const { core, residual } = made[fitted ? 1 : 0]!;
      return trust === 0 ? priceSample(sample, core) : corrected(sample, core, { residual, trust });
    },
  };
}

/** The price of a sample with what the trees say of each of its regions. */
function corrected(
  { regions }: Pick<CostSample, "regions">,
  core: CoreFigures,
  { residual, trust }: { readonly residual: ResidualModel; readonly trust: number },
): number {
  return regions.reduce((sum, work) => {
    const { ns, row } = codeFeatures(work, core);
    return sum + ns * Math.exp(trust * residualOf(residual, row));
  }, 0);
}

/** Within each workload: rank correlation, and what prices miss of the logarithms. */
function judge(
  samples: readonly CostSample[],
  priceOf: (sample: CostSample) => number,
): readonly Judged[] {
  const workloads = new Map<string, { readonly ns: number[]; readonly prices: number[] }>();
  for (const s of samples) {
    const entry = workloads.get(s.workload) ?? { ns: [], prices: [] };
    workloads.set(s.workload, entry);
    entry.ns.push(s.ns);
    entry.prices.push(priceOf(s));
  }
  return [...workloads].map(([workload, { ns, prices }]) => {
    const errors = ns.map((t, i) => Math.log(t / prices[i]!));
    const mean = meanOf(errors);
    return {
      workload,
      n: ns.length,
      rho: ns.length > 1 ? rankCorrelation(ns, prices) : 0,
      error: meanOf(errors.map(Math.abs)),
      variance: meanOf(errors.map((x) => (x - mean) ** 2)),
    };
  });
}

export function priceCalibrated(
  regions: readonly CodeWork[],
  { core, residual, trust, sigma }: CostModel,
): CalibratedPrice {
  const sample = { workload: "", family: "", regions, ns: 1 };
  const ns = residual ? corrected(sample, core, { residual, trust }) : priceSample(sample, core);
  const factor = Math.exp(2 * sigma);
  return { ns, low: ns / factor, high: ns * factor };
}
