/** The regions of a target with blocks: attention as one, those over the same rows joined, products and folds of few results split. */
import { inTurn, type LayOut } from "../../region/regions-of.ts";
import { joinAttention } from "../attention/join-attention.ts";
import { splitsFor } from "../products/split-products.ts";
import { joinRows } from "../rows/join-rows.ts";
import type { PricingOptions } from "../states/region-prices.ts";

/** Undefined for a target without blocks. */
export function blockRegions(pricing: PricingOptions): LayOut | undefined {
  const { blocks } = pricing.target;
  if (!blocks) return undefined;
  return joinAttention(pricing, inTurn(joinRows(pricing), splitsFor(pricing, blocks)));
}
