import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Result } from "../support/diagnostic.ts";
import {
  type AffineLike,
  add,
  bandProperties,
  countPoints,
  directionOf,
  distanceVector,
  evaluateAffine,
  fixParams,
  floorDivide,
  footprintBoxes,
  formatBounds,
  type IntegerSet,
  isEmpty,
  isEqual,
  lexMax,
  lexMin,
  makeBox,
  makeDependence,
  makeMap,
  maximum,
  minimum,
  orderedBefore,
  parseMap,
  parseSet,
  remainder,
  type TimeSchedule,
} from "./index.ts";
import { arbitrarySet, known, pointsOf } from "./random-sets.test-support.ts";

function parsed<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics[0]!.message);
  return result.value;
}

const set = (text: string): IntegerSet => parsed(parseSet(text));

describe("countPoints", () => {
  it("agrees with enumeration on random sets", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3 }).chain((d) => arbitrarySet(d)),
        ({ set: s, points }) => {
          const count = countPoints(s);
          if (count.kind === "known") expect(count.value).toBe(points.size);
        },
      ),
      { numRuns: 100, seed: 31 },
    );
  });

  const check = (text: string, expected: number): void => {
    expect(countPoints(set(text))).toEqual({ kind: "known", value: expected });
  };

  it("has closed forms for boxes, triangles, simplices and unions of any size", () => {
    const n = 4096;
    check(`{ [i, j, k] : 0 <= i, j, k < ${n} }`, n ** 3);
    check(`{ [i, j] : 0 <= j <= i < ${n} }`, (n * (n + 1)) / 2);
    check(`{ [i, j, k] : 0 <= k <= j <= i < ${n} }`, (n * (n + 1) * (n + 2)) / 6);
    check(`{ [i, j] : 0 <= i < ${n} and i - 2 <= j <= i + 2 and 0 <= j < ${n} }`, 5 * n - 6);
    check(`{ [i] : 0 <= i < ${n}; [i] : 100 <= i < ${n + 5} }`, n + 5);
    check("{ S[i] : 0 <= i < 10; T[i] : 0 <= i < 10 }", 20);
    check("{ [i] : 0 <= i < 1000 and i mod 3 = 1 }", 333);
    check("{ [i] : i >= 4 and i <= 3 }", 0);
  });

  it("does not guess what is unbounded or too large", () => {
    expect(countPoints(set("{ [i] : i >= 0 }")).kind).toBe("unknown");
    const large = "{ [i, j] : 0 <= i < 1000000000 and 0 <= 3j - 2i < 100 }";
    expect(countPoints(set(large), 10).kind).toBe("unknown");
    // 34 multiples of 3 in 100 numbers for every third i, 33 for the others.
    expect(countPoints(set(large))).toEqual({ kind: "known", value: 33333333334 });
  });
});

describe("bounds", () => {
  it("parametric footprints of tiles", () => {
    const from = { tuple: "S", dims: ["i", "r"] };
    const access = makeMap({ from, to: { tuple: "X", values: [add("i", "i", "r"), "i"] } });
    const tile = makeBox({
      params: ["t"],
      tuple: "S",
      dims: ["i", "r"],
      low: ["t", 0],
      end: [add("t", 16), 3],
    });
    const [box] = known(footprintBoxes(access, tile));
    expect(box!.tuple.name).toBe("X");
    expect(box!.dims.map((d) => [formatBounds(d, "x"), d.extent])).toEqual([
      ["2t <= x <= 2t + 32", 33],
      ["t <= x <= t + 15", 16],
    ]);
  });

  it("parametric bounds hold at every parameter value and are attained", () => {
    const s = set("[N, M] -> { [i] : 0 <= i < N and i <= M }");
    const [box] = known(footprintBoxes(parsed(parseMap("{ [i] -> [i] }")), s));
    for (const N of [1, 3, 7]) {
      for (const M of [0, 2, 9]) {
        const values = pointsOf(fixParams(s, { N, M })).map(Number);
        const at = { N, M };
        const low = Math.max(...box!.dims[0]!.lower.map((e) => evaluateAffine(e, at)));
        const high = Math.min(...box!.dims[0]!.upper.map((e) => evaluateAffine(e, at)));
        expect([low, high]).toEqual([Math.min(...values), Math.max(...values)]);
      }
    }
    expect(box!.dims[0]!.extent).toBeUndefined();
  });

  it("extremes", () => {
    const s = set("{ [i, j] : 0 <= i <= 1000000000 and 3j <= 2i + 1 }");
    expect(known(maximum(s, "j"))).toEqual({ kind: "value", value: 666666667 });
    expect(known(minimum(s, "j"))).toEqual({ kind: "unbounded" });
    expect(known(maximum(s, floorDivide("i", 7)))).toEqual({ kind: "value", value: 142857142 });
    expect(known(minimum(set("{ [i] : 2i = 1 }"), "i"))).toEqual({ kind: "empty" });
  });

  it("lexicographic extremes with parameters", () => {
    const s = set("[N] -> { [i, j] : 0 <= i < N and i <= j < N }");
    const first = known(lexMin(s));
    const last = known(lexMax(s));
    for (const N of [1, 4]) {
      expect(pointsOf(fixParams(first, { N }))).toEqual(["0,0"]);
      expect(pointsOf(fixParams(last, { N }))).toEqual([`${N - 1},${N - 1}`]);
    }
    expect(isEmpty(fixParams(first, { N: 0 }))).toBe("yes");
  });
});

describe("orderedBefore", () => {
  const reference = "{ [i] -> [j] : 0 <= i <= 6 and 0 <= j <= 6 and ";
  const check = (time: string, expected: string): void => {
    const map = parsed(parseMap(`{ [i] -> ${time} and 0 <= i <= 6 }`));
    expect(isEqual(orderedBefore(map, map), parsed(parseMap(`${reference}${expected} }`)))).toBe(
      "yes",
    );
  };

  it("for functions and for maps with several images", () => {
    check("[i] : true", "i < j");
    check(
      "[floor(i/2), -i] : true",
      "(floor(i/2) < floor(j/2) or (floor(i/2) = floor(j/2) and i > j))",
    );
    check("[t] : i <= t <= i + 2", "i < j + 2");
    check("[0, t] : 2t = i", "i < j and i mod 2 = 0 and j mod 2 = 0");
  });
});

describe("distances and bands", () => {
  const stencil = makeDependence(
    parsed(parseMap("{ S[t, x] -> S[t + 1, x - 1] : 0 <= t < 9 and 1 <= x < 10 }")),
  );
  const reduction = makeDependence(
    parsed(parseMap("[K] -> { S[i, k] -> S[i, k'] : 0 <= i < 8 and 0 <= k < k' < K }")),
  );

  it("distance and direction vectors", () => {
    expect(known(distanceVector(stencil))).toEqual([
      { least: 1, greatest: 1 },
      { least: -1, greatest: -1 },
    ]);
    const vector = known(distanceVector(reduction))!;
    expect(vector).toEqual([
      { least: 0, greatest: 0 },
      { least: 1, greatest: Infinity },
    ]);
    expect(vector.map(directionOf)).toEqual(["=", "<"]);
  });

  it("permutable and coincident dimensions", () => {
    const schedule = (...values: AffineLike[]): TimeSchedule => ({
      times: new Map([["S", makeMap({ from: { tuple: "S", dims: ["t", "x"] }, to: { values } })]]),
    });
    const band = { first: 0, count: 2 };
    expect(bandProperties(schedule("t", "x"), [stencil], band)).toEqual({
      permutable: "no",
      coincident: ["no", "no"],
    });
    expect(bandProperties(schedule("t", add("t", "x")), [stencil], band)).toEqual({
      permutable: "yes",
      coincident: ["no", "yes"],
    });
    expect(bandProperties(schedule("t", "x"), [stencil], { first: 1, count: 1 })).toEqual({
      permutable: "yes",
      coincident: ["yes"],
    });
    const tiled = schedule(floorDivide("t", 4), floorDivide("x", 8), remainder("t", 4));
    expect(bandProperties(tiled, [reduction], band)).toEqual({
      permutable: "yes",
      coincident: ["yes", "no"],
    });
  });
});
