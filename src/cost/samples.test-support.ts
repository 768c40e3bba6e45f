/** Samples of machines that do not exist, for tests: code as schedules might make it, with times by given figures. */
import { Rng } from "../support/rng.ts";
import { type CostSample, priceSample } from "./calibrated.ts";
import type { CoreFigures } from "./core-figures.ts";
import type { CodeWork } from "./mix-price.ts";

/** A body in a loop, an edge beside it, traffic of two levels. */
export function randomWork(rng: Rng): CodeWork {
  const count = (most: number): number => rng.integer(0, most);
  const chance = (share: number): boolean => rng.integer(0, 99) < 100 * share;
  const run = (executions: number) => ({
    mix: {
      loads: 1 + count(12),
      stores: count(4),
      arithmetic: 1 + count(24),
      series: chance(0.2) ? 12 : 0,
      splats: count(4),
      laneMoves: chance(0.3) ? count(16) : 0,
      tests: count(3),
      spills: chance(0.2) ? count(6) : 0,
      control: 2 + count(3),
      chain: count(4),
      additions: 0,
      alive: 2 + count(20),
    },
    executions,
    chains: Math.max(1, executions / (1 + count(60))),
    entries: executions / (1 + count(30)),
  });
  const bytes = 1e4 * (1 + count(50));
  const level = {
    bytes,
    scattered: chance(0.5) ? bytes : 0,
    written: chance(0.5) ? bytes / 2 : 0,
    jumps: 0,
  };
  return { runs: [run(1000 + count(4000)), run(count(300))], traffic: [[level, level]] };
}

/** Eight workloads of two families, twelve samples each. */
export function samplesOf(core: CoreFigures, noise: number): CostSample[] {
  const rng = new Rng(5);
  return [0, 1, 2, 3, 4, 5, 6, 7].flatMap((workload) =>
    Array.from({ length: 12 }, () => {
      const family = String(workload % 2);
      const sample = { workload: String(workload), family, regions: [randomWork(rng)], ns: 1 };
      return { ...sample, ns: priceSample(sample, core) * Math.exp(noise * rng.normal()) };
    }),
  );
}
