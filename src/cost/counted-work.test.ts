import { expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { type CostSample, priceSample } from "./calibrated.ts";
import { calibrate, priceCalibrated } from "./calibration.ts";
import { coreFigures } from "./core-figures.ts";
import { countedSample, countedWork } from "./counted-work.ts";
import type { CodeWork } from "./mix-price.ts";
import { samplesOf } from "./samples.test-support.ts";

const start = coreFigures(targets.get("x64-avx512")!);
const [sample] = samplesOf(start, 0) as [CostSample];
const work = sample.regions[0]!;

function spilling(spills: readonly number[], counted?: CodeWork["counted"]): CodeWork {
  const runs = work.runs.map((r, i) => ({
    ...r,
    mix: { ...r.mix, spills: spills[i]!, alive: 10 + i, loads: 3 },
  }));
  return { ...work, runs, ...(counted && { counted }) };
}

const figures = (of: "spills" | "loads", { runs }: CodeWork): number[] =>
  runs.map((r) => r.mix[of]);

it("counted spills lie where they were foretold", () => {
  const found = countedWork(spilling([6, 2], { spills: 4, reloads: 5 }));
  expect(figures("spills", found)).toEqual([3, 1]);
  expect(figures("loads", found)).toEqual([3, 8]);
});

it("where none were foretold they lie in the run with the most vectors alive", () => {
  const found = countedWork(spilling([0, 0], { spills: 4, reloads: 0 }));
  expect(figures("spills", found)).toEqual([0, 4]);
  expect(figures("spills", countedWork(spilling([3, 1], { spills: 0, reloads: 0 })))).toEqual([
    0, 0,
  ]);
});

it("what nobody counted is left as it is", () => {
  const plain = spilling([6, 2]);
  expect(countedWork(plain)).toBe(plain);
  expect(countedSample(sample)).toBe(sample);
});

it("a fit learns from counts, and prices of code that was not emitted are those of what is foretold", () => {
  const rng = new Rng(3);
  const machine = { ...start, issuePerNs: start.issuePerNs / 2 };
  // Foretold spills that were none: without the counts the machine seems faster at them than it is.
  const samples = samplesOf(machine, 0.02).map((s) => {
    const regions = s.regions.map((w) => ({
      ...w,
      runs: w.runs.map((r) => ({ ...r, mix: { ...r.mix, spills: rng.integer(0, 40) } })),
      counted: { spills: 0, reloads: 0 },
    }));
    const made = { ...s, regions };
    return { ...made, ns: priceSample(countedSample(made), machine) };
  });
  const blind = samples.map((s) => ({
    ...s,
    regions: s.regions.map(({ counted: _, ...w }) => w),
  }));
  const [seen, unseen] = [calibrate(samples, start), calibrate(blind, start)];
  expect(seen.core).not.toEqual(unseen.core);
  const counted = samples[0]!.regions;
  expect(priceCalibrated(counted, unseen).ns).toBe(priceCalibrated(blind[0]!.regions, unseen).ns);
});
