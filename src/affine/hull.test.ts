import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Answer,
  affineHull,
  coalesce,
  enumeratePoints,
  formatSet,
  type IntegerSet,
  isEqual,
  isSubset,
  parseSet,
  polyhedralHull,
  removeRedundancies,
  simpleHull,
} from "./index.ts";

function set(text: string): IntegerSet {
  const result = parseSet(text);
  if (!result.ok) throw new Error(result.diagnostics[0]!.message);
  return result.value;
}

function known<T>(found: Answer<T>): T {
  if (found.kind === "unknown") throw new Error(found.reason);
  return found.value;
}

describe("hulls", () => {
  function check(found: Answer<IntegerSet>, expected: string): void {
    const value = known(found);
    expect(isEqual(value, set(expected)), formatSet(value)).toBe("yes");
  }

  it("affine: equalities of the integer points, not of the rows", () => {
    check(
      affineHull(set("{ [i, j] : 0 <= i <= 9 and j = 2i; [i, j] : i = 20 and j = 40 }")),
      "{ [i, j] : j = 2i }",
    );
    // 3 <= 2i <= 5 leaves one integer.
    check(affineHull(set("{ [i, j] : 3 <= 2i <= 5 }")), "{ [i, j] : i = 2 }");
    check(affineHull(set("[N] -> { [i, j] : i = N and 0 <= j < N }")), "[N] -> { [i, j] : i = N }");
    check(affineHull(set("{ [i] : 3 <= 2i <= 3 }")), "{ }");
    check(affineHull(set("{ A[i] : i = 1; B[i] : i >= 0 }")), "{ A[1]; B[i] }");
  });

  it("simple: rows moved outwards, one piece a tuple", () => {
    check(simpleHull(set("{ [i] : 0 <= i <= 3; [i] : 8 <= i <= 9 }")), "{ [i] : 0 <= i <= 9 }");
    check(
      simpleHull(set("[N] -> { [i] : 0 <= i < N; [i] : 2 <= i < N + 3 }")),
      "[N] -> { [i] : 0 <= i < N + 3 and N >= -2 }",
    );
    const hull = known(
      simpleHull(set("{ [i, j] : 0 <= i <= j <= 5; [i, j] : 2 <= i <= 9 and j = 3 }")),
    );
    expect(hull.pieces).toHaveLength(1);
    check(simpleHull(set("{ [i] : i >= 0; [i] : i <= -5 }")), "{ [i] }");
  });
});

/** Whether p lies in the triangle, or on the segment or point it degenerates to. */
function isInTriangle(p: readonly number[], corners: readonly (readonly number[])[]): boolean {
  const sides = corners.map((a, i) => {
    const b = corners[(i + 1) % 3]!;
    return (b[0]! - a[0]!) * (p[1]! - a[1]!) - (b[1]! - a[1]!) * (p[0]! - a[0]!);
  });
  const around = sides.every((s) => s >= 0) || sides.every((s) => s <= 0);
  const within = [0, 1].every((c) => {
    const own = corners.map((a) => a[c]!);
    return Math.min(...own) <= p[c]! && p[c]! <= Math.max(...own);
  });
  return around && within;
}

describe("the polyhedral hull", () => {
  function check(text: string, expected: string): void {
    const value = known(polyhedralHull(set(text)));
    expect(isEqual(value, set(expected)), formatSet(value)).toBe("yes");
    expect(known(affineHull(value)).pieces.length).toBe(value.pieces.length);
  }

  it("takes every valid row, also ones that no piece has", () => {
    check("{ [0, 0]; [4, 8] }", "{ [i, j] : j = 2i and 0 <= i <= 4 }");
    check("{ [0, 0]; [6, 0]; [0, 6] }", "{ [i, j] : i >= 0 and j >= 0 and i + j <= 6 }");
    check("{ [i, 0] : i >= 0; [0, 3] }", "{ [i, j] : i >= 0 and 0 <= j <= 3 }");
    check("{ [i, j] : i = 0; [1, 5] }", "{ [i, j] : 0 <= i <= 1 }");
    check(
      "[N] -> { [i] : 0 <= i < N; [i] : i = 2N and N >= 1 }",
      "[N] -> { [i] : 0 <= i <= 2N and N >= 1 }",
    );
    check("{ [i] : i mod 3 = 1 and 0 <= i <= 9 }", "{ [i] : 1 <= i <= 7 }");
    check("{ A[i] : i = 0; B[i] : i >= 0; A[4] }", "{ A[i] : 0 <= i <= 4; B[i] : i >= 0 }");
    check(
      "{ [i, j] : 3i = 2j + 11 and 3 <= i <= 4; [-2, 3]; [-2, -3] }",
      "{ [i, j] : i >= -2 and 5j >= 2i - 11 and 4i + 5j <= 7 }",
    );
    check("{ [i] : 3 <= 2i <= 3 }", "{ }");
  });

  it("holds no integer point outside of all triangles of corners", () => {
    const boxes = fc.array(
      fc.tuple(...[6, 3, 6, 3].map((most) => fc.integer({ min: 0, max: most }))),
      { minLength: 1, maxLength: 3 },
    );
    fc.assert(
      fc.property(boxes, (list) => {
        const spelled = list.map(
          ([x, w, y, h]) => `[i, j] : ${x} <= i <= ${x! + w!} and ${y} <= j <= ${y! + h!}`,
        );
        const corners = list.flatMap(([x, w, y, h]) =>
          [x!, x! + w!].flatMap((a) => [y!, y! + h!].map((b) => [a, b])),
        );
        const operand = set(`{ ${spelled.join("; ")} }`);
        const hull = known(polyhedralHull(operand));
        expect(isSubset(operand, hull)).toBe("yes");
        const inside = known(enumeratePoints(hull)).map((p) => p.values);
        const covered = (p: readonly number[]): boolean =>
          corners.some((a) => corners.some((b) => corners.some((c) => isInTriangle(p, [a, b, c]))));
        expect(inside.filter((p) => !covered(p))).toEqual([]);
        const all = Array.from({ length: 100 }, (_, k) => [Math.floor(k / 10), k % 10]);
        expect(all.filter(covered).length).toBe(inside.length);
      }),
      { numRuns: 60, seed: 23 },
    );
  });
});

describe("rows that others imply", () => {
  it("go, and empty pieces with them", () => {
    const value = set(
      "{ [i, j] : 0 <= i <= 5 and i <= j <= 9 and j >= -1 and i + j <= 20; [7, j] : 1 <= 2j <= 1 }",
    );
    const slim = known(removeRedundancies(value));
    expect(isEqual(slim, value)).toBe("yes");
    expect(slim.pieces.map((p) => p.inequalities.length)).toEqual([4]);
  });
});

describe("coalescing", () => {
  function check(text: string, pieces: number): void {
    const value = set(text);
    const joined = known(coalesce(value));
    expect(isEqual(joined, value), formatSet(joined)).toBe("yes");
    expect(joined.pieces, formatSet(joined)).toHaveLength(pieces);
  }

  it("joins what one piece describes, and nothing else", () => {
    check("{ [i] : 0 <= i <= 4; [i] : 5 <= i <= 9 }", 1);
    check("{ [i] : 0 <= i <= 4; [i] : 6 <= i <= 9 }", 2);
    check("{ [i, j] : 0 <= i, j <= 9; [i, j] : 2 <= i <= 3 and j = 4 }", 1);
    check("[N] -> { [i] : 0 <= i < N and i <= 7; [i] : 8 <= i < N }", 1);
    check("{ [i, j] : 0 <= j <= i <= 9; [i, j] : 0 <= i < j <= 9 }", 1);
    check("{ [i] : 0 <= i <= 3; [i] : 8 <= i <= 9; [i] : 4 <= i <= 7; [i] : i = 20 }", 2);
    check("{ [i] : i mod 2 = 0 and 0 <= i <= 8; [i] : i mod 2 = 0 and 9 <= i <= 20 }", 1);
    check("{ [i] : 0 <= i and 2i <= -1 }", 0);
    check("{ A[i] : i = 0; B[i] : i = 1 }", 2);
  });
});
