/**
 * Compares two runtimes' outputs. The tolerance is derived from the model, not chosen: a sum of K
 * rounded products in any order is off by about sqrt(K) roundings of its size, each of `depth` layers
 * adds its own, and the largest of n such errors is about sqrt(2 ln n) times the usual one (extreme
 * value of the normal distribution).
 */
import { invariant } from "../../src/support/invariant.ts";
import type { Tensor, Tensors } from "./session.ts";

/** What the rounding of a model depends on. */
export interface Rounding {
  /** Layers on the longest path that sum products. */
  readonly depth: number;
  /** Terms of the longest sum. */
  readonly longestSum: number;
  /** Between neighbours of what results are stored as, where that is coarser than float32. */
  readonly storedEpsilon?: number;
  /** Whether those neighbours are the same distance apart everywhere: eight bits are spread over a tensor's range. */
  readonly isQuantized?: boolean;
}

const float32Epsilon = 2 ** -23;

/**
 * Largest difference that rounding alone causes among that many elements: of sums in float32, and of what
 * each layer stores more coarsely (half precision, eight bits), where the errors of layers are independent.
 */
export function toleranceOf(rounding: Rounding, elements: number): number {
  const { depth, longestSum, storedEpsilon = 0 } = rounding;
  const spread = Math.max(1, Math.sqrt(2 * Math.log(Math.max(1, elements))));
  const sums = float32Epsilon * Math.sqrt(longestSum) * depth;
  return (sums + storedEpsilon * Math.sqrt(depth)) * spread;
}

export function countElements(tensors: Tensors): number {
  return Object.values(tensors).reduce((sum, { data }) => sum + data.length, 0);
}

/**
 * Largest |a - b| / max(1, |b|) over all outputs; infinite where a NaN, an infinity, a shape or a
 * missing output differs. Of a quantised model |b| is the largest of the output.
 */
export function worstDifference(
  ours: Tensors,
  theirs: Tensors,
  { isQuantized = false }: Partial<Rounding> = {},
): number {
  let worst = 0;
  for (const [name, expected] of Object.entries(theirs)) {
    const found = ours[name];
    if (found === undefined || !sameShape(found, expected)) return Number.POSITIVE_INFINITY;
    const range = isQuantized ? largest(expected) : 0;
    for (let i = 0; i < expected.data.length; i++) {
      const [a, b] = [Number(found.data[i]), Number(expected.data[i])];
      worst = Math.max(worst, difference(a, b, Math.max(1, range, Math.abs(b))));
    }
  }
  return worst;
}

function sameShape(a: Tensor, b: Tensor): boolean {
  invariant(b.data.length === b.dims.reduce((x, y) => x * y, 1), () => "reference shape");
  return a.type === b.type && a.dims.join() === b.dims.join() && a.data.length === b.data.length;
}

/** Of the finite elements. */
function largest({ data }: Tensor): number {
  let found = 0;
  for (let i = 0; i < data.length; i++) {
    const size = Math.abs(Number(data[i]));
    if (size > found && size < Number.POSITIVE_INFINITY) found = size;
  }
  return found;
}

function difference(a: number, b: number, scale: number): number {
  if (Object.is(a, b) || a === b) return 0;
  const d = Math.abs(a - b) / scale;
  return Number.isNaN(d) ? Number.POSITIVE_INFINITY : d;
}
