/**
 * Which products read their weights in the order of their loops: rows of a weight that lie along the depth
 * can be brought by tensor copies, so a weight is stored so from the start where that is cheaper. In: regions
 * in order, prices (injected). Out: the regions, some over weights in another order.
 */
import type { NestTensor, Region, TensorRole } from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { orderWeights } from "../../region/weight-order.ts";

/** @param priceOf nanoseconds of a region by its cheapest schedule */
export function weightOrders(priceOf: (region: Region) => number): LayOut {
  return (regions, nests) => {
    const tensors = new Map<string, NestTensor & { readonly role: TensorRole }>();
    const made = regions.map((region) => {
      const ordered = orderWeights(region);
      if (!ordered || priceOf(ordered) >= priceOf(region)) return region;
      for (const [name, { role, ...rest }] of ordered.tensors) {
        if (role !== "local" && !nests.tensors.has(name)) tensors.set(name, { ...rest, role });
      }
      return ordered;
    });
    return { regions: made, tensors };
  };
}
