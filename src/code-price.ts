/** What the schedule that was chosen for a region comes to: the price of its code, its work, its alternatives. */

import { type CostModel, priceCalibrated } from "./cost/calibration.ts";
import { vectorRegisterCount } from "./cost/core-figures.ts";
import { type CodeWork, codeWork } from "./cost/mix-price.ts";
import { kernelWork } from "./cost/program-work.ts";
import { priceRegion, regionBoundNs } from "./cost/region-price.ts";
import { bodyFlops, compulsoryBytes, pointsOf, type RegionPrice } from "./cost/region-work.ts";
import { selectionKernel } from "./lower/first-places.ts";
import { lowerRegion } from "./lower/lower-region.ts";
import type { NestProgram } from "./region/nest.ts";
import type { ChosenSchedule } from "./schedule/choice/choose-schedules.ts";
import type { Schedule } from "./schedule/directive.ts";
import { type ScheduledRegion, symbolRanges } from "./schedule/scheduled-region.ts";
import type { RegionFunnel } from "./schedule/states/region-states.ts";
import type { Target } from "./target/target.ts";

export interface CompiledRegion {
  readonly name: string;
  readonly scheduled: ScheduledRegion;
  readonly price: RegionPrice;
  /** States that the hard constraints allowed. */
  readonly candidates: number;
  /** Schedules that are priced next. */
  readonly alternatives: readonly Schedule[];
  /** What was removed on the way to the choice; absent where a region runs as it stands. */
  readonly funnel?: RegionFunnel;
  /** Work at the symbols' upper ends: multiply and add counted, each tensor's bytes once. */
  readonly flops: number;
  readonly bytes: number;
  /** Nodes of the model it computes. */
  readonly origins: readonly string[];
}

/** Values never change: the work that a region was chosen by is what its report tells. */
const counted = new WeakMap<
  ScheduledRegion,
  { readonly target: Target; readonly work: CodeWork }
>();

/** What the code of a schedule executes and moves on a CPU; undefined where there is none. */
export function codeWorkOf(scheduled: ScheduledRegion, target: Target): CodeWork | undefined {
  const known = counted.get(scheduled);
  if (known?.target === target) return known.work;
  const lowered = lowerRegion(scheduled, target);
  if (!lowered.ok) return undefined;
  const work = codeWork(scheduled, lowered.value, target);
  counted.set(scheduled, { target, work });
  return work;
}

/** The price of the code that a schedule becomes on a CPU; undefined where there is none. */
export function codePriceOf(
  scheduled: ScheduledRegion,
  target: Target,
  prices: CostModel,
): RegionPrice | undefined {
  if (target.blocks) return undefined;
  const work = codeWorkOf(scheduled, target);
  if (!work) return undefined;
  const { ns } = priceCalibrated([work], prices);
  const boundNs = regionBoundNs(scheduled.region, target);
  return { estimateNs: Math.max(ns, boundNs), boundNs };
}

/** The price of the code, or of the region as scheduled where the target's code has none. */
export function finePriceOf(
  scheduled: ScheduledRegion,
  target: Target,
  prices: CostModel,
): RegionPrice {
  return codePriceOf(scheduled, target, prices) ?? priceRegion(scheduled, target, prices.core);
}

export function describeChoice(
  { scheduled, serialNs, funnel, alternatives }: ChosenSchedule,
  target: Target,
  prices: CostModel,
): CompiledRegion {
  const { region } = scheduled;
  const ranges = symbolRanges(region);
  const price =
    serialNs === undefined
      ? finePriceOf(scheduled, target, prices)
      : { estimateNs: serialNs, boundNs: regionBoundNs(region, target) };
  return {
    name: region.name,
    scheduled,
    price,
    candidates: funnel?.legal ?? 1,
    alternatives,
    ...(funnel && { funnel }),
    flops: region.statements.reduce((n, s) => n + pointsOf(s, ranges) * bodyFlops(s), 0),
    bytes: compulsoryBytes(region, ranges),
    origins: [...new Set(region.statements.map((s) => s.origin))],
  };
}

/** The price of the kernel of a selection. */
export function selectionPriceNs(
  routine: Parameters<typeof selectionKernel>[0],
  nests: NestProgram,
  target: Target,
  prices: CostModel,
): number {
  const kernel = selectionKernel(routine, nests);
  const symbols = new Map(nests.symbols.map((s) => [s.name, s.range.max]));
  const options = { registers: vectorRegisterCount(target), lanes: target.vectorBytes / 4 };
  const runs = kernelWork(kernel, symbols, {
    ...options,
    loadsFirst: target.compiledByEngine === true,
  });
  return priceCalibrated([{ runs, traffic: [] }], prices).ns;
}
