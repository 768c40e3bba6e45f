/**
 * Candidates of a workload with their times, their code as figures and their coarse prices: what the
 * correlation suite judges prices by. A candidate is a state of each region, drawn by a seed.
 */

import type { Workload } from "../../src/commands/library/calibration-workloads.ts";
import type { CostSample } from "../../src/cost/calibrated.ts";
import { codeWork } from "../../src/cost/mix-price.ts";
import { priceRegion } from "../../src/cost/region-price.ts";
import { lowerRegion } from "../../src/lower/lower-region.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { drawStates } from "../../src/schedule/states/draw-states.ts";
import { Rng } from "../../src/support/rng.ts";
import type { Target } from "../../src/target/target.ts";
import { unwrap } from "../sessions/import-hints.ts";
import type { ProgramTimes } from "./program-times.ts";
import { programOf } from "./sample-set.ts";

export interface MeasuredSet {
  readonly samples: readonly CostSample[];
  readonly halves: readonly (readonly [number, number])[];
  /** Of each candidate, the schedules of its regions. */
  readonly schedules: readonly (readonly Schedule[])[];
  /** Prices that need no code. */
  readonly coarse: readonly number[];
}

const timing = { rounds: 8, sampleNs: 150_000 };

export interface MeasuringOptions {
  readonly count: number;
  readonly seed: number;
  readonly times: ProgramTimes;
}

/** Draws, times and describes candidates; what a candidate's program is refused for is an error. */
export function measureCandidates(
  { family, shape, program: parts }: Workload,
  target: Target,
  { count, seed, times }: MeasuringOptions,
): MeasuredSet {
  const rng = new Rng(seed);
  const drawing = { count, rng, parallel: false, inLanes: true };
  const drawn = parts.regions.map((region) => {
    const plain: Schedule = { region: region.name, target: target.name, directives: [] };
    const states = drawStates(region, target, drawing).map((s) => s.schedule);
    return states.length > 0 ? states : [plain];
  });
  const most = Math.max(...drawn.map((d) => d.length));
  const candidates = Array.from({ length: most }, (_, i) => drawn.map((d) => d[i % d.length]!));
  const programs = candidates.map((schedules) => {
    const program = programOf(parts, schedules, target);
    if (typeof program === "string") throw new Error(program);
    return program;
  });
  const timed = times.of(programs, timing);
  const applied = candidates.map((schedules) =>
    schedules.map((schedule, i) => unwrap(applySchedule(parts.regions[i]!, schedule))),
  );
  return {
    samples: applied.map((regions, i) => ({
      family,
      workload: `${family} ${shape}`,
      regions: regions.map((r) => codeWork(r, unwrap(lowerRegion(r, target)), target)),
      ns: timed[i]!.ns,
    })),
    halves: timed.map((t) => t.halves),
    schedules: candidates,
    coarse: applied.map((regions) =>
      regions.reduce((ns, r) => ns + priceRegion(r, target).estimateNs, 0),
    ),
  };
}
