/**
 * The regions of a target with blocks: feature maps and weights as products like them, attention as one, results of
 * products where what moves them puts them, products with what makes their operands, those over the same rows joined,
 * parts of one tensor too, operands turned, folds of results in the kernels of products, products and folds of few
 * results split, scans of few lines and updates that may meet too.
 */
import { inTurn, type LayOut } from "../../region/regions-of.ts";
import { joinAttention } from "../attention/join-attention.ts";
import { channelsLast } from "../choice/choose-layouts.ts";
import { foldedResults } from "../products/folded-results.ts";
import { operandOrders } from "../products/operand-orders.ts";
import { placedResults } from "../products/placed-results.ts";
import { prologuesFor } from "../products/prologues.ts";
import { splitsFor } from "../products/split-products.ts";
import { tailsFor } from "../products/tail-products.ts";
import { weightOrders } from "../products/weight-orders.ts";
import { joinRows } from "../rows/join-rows.ts";
import { scansFor } from "../rows/split-scans.ts";
import type { PricingOptions } from "../states/region-prices.ts";
import { blockPrices } from "./cheapest.ts";
import { joinParts } from "./join-parts.ts";
import { scattersFor } from "./split-scatters.ts";

/** Undefined for a target without blocks. */
export function blockRegions(pricing: PricingOptions): LayOut | undefined {
  const { blocks } = pricing.target;
  if (!blocks) return undefined;
  const priceOf = blockPrices(pricing);
  const splits = splitsFor(priceOf, blocks);
  const [orders, tails] = [operandOrders(priceOf, pricing.target), tailsFor(priceOf, blocks)];
  return knowing(
    inTurn(channelsLast(priceOf), weightOrders(priceOf)),
    joinAttention(
      pricing,
      inTurn(
        placedResults(priceOf, pricing.target, splits),
        prologuesFor(priceOf, inTurn(orders, tails, splits)),
        joinRows(priceOf, splits),
        joinParts(priceOf),
        orders,
        foldedResults(priceOf, splits),
        tails,
        splits,
        scansFor(priceOf, blocks),
        scattersFor(priceOf),
      ),
    ),
  );
}

/** `next` behind `first`, whose tensors it finds in the program. */
function knowing(first: LayOut, next: LayOut): LayOut {
  return (regions, nests) => {
    const made = first(regions, nests);
    const known = { ...nests, tensors: new Map([...nests.tensors, ...made.tensors]) };
    const rest = next(made.regions, known);
    return {
      regions: rest.regions,
      tensors: new Map([...made.tensors, ...rest.tensors]),
      views: [...(made.views ?? []), ...(rest.views ?? [])],
      notes: [...(made.notes ?? []), ...(rest.notes ?? [])],
    };
  };
}
