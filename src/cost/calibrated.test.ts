import { expect, it } from "vitest";
import { drawStates } from "../schedule/draw-states.ts";
import { nestFigures } from "../schedule/nest-figures.ts";
import { sampleRegions } from "../schedule/sample-regions.test-support.ts";
import { choiceLoops } from "../schedule/tile-choice.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { type CostSample, fitCore, meanError } from "./calibrated.ts";
import { type CoreFigure, coreFigures } from "./core-figures.ts";
import { NestPricer } from "./nest-price.ts";

const target = targets.get("wasm")!;
const start = coreFigures(target);

/** Samples of a machine whose figures are other ones. */
function samplesOf(core: typeof start, noise: number): CostSample[] {
  const rng = new Rng(5);
  return Object.values(sampleRegions).flatMap((region) => {
    const figures = nestFigures(region, region.statements[0]!);
    const pricer = new NestPricer(figures, target, core);
    const drawing = { count: 12, rng, parallel: false, inLanes: true };
    return drawStates(region, target, drawing).map(({ choice }) => {
      const loops = choiceLoops(figures, choice, target.vectorBytes / 4);
      const ns = pricer.price(loops, choice.packed).total * Math.exp(noise * rng.normal());
      return { figures, loops, packed: choice.packed, ns };
    });
  });
}

it("finds a machine whose arithmetic and memory are slower, within bounds", () => {
  const machine = {
    ...start,
    arithmeticPerNs: start.arithmeticPerNs / 2,
    nsPerByte1: start.nsPerByte1 * 2,
    callFactor: start.callFactor * 1.5,
  };
  const samples = samplesOf(machine, 0.03);
  const fitted = fitCore(samples, { target, start, most: 4, rounds: 3 });
  expect(meanError(samples, target, fitted)).toBeLessThan(meanError(samples, target, start) / 5);
  for (const name of Object.keys(start) as CoreFigure[]) {
    expect(fitted[name]).toBeGreaterThanOrEqual((start[name] / 4) * 0.999);
    expect(fitted[name]).toBeLessThanOrEqual(start[name] * 4 * 1.001);
  }
  expect(fitCore(samples, { target, start, most: 4, rounds: 3 })).toEqual(fitted);
});

it("leaves figures alone that already fit", () => {
  const samples = samplesOf(start, 0);
  expect(fitCore(samples, { target, start, most: 4, rounds: 1 })).toEqual(start);
});
