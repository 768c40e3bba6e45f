/**
 * Code with the spills that its emitter counted in place of those that were foretold: what a fit learns from
 * measured code. In: code of a region, perhaps with counts. Out: the same, its runs with the counted numbers.
 * Which run a value left its register in is not known: counted spills lie where foretold ones do, or, where
 * none were foretold, in the run with the most vectors alive; so do operands that are loaded again.
 */
import type { CostSample } from "./calibrated.ts";
import type { CodeWork } from "./mix-price.ts";

export function countedSample<S extends CostSample>(sample: S): S {
  if (sample.regions.every((work) => !work.counted)) return sample;
  return { ...sample, regions: sample.regions.map(countedWork) };
}

export function countedWork(work: CodeWork): CodeWork {
  const { counted, runs } = work;
  if (!counted || runs.length === 0) return work;
  const foretold = runs.reduce((sum, { mix }) => sum + mix.spills, 0);
  const crowded = runs.reduce((a, b) => (b.mix.alive > a.mix.alive ? b : a), runs[0]!);
  const spillsOf = (run: (typeof runs)[0]): number => {
    if (foretold > 0) return (run.mix.spills * counted.spills) / foretold;
    return run === crowded ? counted.spills : 0;
  };
  return {
    ...work,
    runs: runs.map((run) => {
      const loads = run.mix.loads + (run === crowded ? counted.reloads : 0);
      return { ...run, mix: { ...run.mix, loads, spills: spillsOf(run) } };
    }),
  };
}
