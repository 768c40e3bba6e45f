/**
 * Lexicographic minima and maxima, for every parameter value (and for a map every source point): the
 * points minus those that some other point of the same set beats. Exact, by subtraction.
 */
import { subtractWithin } from "./compare.ts";
import { applyMap, compose, inverse } from "./operations.ts";
import { lexLess } from "./order.ts";
import { type IntegerMap, type IntegerSet, sameTuple, type Tuple } from "./types.ts";
import { type Answer, answer } from "./work.ts";

/** The lexicographically first point of each tuple of the set, as a set over the parameters. */
export function lexMin(set: IntegerSet, limit?: number): Answer<IntegerSet> {
  return bestOfSet(set, "first", limit);
}

/** The lexicographically last point of each tuple. */
export function lexMax(set: IntegerSet, limit?: number): Answer<IntegerSet> {
  return bestOfSet(set, "last", limit);
}

/** Each source point with the first of its images in each target tuple. */
export function lexMinMap(map: IntegerMap, limit?: number): Answer<IntegerMap> {
  return bestOfMap(map, "first", limit);
}

/** Each source point with the last of its images in each target tuple. */
export function lexMaxMap(map: IntegerMap, limit?: number): Answer<IntegerMap> {
  return bestOfMap(map, "last", limit);
}

type End = "first" | "last";

/** Pairs (better, worse) on each of the tuples. */
function beats(tuples: readonly Tuple[], params: readonly string[], end: End): IntegerMap {
  const pieces = tuples.flatMap((t) => {
    const less = lexLess(t, params);
    return (end === "first" ? less : inverse(less)).pieces;
  });
  return { kind: "map", params, pieces };
}

function outputTuples(value: IntegerSet | IntegerMap): Tuple[] {
  const out: Tuple[] = [];
  for (const p of value.pieces) {
    if (!out.some((t) => sameTuple(t, p.output))) out.push(p.output);
  }
  return out;
}

function bestOfSet(set: IntegerSet, end: End, limit: number | undefined): Answer<IntegerSet> {
  const beaten = applyMap(beats(outputTuples(set), set.params, end), set);
  return answer((work) => subtractWithin(set, beaten, work), limit);
}

function bestOfMap(map: IntegerMap, end: End, limit: number | undefined): Answer<IntegerMap> {
  const beaten = compose(map, beats(outputTuples(map), map.params, end));
  return answer((work) => subtractWithin(map, beaten, work), limit);
}
