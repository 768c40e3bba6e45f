import { describe, expect, it } from "vitest";
import { codePriceOf } from "./code-price.ts";
import { analyticalModel, type CostModel, calibrate, mostScaled } from "./cost/calibration.ts";
import { parseCalibration, printCalibration } from "./cost/calibration-file.ts";
import type { CoreFigures } from "./cost/core-figures.ts";
import { codeWork } from "./cost/mix-price.ts";
import { tilePricer } from "./cost/region-price.ts";
import { lowerRegion } from "./lower/lower-region.ts";
import { applySchedule } from "./schedule/apply.ts";
import { printSchedule } from "./schedule/directive-text.ts";
import { drawStates } from "./schedule/states/draw-states.ts";
import { refineStates } from "./schedule/states/refine-states.ts";
import { regionStates } from "./schedule/states/region-states.ts";
import { sampleRegions } from "./schedule/states/sample-regions.test-support.ts";
import { TileSpace } from "./schedule/states/tile-space.ts";
import { Rng } from "./support/rng.ts";
import { targets } from "./target/index.ts";

const cases = Object.entries(sampleRegions).flatMap(([name, region]) =>
  ["wasm", "x64-avx512"].map((target) => [name, target, region] as const),
);

/** The fastest machine that a calibration could claim, and trees that halve every price upon it. */
function boldest({ core, ...model }: CostModel): CostModel {
  const scaled = Object.entries(core).map(([name, x]) => {
    const isRate = /PerNs$/.test(name) || name === "windowInstructions" || name === "loadsAhead";
    return [name, isRate ? x * mostScaled : x / mostScaled];
  });
  const residual = { trees: [-Math.log(2)], sigma: 0 };
  return { ...model, core: Object.fromEntries(scaled) as CoreFigures, residual, trust: 1 };
}

describe.each(cases)("the price of the code of %s on %s", (_, name, region) => {
  const target = targets.get(name)!;

  it("is never below the bound, whatever was fitted, and moves with the figures", () => {
    const plain = analyticalModel(target);
    const drawing = { count: 8, rng: new Rng(4), parallel: false, inLanes: false };
    for (const { schedule } of drawStates(region, target, drawing)) {
      const applied = applySchedule(region, schedule);
      if (!applied.ok) throw new Error("a state does not apply");
      const priced = codePriceOf(applied.value, target, plain);
      const least = codePriceOf(applied.value, target, boldest(plain));
      if (!priced || !least) continue;
      expect(priced.boundNs).toBeGreaterThan(0);
      expect(least.boundNs).toBe(priced.boundNs);
      expect(least.estimateNs).toBeGreaterThanOrEqual(least.boundNs);
      expect(priced.estimateNs).toBeGreaterThanOrEqual(least.estimateNs);
      expect(Number.isFinite(priced.estimateNs)).toBe(true);
    }
  });

  it("takes no state below its threads' share of the bound, however cheap its code seems", () => {
    if (!TileSpace.applies(region)) return;
    const [threads, pricer] = [2, tilePricer(region, target, analyticalModel(target).core)];
    const { boundNs } = pricer;
    const found = regionStates(region, target, { threads, pricer, refundNs: 0 });
    const known = new Map<string, number>();
    const refining = { region, boundNs, priceOf: () => 1e-6, mostTiles: 8, known };
    const { states } = refineStates(found, refining);
    expect(states.length).toBeGreaterThan(0);
    for (const { serialNs, priceNs } of states) {
      expect(serialNs).toBeGreaterThanOrEqual(boundNs * (1 - 1e-9));
      expect(priceNs).toBeGreaterThanOrEqual((boundNs / threads) * (1 - 1e-9));
    }
  });

  it("is made of what a calibration file can hold", () => {
    const drawing = { count: 3, rng: new Rng(9), parallel: false, inLanes: true };
    const samples = drawStates(region, target, drawing).flatMap(({ schedule }) => {
      const applied = applySchedule(region, schedule);
      if (!applied.ok) throw new Error("a state does not apply");
      const kernels = lowerRegion(applied.value, target);
      if (!kernels.ok) return [];
      const regions = [codeWork(applied.value, kernels.value, target)];
      return [{ workload: "w", family: "f", schedule: printSchedule(schedule), ns: 1e4, regions }];
    });
    if (samples.length === 0) return;
    const fit = calibrate(samples, analyticalModel(target).core);
    const about = { machine: "m", codegen: "1", command: "c", protocol: "p", seed: 0 };
    const file = { target: name, ...about, fit, samples };
    expect(parseCalibration(printCalibration(file), "f")).toEqual({
      ok: true,
      value: file,
      warnings: [],
    });
  });
});
