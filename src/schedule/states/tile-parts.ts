/**
 * How the copies of an unrolled loop run where fewer of them are left than the tile has, and how many is not
 * known: of eight a four where so many are left, of what is left behind it a two, and so on, instead of one
 * after another. Each part is a tile of registers; of n copies the parts come to no more code than n log2 n.
 */

import { constantValue } from "../../semantics/index-expr.ts";
import type { ScheduledLoop } from "../scheduled-region.ts";

/** Copies of the first part of a ragged loop; undefined where the copies run one by one. */
export function firstPart({ mode, extent }: ScheduledLoop): number | undefined {
  const copies = mode === "unroll" ? constantValue(extent) : undefined;
  return copies !== undefined && copies > 1 ? partOf(copies) : undefined;
}

/** The parts that run where `left` of so many copies are left, fewer than all. */
export function partsOf(copies: number, left: number): readonly number[] {
  if (left === 0) return [];
  if (copies === 1) return [1];
  const part = partOf(copies);
  return left < part ? partsOf(part, left) : [part, ...partsOf(copies - part, left - part)];
}

/** The greatest power of two below it. */
function partOf(copies: number): number {
  return 2 ** (Math.ceil(Math.log2(copies)) - 1);
}
