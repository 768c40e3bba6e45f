/**
 * Products of f32 that a schedule gives to matrix instructions, which take the bits of tf32, and what that and other
 * products of matrix units lose.
 */
import { tf32Error } from "../../target/allowing.ts";
import type { ScheduledProduct, ScheduledRegion } from "../scheduled-region.ts";
import { byteFloatBound } from "./apart-sums.ts";

export function isByTf32({ form, directive }: ScheduledProduct): boolean {
  return form.dtype === "f32" && directive.by !== "fma";
}

/** Both operands of a product lose so much: what that adds up to over all products. */
function tf32Bound(regions: readonly { readonly scheduled: ScheduledRegion }[]): number {
  const products = regions.flatMap((r) => r.scheduled.products.filter(isByTf32));
  return 2 * tf32Error * products.length;
}

/** What all products of a program may be off by that matrix units sum otherwise than f32 does. */
export function unitBound(regions: readonly { readonly scheduled: ScheduledRegion }[]): number {
  return tf32Bound(regions) + byteFloatBound(regions);
}
