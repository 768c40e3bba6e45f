/**
 * A machine's own figures: the analytical model fitted to samples, and trees for what it leaves, taken only if
 * they order samples better that they have not seen. In: samples. Out: a calibration as data, and prices
 * with an interval. How samples are taken is the caller's.
 */
import { type CostSample, fitCore, priceSample } from "./calibrated.ts";
import { codeFeatures } from "./code-features.ts";
import type { CoreFigures } from "./core-figures.ts";
import type { CodeWork } from "./mix-price.ts";
import { fitResidual, type ResidualModel, residualOf } from "./residual-trees.ts";

export interface Calibration {
  readonly core: CoreFigures;
  /** Absent where trees did not help on workloads that they were not fitted to. */
  readonly residual?: ResidualModel;
  /** Spread of the logarithm of measured over priced time within a workload. */
  readonly sigma: number;
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

export function calibrate(samples: readonly CostSample[], start: CoreFigures): Calibration {
  const names = [...new Set(samples.map((s) => s.workload))];
  const gains = { start: 0, core: 0, trees: 0 };
  for (let fold = 0; fold < folds; fold++) {
    const isOut = (s: CostSample): boolean => names.indexOf(s.workload) % folds === fold;
    const inside = samples.filter((s) => !isOut(s));
    const outside = samples.filter(isOut);
    if (inside.length === 0 || outside.length === 0) continue;
    const core = fitCore(inside, { start, ...fit });
    const residual = fitResidual(inside, core);
    gains.start += unexplained(outside, (s) => priceSample(s, start));
    gains.core += unexplained(outside, (s) => priceSample(s, core));
    gains.trees += unexplained(outside, (s) => corrected(s, core, residual));
  }
  const core = gains.core < gains.start ? fitCore(samples, { start, ...fit }) : start;
  const residual = fitResidual(samples, core);
  const helps = gains.trees < Math.min(gains.core, gains.start);
  const made = { core, ...(helps && { residual }) };
  return { ...made, sigma: Math.sqrt(Math.min(gains.start, gains.core, gains.trees) / folds) };
}

/** The price of a sample with what the trees say of each of its regions. */
export function corrected(
  { regions }: Pick<CostSample, "regions">,
  core: CoreFigures,
  residual: ResidualModel,
): number {
  return regions.reduce((sum, work) => {
    const { ns, row } = codeFeatures(work, core);
    return sum + ns * Math.exp(residualOf(residual, row));
  }, 0);
}

/** Mean square of what a price misses of the logarithms within each workload. */
function unexplained(
  samples: readonly CostSample[],
  priceOf: (sample: CostSample) => number,
): number {
  const errors = new Map<string, number[]>();
  for (const s of samples) {
    const list = errors.get(s.workload) ?? [];
    errors.set(s.workload, list);
    list.push(Math.log(s.ns / priceOf(s)));
  }
  let sum = 0;
  for (const list of errors.values()) {
    const mean = list.reduce((n, x) => n + x, 0) / list.length;
    sum += list.reduce((n, x) => n + (x - mean) ** 2, 0) / list.length;
  }
  return sum / Math.max(1, errors.size);
}

export function priceCalibrated(
  regions: readonly CodeWork[],
  { core, residual, sigma }: Calibration,
): CalibratedPrice {
  const sample = { workload: "", regions, ns: 1 };
  const ns = residual ? corrected(sample, core, residual) : priceSample(sample, core);
  const factor = Math.exp(2 * sigma);
  return { ns, low: ns / factor, high: ns * factor };
}
