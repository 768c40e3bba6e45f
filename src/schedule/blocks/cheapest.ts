/** What a region costs on a machine of blocks: its cheapest legal schedule, priced once for each computation. */
import { coalesceRegion } from "../../region/coalesce.ts";
import type { Region } from "../../region/nest.ts";
import { regionClass } from "../../region/region-hash.ts";
import { applySchedule } from "../apply.ts";
import { decideSchedule } from "../legality/legality.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import type { PricingOptions } from "../states/region-prices.ts";
import { enumerateBlockSchedules } from "./block-candidates.ts";

/** Nanoseconds of a region, or Infinity where no schedule is legal; of several statements, as one kernel. */
export function blockPrices(pricing: PricingOptions): (region: Region) => number {
  const known = new Map<string, number>();
  return (region) => {
    const { key } = regionClass(region);
    const price = known.get(key) ?? cheapest(coalesceRegion(region, true).region, pricing);
    known.set(key, price);
    return price;
  };
}

function cheapest(region: Region, { target, priceOf }: PricingOptions): number {
  const priced = enumerateBlockSchedules(region, target).flatMap((schedule) => {
    const applied = applySchedule(region, schedule);
    if (!applied.ok || !isOneKernel(applied.value)) return [];
    return [{ scheduled: applied.value, ns: priceOf(applied.value) }];
  });
  priced.sort((a, b) => a.ns - b.ns);
  return priced.find(({ scheduled }) => decideSchedule(scheduled).ok)?.ns ?? Infinity;
}

function isOneKernel({ region, rows, products }: ScheduledRegion): boolean {
  return region.statements.length === 1 || rows !== undefined || products.some((p) => p.form.fold);
}
