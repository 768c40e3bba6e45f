import { expect, it } from "vitest";
import { targets } from "../target/index.ts";
import { fitCore, meanError } from "./calibrated.ts";
import { calibrate, priceCalibrated } from "./calibration.ts";
import { type CoreFigure, type CoreFigures, coreFigures } from "./core-figures.ts";
import { samplesOf } from "./samples.test-support.ts";

const start = coreFigures(targets.get("wasm")!);

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

it("says what it did on each workload, held out, and gives the same for the same samples", () => {
  const samples = samplesOf(machine, 0.02);
  const made = calibrate(samples, start);
  const { workloads, ...means } = made.heldOut;
  expect(workloads.map((w) => w.n)).toEqual(Array(8).fill(12));
  for (const name of ["before", "after", "errorBefore", "errorAfter"] as const) {
    expect(workloads.reduce((n, w) => n + w[name], 0) / 8).toBeCloseTo(means[name], 12);
  }
  expect(means.errorAfter).toBeLessThan(means.errorBefore);
  expect(calibrate(samples, start)).toEqual(made);
});

it("takes figures that order as well and come closer", () => {
  const slow = Object.fromEntries(
    Object.entries(start).map(([name, x]) => [name, x * (/PerNs$/.test(name) ? 0.6 : 1)]),
  ) as unknown as CoreFigures;
  const all = { ...slow, nsPerByte1: start.nsPerByte1 / 0.6, nsPerByte2: start.nsPerByte2 / 0.6 };
  const rates = { ...all, loopEndNs: start.loopEndNs / 0.6 };
  for (const name of ["latencyNs", "additionNs"] as const) rates[name] = start[name] / 0.6;
  const { heldOut } = calibrate(samplesOf(rates, 0.01), start);
  expect(heldOut.errorAfter).toBeLessThan(heldOut.errorBefore / 2);
  expect(heldOut.after).toBeGreaterThan(heldOut.before - 0.02);
});
