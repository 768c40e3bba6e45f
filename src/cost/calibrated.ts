/**
 * Fitting the analytical model to a machine: every figure of the core may be scaled within bounds, all
 * prices stay monotone in it, and small errors are worth more figures at their defaults. Coordinate
 * descent on the logarithms of the factors, one by one and all speeds together; deterministic. In: samples of measured code. Out: the
 * fitted figures. What the figures mean is core-figures.ts, what is left to learn residual-trees.ts.
 */
import type { CoreFigure, CoreFigures } from "./core-figures.ts";
import { type CodeWork, priceCode } from "./mix-price.ts";

/** One measured candidate: the code of all its regions, and the time of a run. */
export interface CostSample {
  /** What is computed, in which shape: times are compared within one. */
  readonly workload: string;
  /** What is computed, in any shape. */
  readonly family: string;
  readonly regions: readonly CodeWork[];
  readonly ns: number;
}

export interface FitOptions {
  readonly start: CoreFigures;
  /** Largest factor, up or down, on any figure. */
  readonly most: number;
  /** Rounds over all figures at each step width. */
  readonly rounds: number;
}

/** Weight of a figure that has moved by its whole range against the mean squared error. */
const ridge = 0.04;
/** Logarithm of a ratio beyond which a sample counts no more: outliers do not steer the fit. */
const outlier = 1;
/** Variance of logarithms that no model explains. */
const noise = 0.002;
/** Weight of a workload's common error, squared, against the share that is unexplained within it. */
const offsetWeight = 2;
const stepWidths = [0.5, 0.2, 0.08] as const;

export function priceSample({ regions }: CostSample, core: CoreFigures): number {
  return regions.reduce((ns, work) => ns + priceCode(work, core).total, 0);
}

/** The figures, scaled so that prices follow the samples. */
export function fitCore(
  samples: readonly CostSample[],
  { start, most, rounds }: FitOptions,
): CoreFigures {
  const names = (Object.keys(start) as CoreFigure[]).filter((name) => start[name] > 0);
  const directions = directionsOf(names);
  const limit = Math.log(most);
  const moved = new Map<CoreFigure, number>(names.map((name) => [name, 0]));
  const made = (): CoreFigures => scaled(start, moved);
  const cost = (): number => {
    const bent = [...moved.values()].reduce((sum, x) => sum + (x / limit) ** 2, 0);
    return meanError(samples, made()) + (ridge * bent) / names.length;
  };
  let best = cost();
  for (const width of stepWidths) {
    for (let round = 0; round < rounds; round++) {
      const before = best;
      for (const direction of directions) {
        for (const step of [width, -width]) {
          const at = direction.map(([name]) => moved.get(name)!);
          for (const [i, [name, sign]] of direction.entries()) {
            moved.set(name, Math.max(-limit, Math.min(limit, at[i]! + sign * step)));
          }
          const found = cost();
          if (found < best - 1e-9) {
            best = found;
            break;
          }
          for (const [i, [name]] of direction.entries()) moved.set(name, at[i]!);
        }
      }
      if (before - best < 1e-5) break;
    }
  }
  return made();
}

/** Figures that move together, each up or down. */
type Direction = readonly (readonly [CoreFigure, 1 | -1])[];

/** Each figure by itself, and first all that are times or rates: another clock, another load. */
function directionsOf(names: readonly CoreFigure[]): readonly Direction[] {
  const speed: Direction = names.flatMap((name): Direction => {
    if (/PerNs$/.test(name)) return [[name, 1]];
    return /Ns$|^nsPer/.test(name) ? [[name, -1]] : [];
  });
  return [speed, ...names.map((name): Direction => [[name, 1]])];
}

function scaled(start: CoreFigures, moved: ReadonlyMap<CoreFigure, number>): CoreFigures {
  const figures = { ...start } as Record<CoreFigure, number>;
  for (const [name, log] of moved) figures[name] = start[name] * Math.exp(log);
  return figures;
}

/**
 * What prices leave unexplained of the logarithms of the times: within each workload as a share of their
 * variance, since order is what prices are for, and what the workload is off by as a whole, beside.
 */
export function meanError(samples: readonly CostSample[], core: CoreFigures): number {
  const workloads = new Map<string, { readonly logs: number[]; readonly errors: number[] }>();
  for (const sample of samples) {
    const entry = workloads.get(sample.workload) ?? { logs: [], errors: [] };
    workloads.set(sample.workload, entry);
    entry.logs.push(Math.log(sample.ns));
    const error = Math.log(sample.ns / priceSample(sample, core));
    entry.errors.push(Math.max(-outlier, Math.min(outlier, error)));
  }
  let sum = 0;
  for (const { logs, errors } of workloads.values()) {
    const shared = meanOf(errors);
    sum += varianceOf(errors) / (varianceOf(logs) + noise) + offsetWeight * shared ** 2;
  }
  return sum / Math.max(1, workloads.size);
}

function meanOf(xs: readonly number[]): number {
  return xs.reduce((n, x) => n + x, 0) / xs.length;
}

function varianceOf(xs: readonly number[]): number {
  const mean = meanOf(xs);
  return xs.reduce((n, x) => n + (x - mean) ** 2, 0) / xs.length;
}
