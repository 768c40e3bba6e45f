/** What a region costs on a machine of blocks: its cheapest legal schedule, found once for each computation. */
import { coalesceRegion } from "../../region/coalesce.ts";
import type { Region } from "../../region/nest.ts";
import { regionClass } from "../../region/region-hash.ts";
import type { PricingOptions } from "../states/region-prices.ts";
import { cheapestNs } from "./priced-schedules.ts";

/** Nanoseconds of a region, or Infinity where no schedule is legal; of several statements, as one kernel. */
export function blockPrices(pricing: PricingOptions): (region: Region) => number {
  const known = new Map<string, number>();
  return (region) => {
    const { key } = regionClass(region);
    const coalesced = (): Region => coalesceRegion(region, true).region;
    const price = known.get(key) ?? cheapestNs(coalesced(), (p) => p.isOneKernel, pricing);
    known.set(key, price);
    return price;
  };
}
