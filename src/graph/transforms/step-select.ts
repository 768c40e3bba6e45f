/**
 * The few first of each line one after another: each element becomes one integer of 64 bits, its order key above what
 * its place leaves of the last place, so that no two are equal and of equal keys the first place is greater; the
 * greatest of them is the first, the greatest below it the second, and so on. That is a fold of the line for each, and
 * nothing else: keys, places and order of the results are in the numbers. Threads keep a line in registers over all
 * folds, so that it is one kernel, where digits (radix-select.ts) take a count for each bit and then have to look for
 * the places.
 */
import { identityElement } from "../../semantics/monoids.ts";
import { fromRef, refTensor } from "../../semantics/tensor.ts";
import type { GraphBuilder } from "../builder.ts";
import type { ValueId } from "../graph.ts";
import type { OrderKeys } from "./radix-select.ts";

/** Of how many firsts a fold each costs less than a count of each bit. */
export const mostSteps = 8;

const placeBits = 32;
const lowBits = 2 ** placeBits - 1;

/** Elements as numbers that are all different, the first in order the greatest (i64). */
export function stepCodes(
  b: GraphBuilder,
  { value }: Pick<OrderKeys, "value">,
  places: ValueId,
  lastPlace: number,
): ValueId {
  const above = b.applyNumber("mul", b.cast(value, "i64"), 2 ** placeBits);
  const left = b.sub(b.scalar(BigInt(lastPlace), "i64"), b.cast(places, "i64"));
  return b.add(above, left);
}

/** The place that a number was made of (i64). */
export function placeOfCode(b: GraphBuilder, code: ValueId, lastPlace: number): ValueId {
  return b.sub(b.scalar(BigInt(lastPlace), "i64"), b.applyNumber("bitAnd", code, lowBits));
}

/** The k greatest numbers along the last axis, the greatest first; the axis has at least as many. */
export function greatestCodes(b: GraphBuilder, codes: ValueId, k: number): ValueId {
  const last = b.rankOf(codes) - 1;
  const none = b.scalar(identityElement("max", "i64"), "i64");
  const found: ValueId[] = [];
  for (let i = 0; i < k; i++) {
    const before = found.at(-1);
    const left =
      before === undefined ? codes : b.select(b.apply("less", codes, before), codes, none);
    found.push(b.reduce("max", left, [last], true));
  }
  return beside(b, found, last);
}

/** Values of extent 1 along an axis as one, chosen by place: what reads it computes it, where a concat is copies. */
function beside(b: GraphBuilder, values: readonly ValueId[], axis: number): ValueId {
  const [first, ...others] = values as readonly [ValueId, ...ValueId[]];
  if (others.length === 0) return first;
  const shape = b.shapeOf(first).map((_, i) => (i === axis ? values.length : 1));
  // A constant, so that nothing has to count.
  const places = refTensor("i32", shape, [...values.keys()]);
  const place = b.constant(fromRef(places));
  return others.reduce(
    (all, value, i) => b.select(b.apply("less", b.scalar(i, "i32"), place), value, all),
    first,
  );
}
