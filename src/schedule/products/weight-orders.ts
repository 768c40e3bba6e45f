/**
 * Which products read their weights in the order of their loops: rows of a weight that lie along the depth
 * are what tensor copies bring of any type, so a weight is stored so from the start where that is cheaper. Of
 * 16 bits they bring either order at the same price; a weight, which costs nothing to store otherwise, is then
 * in the order in which one copy brings a tile. In: regions in order, prices (injected). Out: the regions, some
 * over weights in another order.
 */
import type { NestTensor, Region, TensorRole } from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { orderWeights } from "../../region/weight-order.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { productForm } from "./product-form.ts";

/** @param priceOf nanoseconds of a region by its cheapest schedule */
export function weightOrders(priceOf: (region: Region) => number): LayOut {
  return (regions, nests) => {
    const tensors = new Map<string, NestTensor & { readonly role: TensorRole }>();
    const made = regions.map((region) => {
      const ordered = orderWeights(region);
      if (!ordered) return region;
      const gain = priceOf(region) - priceOf(ordered);
      if (gain < 0 || (gain === 0 && !isOfHalves(region))) return region;
      for (const [name, { role, ...rest }] of ordered.tensors) {
        if (role !== "local" && !nests.tensors.has(name)) tensors.set(name, { ...rest, role });
      }
      return ordered;
    });
    return { regions: made, tensors };
  };
}

/** Whether it is a product of elements of 16 bits. */
function isOfHalves(region: Region): boolean {
  const form = productForm(region, region.statements[0]!);
  return typeof form !== "string" && dtypes[form.dtype].bits === 16;
}
