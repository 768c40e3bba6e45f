/**
 * Values of f32 as another implementation may round them: of a sum that is taken in another order a program has the
 * neighbour of what the oracle has. In: a node's reference. Out: every value that the node rounds to f32 moved to
 * one of its neighbours, which one by a hash of its place, so that the moves of many add up as roundings do.
 */
import type { OpTraits } from "../graph/op-info.ts";
import type { ScalarOp } from "../semantics/scalar-expr.ts";
import type { RefTensor } from "../semantics/tensor.ts";

/** Their results are operands, or differ from them by the sign. */
const exact: ReadonlySet<ScalarOp> = new Set(["neg", "abs", "relu", "max", "min", "select"]);

/** Whether a node makes values, which are rounded, and does not only move some that are there. */
export function rounds({ dataMovement, positions, updates, elementwise }: OpTraits): boolean {
  if (dataMovement || positions || updates !== undefined) return false;
  return elementwise === undefined || !exact.has(elementwise);
}

/** Of a value in units of its last place this is one to two: what is nearest to the product is its neighbour. */
const step = 0.75 * 2 ** -23;

/** @param salt another for each tensor */
export function nudged(tensor: RefTensor, salt: number): RefTensor {
  if (tensor.dtype !== "f32") return tensor;
  const data = Float64Array.from(tensor.data as Float64Array, (v, i) => {
    // Whole numbers are what they are in any order.
    if (Number.isInteger(v) || !Number.isFinite(v)) return v;
    const isUp = (Math.imul(i ^ Math.imul(salt + 1, 0x9e3779b1), 0x85ebca6b) >>> 16) & 1;
    const moved = Math.fround(v * (isUp ? 1 + step : 1 - step));
    return Number.isFinite(moved) ? moved : v;
  });
  return { ...tensor, data };
}
