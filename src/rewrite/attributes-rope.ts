/**
 * Attributes of rotary embeddings whose operands are slices: the first and second half of the last axis,
 * or its even and odd positions. See attributes.ts.
 */
import { constantValue, indexEquals, mul, toIndex } from "../semantics/index-expr.ts";
import type { AttributeFunction } from "./attributes.ts";
import type { Site } from "./site.ts";

/** Where a slice reads the last axis: all other axes are whole. */
function readsOfLast(site: Site, name: string, x: string) {
  const { starts, steps, sizes } = site.attrs<"slice">(name);
  const shape = site.shape(x);
  const last = shape.length - 1;
  const whole = shape.every(
    (d, i) =>
      i === last ||
      (constantValue(starts[i]!) === 0 && steps[i] === 1 && indexEquals(sizes[i]!, d)),
  );
  if (!whole) return undefined;
  return { start: starts[last]!, step: steps[last]!, size: sizes[last]!, extent: shape[last]! };
}

function ropeOf(interleaved: boolean) {
  return (site: Site, p: string, q: string, x: string): object | undefined => {
    if (site.shape(x).length === 0) return undefined;
    const [second, first] = [readsOfLast(site, p, x), readsOfLast(site, q, x)];
    const extent = first && constantValue(first.extent);
    if (!first || !second || extent === undefined || extent % 2 !== 0) return undefined;
    const half = toIndex(extent / 2);
    const step = interleaved ? 2 : 1;
    const fits =
      [first, second].every((r) => r.step === step && indexEquals(r.size, half)) &&
      constantValue(first.start) === 0 &&
      constantValue(second.start) === (interleaved ? 1 : extent / 2);
    return fits ? { interleaved, rotaryDims: extent } : undefined;
  };
}

const ofHalves = ropeOf(false);
const ofPairs = ropeOf(true);

/** Pairs are joined along a new last axis, which is then merged with the one before it. */
const ropeOfPairs: AttributeFunction = (site, [p, q, x, u, k]) => {
  const { shape } = site.attrs<"reshape">(u!);
  const whole = site.shape(x!);
  const rank = whole.length;
  const isNew =
    shape.length === rank + 1 &&
    constantValue(shape[rank]!) === 1 &&
    shape.slice(0, rank - 1).every((d, i) => indexEquals(d, whole[i]!)) &&
    indexEquals(mul(shape[rank - 1]!, 2), whole[rank - 1]!) &&
    site.attrs<"concat">(k!).axis === rank;
  return isNew ? ofPairs(site, p!, q!, x!) : undefined;
};

export const ropeAttributes: Readonly<Record<string, AttributeFunction>> = {
  ropeOfHalves: (site, [p, q, x]) => ofHalves(site, p!, q!, x!),
  ropeOfPairs,
};
