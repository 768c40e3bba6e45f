import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  countInParams,
  countPoints,
  evaluateCount,
  formatCount,
  type IntegerSet,
  parseSet,
} from "./index.ts";
import { arbitrarySet, known, reach } from "./random-sets.test-support.ts";

function set(text: string): IntegerSet {
  const result = parseSet(text);
  if (!result.ok) throw new Error(result.diagnostics[0]!.message);
  return result.value;
}

describe("counting", () => {
  it("in closed form, whatever the size", () => {
    const check = (text: string, count: number): void => {
      expect(known(countPoints(set(text)))).toBe(count);
    };
    check("{ [i, j] : 0 <= i, j < 1000000 }", 1e12);
    check("{ [i, j, k] : 0 <= i <= j <= k < 1000 }", 167167000);
    check("{ [i] : 0 <= i < 10000000 and i mod 7 = 3 }", 1428571);
    check("{ [t, i] : t = floor(i/32) and 0 <= i < 100000 }", 100000);
    check("{ [t] : exists i: t = floor(i/32) and 0 <= i < 100000 }", 3125);
    check("{ [i, j] : 0 <= i and 0 <= j and 2i + 3j <= 60000 }", 300030001);
    check("{ [i] : exists e: -2e <= i <= 2 - 2e and 0 <= e <= 1 }", 5);
    check("{ [i] : i mod 2 = 0 and (floor(i/2) + i) mod 2 = 1 and -7 <= i <= 2 }", 3);
    check("{ A[i] : 0 <= i < 3; B[i] : 0 <= i < 4; A[i] : 2 <= i < 9 }", 13);
  });

  it("by listing up to a million points where a closed form would split too often", () => {
    const holds = (i: number, j: number): boolean =>
      (Math.floor((37 * i + 91 * j) / 101) * 29 + 17 * i) % 97 < 48 && (61 * i + 43 * j) % 89 < 60;
    let expected = 0;
    for (let i = 0; i < 1200; i++) for (let j = 0; j < 1200; j++) if (holds(i, j)) expected++;
    const odd = set(
      `{ [i, j] : 0 <= i, j < 1200 and (29*floor((37i + 91j)/101) + 17i) mod 97 < 48
         and (61i + 43j) mod 89 < 60 }`,
    );
    expect(countPoints(odd)).toEqual({ kind: "known", value: expected });
    expect(expected).toBeGreaterThan(100_000);
  });

  it("says what it cannot count", () => {
    expect(countPoints(set("{ [i] : i >= 0 }"))).toEqual({ kind: "unknown", reason: "unbounded" });
    expect(countInParams(set("[N] -> { [i] : i >= N }"))).toEqual({
      kind: "unknown",
      reason: "unbounded",
    });
    expect(countPoints(set("{ [i, j, k] : 0 <= i, j, k < 1000000 }"))).toEqual({
      kind: "unknown",
      reason: "overflow",
    });
  });

  it("in the parameters", () => {
    const check = (text: string, formula: string): void => {
      expect(formatCount(known(countInParams(set(text))))).toBe(formula);
    };
    check("[N] -> { [i, j] : 0 <= j < i < N }", "[N] -> { 1/2*N^2 - 1/2*N : N >= 2 }");
    check(
      "[N, M] -> { [i, j] : 0 <= i < N and 0 <= j < M }",
      "[N, M] -> { M*N : N >= 1 and M >= 1 }",
    );
    check("[N] -> { [i] : 0 <= 3i <= N }", "[N] -> { floor((N)/3) + 1 : N >= 0 }");
    check("[N] -> { [i] : i = N and i < N }", "[N] -> { 0 }");
    const tile = known(countInParams(set("[T, N] -> { [i] : 32T <= i < 32T + 32 and i < N }")));
    expect(known(evaluateCount(tile, { T: 3, N: 100 }))).toBe(4);
    expect(known(evaluateCount(tile, { T: 2, N: 100 }))).toBe(32);
    expect(known(evaluateCount(tile, { T: 4, N: 100 }))).toBe(0);
  });

  it("agrees with the points, also when a dimension becomes a parameter", () => {
    let unknowns = 0;
    const sets = fc.integer({ min: 1, max: 3 }).chain((d) => arbitrarySet(d));
    fc.assert(
      fc.property(sets, ({ set: value, points }) => {
        expect(known(countPoints(value))).toBe(points.size);
        const pieces = value.pieces.map((p) => ({
          ...p,
          output: { name: "", dims: p.output.dims.slice(1) },
        }));
        const count = countInParams({ ...value, params: ["a"], pieces });
        if (count.kind === "unknown") {
          unknowns++;
          return;
        }
        for (let a = -reach; a <= reach; a++) {
          const here = [...points].filter((p) => Number(p.split(",")[0]) === a).length;
          expect(known(evaluateCount(count.value, { a }))).toBe(here);
        }
      }),
      { numRuns: 20, seed: 23 },
    );
    expect(unknowns).toBeLessThan(4);
  });
});
