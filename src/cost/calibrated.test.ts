import { expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { type CostSample, fitCore, meanError, priceSample } from "./calibrated.ts";
import { calibrate, priceCalibrated } from "./calibration.ts";
import { type CoreFigure, type CoreFigures, coreFigures } from "./core-figures.ts";
import type { CodeWork } from "./mix-price.ts";

const start = coreFigures(targets.get("wasm")!);

/** Code as a schedule might make it: a body in a loop, an edge beside it, traffic of two levels. */
function randomWork(rng: Rng): CodeWork {
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
      alive: 2 + count(20),
    },
    executions,
    chains: Math.max(1, executions / (1 + count(60))),
    entries: executions / (1 + count(30)),
  });
  const bytes = 1e4 * (1 + count(50));
  const level = { bytes, scattered: chance(0.5) ? bytes : 0, written: chance(0.5) ? bytes / 2 : 0 };
  return { runs: [run(1000 + count(4000)), run(count(300))], traffic: [[level, level]] };
}

/** Samples of a machine whose figures are other ones. */
function samplesOf(core: CoreFigures, noise: number): CostSample[] {
  const rng = new Rng(5);
  return [0, 1, 2, 3, 4, 5, 6, 7].flatMap((workload) =>
    Array.from({ length: 12 }, () => {
      const sample = { workload: String(workload), regions: [randomWork(rng)], ns: 1 };
      return { ...sample, ns: priceSample(sample, core) * Math.exp(noise * rng.normal()) };
    }),
  );
}

const machine = {
  ...start,
  arithmeticPerNs: start.arithmeticPerNs / 2,
  nsPerByte1: start.nsPerByte1 * 2,
  callFactor: start.callFactor * 1.5,
};

it("finds a machine whose arithmetic and memory are slower, within bounds", () => {
  const samples = samplesOf(machine, 0.03);
  const fitted = fitCore(samples, { start, most: 4, rounds: 3 });
  expect(meanError(samples, fitted)).toBeLessThan(meanError(samples, start) / 3);
  for (const name of Object.keys(start) as CoreFigure[]) {
    expect(fitted[name]).toBeGreaterThanOrEqual((start[name] / 4) * 0.999);
    expect(fitted[name]).toBeLessThanOrEqual(start[name] * 4 * 1.001);
  }
  expect(fitCore(samples, { start, most: 4, rounds: 3 })).toEqual(fitted);
});

it("leaves figures alone that already fit", () => {
  expect(fitCore(samplesOf(start, 0), { start, most: 4, rounds: 1 })).toEqual(start);
});

it("learns what the figures cannot say, and keeps trees only where they help", () => {
  const odd = samplesOf(start, 0.02).map((s) => {
    const { laneMoves } = s.regions[0]!.runs[0]!.mix;
    return { ...s, ns: laneMoves > 3 ? s.ns * 1.6 : s.ns / 1.2 };
  });
  const learned = calibrate(odd, start);
  const plain = calibrate(samplesOf(start, 0.02), start);
  expect(plain.residual).toBeUndefined();
  const error = (c: typeof learned): number =>
    odd.reduce((n, s) => n + Math.log(s.ns / priceCalibrated(s.regions, c).ns) ** 2, 0);
  expect(error(learned)).toBeLessThan(error(plain) / 1.5);
  for (const s of odd) {
    const { ns, low, high } = priceCalibrated(s.regions, learned);
    expect(low).toBeLessThan(ns);
    expect(high).toBeGreaterThan(ns);
  }
});

it("keeps nothing that orders worse what it has not seen", () => {
  const { core, residual, trust, heldOut } = calibrate(samplesOf(start, 0.3), start);
  expect(heldOut.after).toBeGreaterThanOrEqual(heldOut.before);
  expect(residual === undefined).toBe(trust === 0);
  if (heldOut.after === heldOut.before) expect(core).toBe(start);
});

it("finds the figures of a machine by the order of what it runs", () => {
  const { heldOut, core } = calibrate(samplesOf(machine, 0.02), start);
  expect(heldOut.after).toBeGreaterThan(heldOut.before);
  expect(core).not.toBe(start);
});
