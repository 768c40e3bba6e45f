import { describe, expect, it } from "vitest";
import {
  type Answer,
  affineHull,
  coalesce,
  formatSet,
  type IntegerSet,
  isEqual,
  parseSet,
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
