/**
 * Lexicographic minima and maxima, for every parameter value (and for a map every source point): the
 * points minus those that some other point of the same set beats. Exact, by subtraction.
 */
import { isSubsetWithin, subtractWithin } from "./compare.ts";
import { applyMap, compose, domain, inverse, paramsOf } from "./operations.ts";
import { lexLess } from "./order.ts";
import {
  fixedColumns,
  type IntegerMap,
  type IntegerSet,
  type SetOrMap,
  sameTuple,
  type Tuple,
} from "./types.ts";
import { type Answer, answer, GiveUp, Work } from "./work.ts";

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

function outputTuples(value: SetOrMap): Tuple[] {
  const out: Tuple[] = [];
  for (const p of value.pieces) {
    if (!out.some((t) => sameTuple(t, p.output))) out.push(p.output);
  }
  return out;
}

function bestOfSet(set: IntegerSet, end: End, limit: number | undefined): Answer<IntegerSet> {
  const beaten = applyMap(beats(outputTuples(set), set.params, end), set);
  return answer((work) => {
    const best = subtractWithin(set, beaten, work);
    for (const tuple of outputTuples(set)) {
      const part = within(set, tuple);
      if (isPlainlyBounded(part, end)) continue;
      requireOptimum(paramsOf(part), paramsOf(within(best, tuple)), limit);
    }
    return best;
  }, limit);
}

function bestOfMap(map: IntegerMap, end: End, limit: number | undefined): Answer<IntegerMap> {
  const beaten = compose(map, beats(outputTuples(map), map.params, end));
  return answer((work) => {
    const best = subtractWithin(map, beaten, work);
    for (const tuple of outputTuples(map)) {
      const part = within(map, tuple);
      if (isPlainlyBounded(part, end)) continue;
      requireOptimum(domain(part), domain(within(best, tuple)), limit);
    }
    return best;
  }, limit);
}

function within<T extends SetOrMap>(value: T, tuple: Tuple): T {
  return { ...value, pieces: value.pieces.filter((p) => sameTuple(p.output, tuple)) };
}

/** Where there are points but no first one, the question has no answer. */
function requireOptimum(wanted: IntegerSet, found: IntegerSet, limit: number | undefined): void {
  if (!isSubsetWithin(wanted, found, new Work(limit))) throw new GiveUp("unbounded");
}

/** Whether a row bounds each output dimension on the searched side by parameters and inputs alone. */
function isPlainlyBounded({ params, pieces }: SetOrMap, end: End): boolean {
  return pieces.every((p) => {
    const last = fixedColumns(params, p);
    const first = last - p.output.dims.length;
    return p.output.dims.every((_, i) =>
      p.inequalities.some((row) => {
        const sign = end === "first" ? row[first + i]! : -row[first + i]!;
        if (sign <= 0) return false;
        for (let c = first; c < row.length - 1; c++) {
          if (c !== first + i && row[c] !== 0) return false;
        }
        return true;
      }),
    );
  });
}
