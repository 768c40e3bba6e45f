/**
 * A region whose schedule was given, because it was measured to be the best or somebody asked for it: its
 * superposition is this one state, whatever prices say, or the answer is why it has none. In: the region, its
 * states, the schedule. Out: the one state, with the price of the code that the schedule becomes.
 */
import type { Region } from "../../region/nest.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { tf32Products } from "../../target/allowing.ts";
import type { Target } from "../../target/target.ts";
import { applySchedule } from "../apply.ts";
import type { Schedule } from "../directive.ts";
import { printSchedule } from "../directive-text.ts";
import { decideSchedule } from "../legality/legality.ts";
import { isByTf32 } from "../products/tf32.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import type { RegionMemory } from "../states/region-memory.ts";
import { listedStates, type RegionStates } from "../states/region-states.ts";

export interface GivenOptions {
  readonly target: Target;
  readonly memory: RegionMemory;
  /** Of a schedule on blocks; infinite where it does not fit them. */
  readonly priceOf: (scheduled: ScheduledRegion) => number;
  /** Why the target's blocks have no code for a schedule, or undefined. */
  readonly faultOf: (scheduled: ScheduledRegion) => string | undefined;
  /** Of a CPU's schedule by its code; undefined where it has none. */
  readonly codePriceOf: (scheduled: ScheduledRegion) => number | undefined;
}

/** @param found undefined: the region runs as it stands, which is the only schedule it takes */
export function givenStates(
  region: Region,
  schedule: Schedule,
  found: RegionStates | undefined,
  options: GivenOptions,
): Result<RegionStates | undefined> {
  const { target } = options;
  if (!found) {
    if (schedule.directives.length === 0) return ok(undefined);
    return fail(noCode(`${region.name} is a scan that runs as it stands`, target, noChoice));
  }
  const wanted = printSchedule(schedule);
  const listed = found.states.find((s) => printSchedule(s.schedule()) === wanted);
  const applied = applySchedule(region, schedule);
  if (!applied.ok) return applied;
  const legal = decideSchedule(applied.value, options.memory.classes);
  if (!legal.ok) return legal;
  if (!isAllowed(applied.value, target)) return fail(notAllowed(region.name));
  const price = target.blocks ? options.priceOf : options.codePriceOf;
  const ns = listed?.priceNs ?? price(applied.value);
  if (ns === undefined || !Number.isFinite(ns)) {
    const what = `the schedule that was given for ${region.name} has no code`;
    const why = target.blocks && options.faultOf(applied.value);
    return fail(noCode(what, target, why ?? "it has no price"));
  }
  if (listed) return ok({ ...found, states: [listed] });
  return ok(listedStates(found.figures, [{ schedule, ns }]));
}

/** The answer where a schedule was given for what is no region of a model. */
export function noRegion(name: string): Diagnostic {
  return diagnostic("SCH001", `a schedule was given for ${name}, which is no region`, {
    help: "give schedules of the regions that `wavetile inspect --schedule` lists",
  });
}

/** The answer where none of a region's own schedules has a price. */
export function noSchedule(region: string, target: Target): Diagnostic {
  return diagnostic("SCH046", `no schedule of ${region} has code on ${target.name}`, {
    at: region,
    help: "choose another target, or smaller extents (--shape); and report the model",
  });
}

/** Whether the user lets a schedule round as it does. */
function isAllowed({ products }: ScheduledRegion, { capabilities }: Target): boolean {
  return capabilities.has(tf32Products) || !products.some(isByTf32);
}

const noChoice = "it takes no directives";

function noCode(message: string, target: Target, why: string): Diagnostic {
  return diagnostic("SCH046", `${message} on ${target.name}: ${why}`, {
    help: "change the schedule by what the message names, or leave the region out",
  });
}

function notAllowed(region: string): Diagnostic {
  return diagnostic("SCH046", `the schedule that was given for ${region} rounds f32 to tf32`, {
    help: "allow it by --allow tf32, or multiply by fma",
  });
}
