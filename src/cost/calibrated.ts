/**
 * Fitting the analytical model to a machine: every figure of the core may be scaled within bounds, all
 * prices stay monotone in it, and small errors are worth more figures at their defaults. Coordinate
 * descent on the logarithms of the factors; deterministic. In: samples of measured schedules. Out: the
 * fitted figures. What the figures mean is core-figures.ts.
 */
import type { LoopFigures, NestFigures, PackedAxis } from "../schedule/nest-figures.ts";
import type { Target } from "../target/target.ts";
import type { CoreFigure, CoreFigures } from "./core-figures.ts";
import { NestPricer } from "./nest-price.ts";

/** One measured schedule; samples of one workload share their figures. */
export interface CostSample {
  readonly figures: NestFigures;
  readonly loops: readonly LoopFigures[];
  readonly packed: readonly PackedAxis[];
  readonly ns: number;
}

export interface FitOptions {
  readonly target: Target;
  readonly start: CoreFigures;
  /** Largest factor, up or down, on any figure. */
  readonly most: number;
  /** Rounds over all figures at each step width. */
  readonly rounds: number;
}

/** Weight of a figure that has moved by its whole range against the mean squared error. */
const ridge = 0.004;
/** Logarithm of a ratio beyond which a sample counts linearly: outliers do not steer the fit. */
const outlier = 0.7;
const stepWidths = [0.5, 0.2, 0.08] as const;

/** The figures, scaled so that prices follow the samples. */
export function fitCore(samples: readonly CostSample[], options: FitOptions): CoreFigures {
  const { target, start, most, rounds } = options;
  const names = (Object.keys(start) as CoreFigure[]).filter((name) => start[name] > 0);
  const limit = Math.log(most);
  const moved = new Map<CoreFigure, number>(names.map((name) => [name, 0]));
  const made = (): CoreFigures => scaled(start, moved);
  const cost = (): number => {
    const bent = [...moved.values()].reduce((sum, x) => sum + (x / limit) ** 2, 0);
    return meanError(samples, target, made()) + (ridge * bent) / names.length;
  };
  let best = cost();
  for (const width of stepWidths) {
    for (let round = 0; round < rounds; round++) {
      const before = best;
      for (const name of names) {
        for (const step of [width, -width]) {
          const at = moved.get(name)!;
          moved.set(name, Math.max(-limit, Math.min(limit, at + step)));
          const found = cost();
          if (found < best - 1e-9) {
            best = found;
            break;
          }
          moved.set(name, at);
        }
      }
      if (before - best < 1e-5) break;
    }
  }
  return made();
}

function scaled(start: CoreFigures, moved: ReadonlyMap<CoreFigure, number>): CoreFigures {
  const figures = { ...start } as Record<CoreFigure, number>;
  for (const [name, log] of moved) figures[name] = start[name] * Math.exp(log);
  return figures;
}

/** Mean squared error of the logarithm, linear for outliers, each workload weighted alike. */
export function meanError(
  samples: readonly CostSample[],
  target: Target,
  core: CoreFigures,
): number {
  const workloads = new Map<NestFigures, { sum: number; n: number; pricer: NestPricer }>();
  for (const { figures, loops, packed, ns } of samples) {
    let entry = workloads.get(figures);
    if (!entry) {
      entry = { sum: 0, n: 0, pricer: new NestPricer(figures, target, core) };
      workloads.set(figures, entry);
    }
    const error = Math.abs(Math.log(ns / entry.pricer.price(loops, packed).total));
    entry.sum += error < outlier ? error ** 2 : outlier * (2 * error - outlier);
    entry.n++;
  }
  let mean = 0;
  for (const { sum, n } of workloads.values()) mean += sum / n / workloads.size;
  return mean;
}
