import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Answer,
  add,
  applyMap,
  coalesce,
  compose,
  deltas,
  domain,
  formatSet,
  hullBoxes,
  identityMap,
  intersect,
  intersectDomain,
  intersectRange,
  inverse,
  isDisjoint,
  isEmpty,
  isEqual,
  isSubset,
  lexMax,
  lexMin,
  lexMinMap,
  makeDisjoint,
  maximum,
  minimum,
  parseMap,
  parseSet,
  projectOut,
  projectParams,
  range,
  samplePoint,
  scale,
  subtract,
  type Truth,
  union,
} from "./index.ts";
import {
  arbitraryMap,
  arbitrarySet,
  type JudgedMap,
  type JudgedSet,
  known,
  pairsIn,
  pointsOf,
} from "./random-sets.test-support.ts";

const dims = fc.integer({ min: 1, max: 3 });
const oneSet = dims.chain((d) => arbitrarySet(d));
const twoSets = dims.chain((d) => fc.tuple(arbitrarySet(d), arbitrarySet(d)));

function checkSets(property: (a: JudgedSet, b: JudgedSet) => void, numRuns = 150): void {
  fc.assert(
    fc.property(twoSets, ([a, b]) => property(a, b)),
    { numRuns, seed: 7 },
  );
}

function checkSet(property: (a: JudgedSet) => void, numRuns = 200): void {
  fc.assert(fc.property(oneSet, property), { numRuns, seed: 11 });
}

function checkMaps(property: (a: JudgedMap, b: JudgedMap) => void, numRuns = 150): void {
  const maps = fc
    .tuple(
      fc.integer({ min: 1, max: 2 }),
      fc.integer({ min: 1, max: 2 }),
      fc.integer({ min: 1, max: 2 }),
    )
    .chain(([x, y, z]) => fc.tuple(arbitraryMap(x, y), arbitraryMap(y, z)));
  fc.assert(
    fc.property(maps, ([a, b]) => property(a, b)),
    { numRuns, seed: 13 },
  );
}

/** Answers may be "unknown", never wrong; and at most one in ten may be unknown. */
class Tally {
  #asked = 0;
  #open = 0;
  check<T>(found: Answer<T>, compare: (value: T) => void): void {
    this.#asked++;
    if (found.kind === "unknown") this.#open++;
    else compare(found.value);
  }
  truth(found: Truth, expected: boolean): void {
    this.#asked++;
    if (found === "unknown") this.#open++;
    else expect(found).toBe(expected ? "yes" : "no");
  }
  close(): void {
    expect(this.#open * 10).toBeLessThan(this.#asked);
  }
}

const work = 50_000;
const numbers = (point: string): number[] => point.split(",").map(Number);

function lexicographic(a: string, b: string): number {
  const [x, y] = [numbers(a), numbers(b)];
  const i = x.findIndex((v, k) => v !== y[k]);
  return i < 0 ? 0 : x[i]! - y[i]!;
}

describe("sets agree with their points", () => {
  it("construction, projection and emptiness", () => {
    checkSet(({ set, points }) => {
      expect(pointsOf(set)).toEqual([...points].sort());
      expect(isEmpty(set)).toBe(points.size === 0 ? "yes" : "no");
      const sample = known(samplePoint(set));
      if (points.size > 0) expect(points).toContain(sample!.values.join());
      else expect(sample).toBeNull();
    });
  });

  it("intersection, union, subtraction", () => {
    const tally = new Tally();
    checkSets((a, b) => {
      const both = [...a.points].filter((p) => b.points.has(p));
      const either = [...new Set([...a.points, ...b.points])];
      const rest = [...a.points].filter((p) => !b.points.has(p));
      expect(pointsOf(intersect(a.set, b.set))).toEqual(both.sort());
      expect(pointsOf(union(a.set, b.set))).toEqual(either.sort());
      tally.check(subtract(a.set, b.set, work), (v) => expect(pointsOf(v)).toEqual(rest.sort()));
    });
    tally.close();
  });

  it("subset, equality, disjointness", () => {
    const tally = new Tally();
    checkSets((a, b) => {
      const inside = [...a.points].every((p) => b.points.has(p));
      const back = [...b.points].every((p) => a.points.has(p));
      const apart = ![...a.points].some((p) => b.points.has(p));
      tally.truth(isSubset(a.set, b.set, work), inside);
      tally.truth(isEqual(a.set, b.set, work), inside && back);
      tally.truth(isDisjoint(a.set, b.set, work), apart);
      tally.truth(isSubset(intersect(a.set, b.set), a.set, work), true);
      tally.truth(isEqual(a.set, union(a.set, intersect(a.set, b.set)), work), true);
    });
    tally.close();
  });

  it("lexicographic extremes", () => {
    const tally = new Tally();
    checkSet(({ set, points }) => {
      const ordered = [...points].sort(lexicographic);
      tally.check(lexMin(set, work), (v) => expect(pointsOf(v)).toEqual(ordered.slice(0, 1)));
      tally.check(lexMax(set, work), (v) => expect(pointsOf(v)).toEqual(ordered.slice(-1)));
    }, 100);
    tally.close();
  });

  it("projection of each dimension", () => {
    fc.assert(
      fc.property(arbitrarySet(2), ({ set, points }) => {
        const second = new Set([...points].map((p) => p.split(",")[1]!));
        expect(pointsOf(projectOut(set, [0]))).toEqual([...second].sort());
      }),
      { numRuns: 150, seed: 17 },
    );
  });

  it("disjoint form and coalescing keep the points", () => {
    checkSet(({ set, points }) => {
      const disjoint = known(makeDisjoint(set));
      const sizes = disjoint.pieces.map((p) => pointsOf({ ...set, pieces: [p] }).length);
      expect(sizes.reduce((a, b) => a + b, 0)).toBe(points.size);
      expect(pointsOf(disjoint)).toEqual([...points].sort());
      expect(pointsOf(known(coalesce(set)))).toEqual([...points].sort());
    }, 100);
  });

  it("minimum, maximum and hull boxes", () => {
    checkSet(({ set, points }) => {
      const list = [...points].map(numbers);
      const form = add(scale(3, "a"), 1);
      const values = list.map((p) => 3 * p[0]! + 1);
      const extreme = (v: number): object =>
        list.length === 0 ? { kind: "empty" } : { kind: "value", value: v };
      expect(known(minimum(set, form))).toEqual(extreme(Math.min(...values)));
      expect(known(maximum(set, form))).toEqual(extreme(Math.max(...values)));
      const boxes = known(hullBoxes(set));
      if (list.length === 0) expect(boxes).toEqual([]);
      else {
        expect(boxes[0]!.dims.map((d) => [d.lower[0]!.constant, d.upper[0]!.constant])).toEqual(
          list[0]!.map((_, i) => [
            Math.min(...list.map((p) => p[i]!)),
            Math.max(...list.map((p) => p[i]!)),
          ]),
        );
      }
    }, 100);
  });

  it("notation round trip", () => {
    checkSet(({ set, points }) => {
      const again = parseSet(formatSet(set));
      if (!again.ok) throw new Error(`${formatSet(set)}: ${again.diagnostics[0]!.message}`);
      expect(pointsOf(again.value)).toEqual([...points].sort());
      expect(formatSet(set)).toBe(formatSet(set));
    });
  });

  it("a dimension turned into a parameter and back", () => {
    const tally = new Tally();
    checkSet(({ set, points }) => {
      const asParam = {
        ...set,
        params: ["a"],
        pieces: set.pieces.map((p) => ({
          ...p,
          output: { name: "", dims: p.output.dims.slice(1) },
        })),
      };
      const tails = new Set([...points].map((p) => p.split(",").slice(1).join()));
      expect(pointsOf(projectParams(asParam, ["a"]))).toEqual([...tails].sort());
      const best = new Map<string, string>();
      for (const p of [...points].sort(lexicographic)) {
        if (!best.has(p.split(",")[0]!)) best.set(p.split(",")[0]!, p);
      }
      tally.check(lexMin(asParam, work), (firsts) => {
        const pieces = firsts.pieces.map((p) => ({
          ...p,
          output: { name: "", dims: ["a", ...p.output.dims] },
        }));
        expect(pointsOf({ ...firsts, params: [], pieces })).toEqual([...best.values()].sort());
      });
    }, 100);
    tally.close();
  });
});

describe("sets over two parameters agree with their points", () => {
  it("first and last points, for every value of both", () => {
    const tally = new Tally();
    fc.assert(
      fc.property(arbitrarySet(3), ({ set, points }) => {
        const named = (p: string): string => p.split(",").slice(0, 2).join();
        const asParams = {
          ...set,
          params: ["a", "b"],
          pieces: set.pieces.map((p) => ({
            ...p,
            output: { name: "", dims: p.output.dims.slice(2) },
          })),
        };
        const ordered = [...points].sort(lexicographic);
        const ends = [
          [lexMin, new Map([...ordered].reverse().map((p) => [named(p), p]))],
          [lexMax, new Map(ordered.map((p) => [named(p), p]))],
        ] as const;
        for (const [find, expected] of ends) {
          tally.check(find(asParams), (found) => {
            const pieces = found.pieces.map((p) => ({
              ...p,
              output: { name: "", dims: ["a", "b", ...p.output.dims] },
            }));
            expect(pointsOf({ ...found, params: [], pieces })).toEqual(
              [...expected.values()].sort(),
            );
          });
        }
      }),
      { numRuns: 60, seed: 47 },
    );
    tally.close();
  });
});

describe("maps agree with their pairs", () => {
  const ends = (pairs: ReadonlySet<string>, i: number): string[] =>
    [...new Set([...pairs].map((p) => p.split(">")[i]!))].sort();

  it("domain, range, inverse, notation", () => {
    checkMaps(({ map, pairs }) => {
      expect(pairsIn(map)).toEqual([...pairs].sort());
      expect(pointsOf(domain(map))).toEqual(ends(pairs, 0));
      expect(pointsOf(range(map))).toEqual(ends(pairs, 1));
      const turned = [...pairs].map((p) => p.split(">").reverse().join(">"));
      expect(pairsIn(inverse(map))).toEqual(turned.sort());
      const again = parseMap(formatSet(map));
      if (!again.ok) throw new Error(`${formatSet(map)}: ${again.diagnostics[0]!.message}`);
      expect(pairsIn(again.value)).toEqual([...pairs].sort());
    });
  });

  it("composition, image, restriction", () => {
    checkMaps((a, b) => {
      const joined = new Set<string>();
      for (const p of a.pairs) {
        const [x, y] = p.split(">");
        for (const q of b.pairs) if (q.split(">")[0] === y) joined.add(`${x}>${q.split(">")[1]}`);
      }
      expect(pairsIn(compose(a.map, b.map))).toEqual([...joined].sort());
      const middle = range(a.map);
      const kept = [...b.pairs].filter((q) => ends(a.pairs, 1).includes(q.split(">")[0]!));
      expect(pairsIn(intersectDomain(b.map, middle))).toEqual(kept.sort());
      const image = new Set(kept.map((q) => q.split(">")[1]!));
      expect(pointsOf(applyMap(b.map, middle))).toEqual([...image].sort());
      const reached = [...a.pairs].filter((p) => ends(b.pairs, 0).includes(p.split(">")[1]!));
      expect(pairsIn(intersectRange(a.map, domain(b.map)))).toEqual(reached.sort());
      expect(isEqual(compose(identityMap(domain(a.map)), a.map), a.map)).toBe("yes");
    }, 100);
  });

  it("differences and first images", () => {
    const tally = new Tally();
    fc.assert(
      fc.property(arbitraryMap(2, 2), ({ map, pairs }) => {
        const differences = [...pairs].map((p) => {
          const [x, y] = p.split(">").map(numbers);
          return y!.map((v, i) => v - x![i]!).join();
        });
        expect(pointsOf(deltas(map))).toEqual([...new Set(differences)].sort());
        const first = new Map<string, string>();
        for (const p of pairs) {
          const [x, y] = p.split(">") as [string, string];
          if (!first.has(x) || lexicographic(y, first.get(x)!) < 0) first.set(x, y);
        }
        const expected = [...first].map(([x, y]) => `${x}>${y}`).sort();
        tally.check(lexMinMap(map, work), (v) => expect(pairsIn(v)).toEqual(expected));
      }),
      { numRuns: 60, seed: 19 },
    );
    tally.close();
  });
});
