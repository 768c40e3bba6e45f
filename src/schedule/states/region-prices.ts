/** Prices of regions that were asked for before: by what a region computes, whatever its names. */
import { coalesceRegion } from "../../region/coalesce.ts";
import type { Region } from "../../region/nest.ts";
import { regionClass } from "../../region/region-hash.ts";
import type { Target } from "../../target/target.ts";
import { applySchedule } from "../apply.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import type { RegionMemory } from "./region-memory.ts";
import { type TilePricer, tileEstimateNs } from "./region-states.ts";
import { TileSpace } from "./tile-space.ts";

export interface PricingOptions {
  readonly target: Target;
  readonly pricerOf: (region: Region) => TilePricer;
  readonly priceOf: (scheduled: ScheduledRegion) => number;
  readonly memory: Pick<RegionMemory, "prices" | "cheap">;
}

export class RegionPrices {
  readonly #options: PricingOptions;

  constructor(options: PricingOptions) {
    this.#options = options;
  }

  /** Nanoseconds of a region by itself on one core, by its best tile. */
  priceOf(region: Region): number {
    const { prices } = this.#options.memory;
    const { key } = regionClass(region);
    const price = prices.get(key) ?? this.#price(coalesceRegion(region).region);
    prices.set(key, price);
    return price;
  }

  #price(region: Region): number {
    const { target, pricerOf, priceOf, memory } = this.#options;
    if (TileSpace.applies(region)) {
      return tileEstimateNs(region, target, { pricer: pricerOf(region), cheap: memory.cheap });
    }
    const plain = { region: region.name, target: target.name, directives: [] };
    const applied = applySchedule(region, plain);
    return applied.ok ? priceOf(applied.value) : Number.MAX_SAFE_INTEGER;
  }
}
