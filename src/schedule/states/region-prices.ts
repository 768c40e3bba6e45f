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
  readonly memory: Pick<RegionMemory, "prices" | "cheap" | "blocks">;
}

export class RegionPrices {
  readonly #options: PricingOptions;
  /** Regions that were dearer than so much. */
  readonly #limits = new Map<string, number>();

  constructor(options: PricingOptions) {
    this.#options = options;
  }

  /**
   * Nanoseconds of a region by itself on one core, by its best tile.
   * @param limitNs what nobody pays: the answer, or more, where the region is dearer
   */
  priceOf(region: Region, limitNs = Infinity): number {
    const { prices } = this.#options.memory;
    const { key } = regionClass(region);
    const known = prices.get(key) ?? this.#limits.get(key);
    if (known !== undefined && (prices.has(key) || known >= limitNs)) return known;
    const price = this.#price(coalesceRegion(region).region, limitNs);
    if (price < limitNs) prices.set(key, price);
    else this.#limits.set(key, limitNs);
    return price;
  }

  #price(region: Region, limitNs: number): number {
    const { target, pricerOf, priceOf, memory } = this.#options;
    if (TileSpace.applies(region)) {
      return tileEstimateNs(region, target, {
        pricer: pricerOf(region),
        limitNs,
        cheap: memory.cheap,
      });
    }
    const plain = { region: region.name, target: target.name, directives: [] };
    const applied = applySchedule(region, plain);
    return applied.ok ? priceOf(applied.value) : Number.MAX_SAFE_INTEGER;
  }
}
