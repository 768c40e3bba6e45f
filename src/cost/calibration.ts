/**
 * A machine's own figures: the analytical model fitted to samples, and trees for what it leaves. Either is taken
 * only if it orders samples better that it was not fitted to: by rank correlation within each workload, since
 * trees that come closer in nanoseconds can still swap what lies close together. In: samples. Out: a calibration as
 * data, what it improved, and prices with an interval. How samples are taken is the caller's.
 */
import { rankCorrelation } from "../support/rank-correlation.ts";
import { type CostSample, fitCore, priceSample } from "./calibrated.ts";
import { codeFeatures } from "./code-features.ts";
import type { CoreFigures } from "./core-figures.ts";
import type { CodeWork } from "./mix-price.ts";
import { fitResidual, type ResidualModel, residualOf } from "./residual-trees.ts";

export interface Calibration {
  readonly core: CoreFigures;
  /** Absent where trees did not help on workloads that they were not fitted to. */
  readonly residual?: ResidualModel;
  /** The part of what the trees say that is believed. */
  readonly trust: number;
  /** Spread of the logarithm of measured over priced time within a workload. */
  readonly sigma: number;
  /** Mean rank correlation within workloads that were left out: of the first figures, and of what is kept. */
  readonly heldOut: { readonly before: number; readonly after: number };
}

export interface CalibratedPrice {
  readonly ns: number;
  /** Two sigmas around it. */
  readonly low: number;
  readonly high: number;
}

const fit = { most: 4, rounds: 4 } as const;
/** Parts of the workloads that are left out in turn. */
const folds = 4;
/** What a candidate must gain of what is missing to a perfect order, and may lose of it in one fold. */
const leastGain = 0.1;

/** A way to price: fitted figures or the first ones, and how far trees upon them are believed. */
interface Candidate {
  readonly fitted: boolean;
  readonly trust: number;
}

const candidates: readonly Candidate[] = [false, true].flatMap((fitted) =>
  [0, 0.25, 0.5, 0.75, 1].map((trust) => ({ fitted, trust })),
);

/** How a candidate did on what was left out of a fold. */
interface Judged {
  readonly rho: number;
  readonly error: number;
}

export function calibrate(samples: readonly CostSample[], start: CoreFigures): Calibration {
  const names = [...new Set(samples.map((s) => s.workload))];
  const judged: (readonly Judged[])[] = [];
  for (let fold = 0; fold < folds; fold++) {
    const isOut = (s: CostSample): boolean => names.indexOf(s.workload) % folds === fold;
    const inside = samples.filter((s) => !isOut(s));
    const outside = samples.filter(isOut);
    if (inside.length === 0 || outside.length === 0) continue;
    const models = modelsOf(inside, start);
    judged.push(candidates.map((c) => judge(outside, (s) => models.price(s, c))));
  }
  const best = bestOf(judged);
  const mean = (at: number, of: keyof Judged): number =>
    judged.reduce((n, fold) => n + fold[at]![of], 0) / Math.max(1, judged.length);
  const { fitted, trust } = candidates[best]!;
  const core = fitted ? fitCore(samples, { start, ...fit }) : start;
  return {
    core,
    ...(trust > 0 && { residual: fitResidual(samples, core) }),
    trust,
    sigma: Math.sqrt(mean(best, "error")),
    heldOut: { before: mean(0, "rho"), after: mean(best, "rho") },
  };
}

/** The first candidate is what there was before. */
function bestOf(judged: readonly (readonly Judged[])[]): number {
  let best = 0;
  let bestGain = leastGain;
  for (let at = 1; at < candidates.length; at++) {
    const gains = judged.map((fold) => (fold[at]!.rho - fold[0]!.rho) / (1 - fold[0]!.rho + 1e-9));
    const gain = gains.reduce((n, g) => n + g, 0) / Math.max(1, gains.length);
    if (gain <= bestGain || gains.some((g) => g < -leastGain)) continue;
    best = at;
    bestGain = gain;
  }
  return best;
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

/** Within each workload: rank correlation, and the mean square of what a price misses of the logarithms. */
function judge(samples: readonly CostSample[], priceOf: (sample: CostSample) => number): Judged {
  const workloads = new Map<string, { readonly ns: number[]; readonly prices: number[] }>();
  for (const s of samples) {
    const entry = workloads.get(s.workload) ?? { ns: [], prices: [] };
    workloads.set(s.workload, entry);
    entry.ns.push(s.ns);
    entry.prices.push(priceOf(s));
  }
  let [rho, error] = [0, 0];
  for (const { ns, prices } of workloads.values()) {
    rho += ns.length > 1 ? rankCorrelation(ns, prices) : 0;
    const errors = ns.map((t, i) => Math.log(t / prices[i]!));
    const mean = errors.reduce((n, x) => n + x, 0) / errors.length;
    error += errors.reduce((n, x) => n + (x - mean) ** 2, 0) / errors.length;
  }
  return { rho: rho / workloads.size, error: error / workloads.size };
}

export function priceCalibrated(
  regions: readonly CodeWork[],
  { core, residual, trust, sigma }: Calibration,
): CalibratedPrice {
  const sample = { workload: "", regions, ns: 1 };
  const ns = residual ? corrected(sample, core, { residual, trust }) : priceSample(sample, core);
  const factor = Math.exp(2 * sigma);
  return { ns, low: ns / factor, high: ns * factor };
}
