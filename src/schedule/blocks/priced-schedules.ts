/**
 * Schedules of a region on a machine of blocks with their prices: layouts, joins and the choice itself ask for them, and
 * the layers of a model repeat, so each computation is priced once, whatever its names (RegionMemory).
 */
import type { Region } from "../../region/nest.ts";
import { regionClass } from "../../region/region-hash.ts";
import { invariant } from "../../support/invariant.ts";
import { applySchedule } from "../apply.ts";
import type { Schedule } from "../directive.ts";
import { decideSchedule } from "../legality/legality.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import type { PricingOptions } from "../states/region-prices.ts";
import { enumerateBlockSchedules } from "./block-candidates.ts";

/** What is known of a schedule, in the order in which those of a region are listed. */
export interface BlockPrice {
  readonly ns: number;
  /** The whole region is one statement, one kernel of rows, or a product with what is folded behind it. */
  readonly isOneKernel: boolean;
  readonly isAttention: boolean;
}

export interface PricedSchedule {
  readonly schedule: Schedule;
  /** Undefined where it does not apply. */
  readonly price: BlockPrice | undefined;
}

export type BlockPricing = Pick<PricingOptions, "target" | "priceOf"> & {
  readonly memory: Pick<PricingOptions["memory"], "blocks">;
};

/** All of the region, as they are listed. */
export function pricedSchedules(
  region: Region,
  { target, priceOf, memory }: BlockPricing,
): readonly PricedSchedule[] {
  const schedules = enumerateBlockSchedules(region, target);
  const { key } = regionClass(region);
  const known = memory.blocks.get(key) ?? schedules.map((s) => priceOne(region, s, priceOf));
  memory.blocks.set(key, known);
  invariant(known.length === schedules.length, () => `${region.name} has other schedules`);
  return schedules.map((schedule, i) => ({ schedule, price: known[i] }));
}

function priceOne(
  region: Region,
  schedule: Schedule,
  priceOf: PricingOptions["priceOf"],
): BlockPrice | undefined {
  const applied = applySchedule(region, schedule);
  if (!applied.ok) return undefined;
  const { attention } = applied.value;
  const isOneKernel = isOne(applied.value);
  return { ns: priceOf(applied.value), isOneKernel, isAttention: attention !== undefined };
}

function isOne({ region, rows, products }: ScheduledRegion): boolean {
  return region.statements.length === 1 || rows !== undefined || products.some((p) => p.form.fold);
}

/** Nanoseconds of the cheapest schedule that is meant and legal, or Infinity where none is. */
export function cheapestNs(
  region: Region,
  isMeant: (price: BlockPrice) => boolean,
  pricing: BlockPricing,
): number {
  const priced = pricedSchedules(region, pricing).flatMap(({ schedule, price }) =>
    price && isMeant(price) ? [{ schedule, ns: price.ns }] : [],
  );
  priced.sort((a, b) => a.ns - b.ns);
  const best = priced.find(({ schedule }) => {
    const applied = applySchedule(region, schedule);
    return applied.ok && decideSchedule(applied.value).ok;
  });
  return best?.ns ?? Infinity;
}
