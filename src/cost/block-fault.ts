/**
 * Why a machine of blocks has no code for a scheduled region, in words, or undefined: the one source of what refuses
 * a given schedule (SCH046), of what `inspect --schedule --use` says of it, and of prices without end.
 */
import type { ScheduledRegion } from "../schedule/scheduled-region.ts";
import type { BlockLimits } from "../target/target.ts";
import { residentAttention } from "./attention-cost.ts";
import { residentProducts } from "./product-cost.ts";
import { residentRows } from "./rows-cost.ts";

export function blockFault(scheduled: ScheduledRegion, limits: BlockLimits): string | undefined {
  const { attention, rows, products } = scheduled;
  const found = [
    ...(attention ? [residentAttention(attention, limits)] : []),
    ...(rows ? [residentRows(scheduled, rows, limits)] : []),
    ...products.map((p) => residentProducts(p, limits)),
  ];
  return found.find((f) => typeof f === "string");
}
