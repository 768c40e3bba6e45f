/** Random arrivals: Poisson in time, exponential in work, memory about a mean, three priorities. */
import { type Diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { checkNumber } from "../number.ts";
import type { Arrival } from "./simulate.ts";

export interface ArrivalSpec {
  readonly count: number;
  readonly perSecond: number;
  /** Mean work of a job on a device of speed 1. */
  readonly workNs: number;
  /** Mean memory; a job has half to one and a half of it. */
  readonly memoryBytes: number;
  readonly seed: number;
}

export const mostArrivals = 10_000_000;

export function randomArrivals(spec: ArrivalSpec): Result<readonly Arrival[]> {
  const positive = { least: 1e-9, most: 1e15 };
  const faults = [
    checkNumber("PLN001", "the number of arrivals", spec.count, {
      least: 1,
      most: mostArrivals,
      integer: true,
    }),
    checkNumber("PLN001", "arrivals a second", spec.perSecond, positive),
    checkNumber("PLN001", "mean work in nanoseconds", spec.workNs, positive),
    checkNumber("PLN001", "mean memory in bytes", spec.memoryBytes, { least: 0, most: 1e18 }),
  ].filter((f): f is Diagnostic => f !== undefined);
  if (faults.length > 0) return fail(...faults);
  const rng = new Rng(spec.seed);
  const exponential = (mean: number): number => -mean * Math.log(1 - rng.uniform());
  let atNs = 0;
  return ok(
    Array.from({ length: spec.count }, (_, id): Arrival => {
      atNs += exponential(1e9 / spec.perSecond);
      const work = exponential(spec.workNs);
      const memoryBytes = Math.round(spec.memoryBytes * (0.5 + rng.uniform()));
      return { id, atNs, work, memoryBytes, priority: rng.integer(0, 2) };
    }),
  );
}
