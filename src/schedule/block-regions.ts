/** The regions of a target with blocks: attention as one, those over the same rows joined, products and folds of few results split. */
import { inTurn, type LayOut } from "../region/regions-of.ts";
import { joinAttention } from "./join-attention.ts";
import { joinRows } from "./join-rows.ts";
import type { PricingOptions } from "./region-prices.ts";
import { splitsFor } from "./split-products.ts";

/** Undefined for a target without blocks. */
export function blockRegions(pricing: PricingOptions): LayOut | undefined {
  const { blocks } = pricing.target;
  if (!blocks) return undefined;
  return joinAttention(pricing, inTurn(joinRows(pricing), splitsFor(pricing, blocks)));
}
