import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { IntegerSet } from "./index.ts";
import {
  intersect,
  isEmpty,
  maximum,
  minimum,
  parseSet,
  projectOut,
  samplePoint,
  subtract,
} from "./index.ts";
import { isOctagonInhabited } from "./octagon.ts";
import { findPoint } from "./omega.ts";
import { isInhabitedExactly } from "./omega-exact.ts";
import { combine, evaluateRow, gcd } from "./row.ts";
import { answer, GiveUp, Work } from "./work.ts";

function set(text: string): IntegerSet {
  const result = parseSet(text);
  if (!result.ok) throw new Error(result.diagnostics[0]!.message);
  return result.value;
}

describe("large numbers", () => {
  it("recovers from products beyond 2^53 and gives up only on results beyond it", () => {
    const big = 2 ** 40;
    expect(combine(big, [big, 2 * big, 4 * big], 0, [0, 0, 0], "inequality")).toEqual([1, 2, 4]);
    expect(combine(big, [big, 2 * big, 3], 0, [0, 0, 0], "equality")).toEqual([0, 0, 1]);
    expect(() => combine(big, [big, 0, 0], 3, [0, 1, 0], "inequality")).toThrow(GiveUp);
    expect(() => combine(big, [big, 0, 0], 0, [0, 0, 0], "value")).toThrow(GiveUp);
    expect(evaluateRow([big, -big, 5], [big, big])).toBe(5);
    expect(gcd(-12, 18)).toBe(6);
  });

  it("decides linearised addresses with large strides", () => {
    const stride = 2 ** 31;
    const clash = (extent: number): string =>
      `{ [i, j, k, l] : 0 <= i, k < 4096 and 0 <= j, l < ${extent} and i < k and
         ${stride}i + j = ${stride}k + l }`;
    expect(isEmpty(set(clash(stride)))).toBe("yes");
    expect(isEmpty(set(clash(stride + 1)))).toBe("no");
  });

  it("finds extremes near the end of the range", () => {
    const s = set("{ [i] : 7i <= 9007199254740990 and 5i >= 4503599627370496 }");
    expect(maximum(s, "i")).toEqual({
      kind: "known",
      value: { kind: "value", value: Math.floor(9007199254740990 / 7) },
    });
    expect(minimum(s, "i")).toEqual({
      kind: "known",
      value: { kind: "value", value: Math.ceil(4503599627370496 / 5) },
    });
  });
});

describe("other ways to the same decision", () => {
  const unit = fc.constantFrom(-1, 0, 1);
  const octagonRow = fc
    .tuple(fc.tuple(unit, unit, unit), fc.integer({ min: -5, max: 5 }))
    .map(([v, k]) => [...v, k])
    .filter(
      (r) => r.slice(0, 3).filter((v) => v !== 0).length <= 2 && r.slice(0, 3).some((v) => v !== 0),
    );
  const anyRow = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 4, maxLength: 4 });

  it("octagons by closure", () => {
    const rows = fc.array(octagonRow, { maxLength: 8 });
    fc.assert(
      fc.property(rows, fc.array(octagonRow, { maxLength: 1 }), (inequalities, equalities) => {
        const expected = findPoint(equalities, inequalities, 3, new Work()) !== null;
        expect(isOctagonInhabited(equalities, inequalities, 3)).toBe(expected);
      }),
      { numRuns: 500, seed: 3 },
    );
    expect(isOctagonInhabited([], [[2, 1, 0]], 2)).toBeUndefined();
    expect(isOctagonInhabited([], [[1, 1, 1, 0]], 3)).toBeUndefined();
  });

  it("BigInt", () => {
    const rows = fc.array(anyRow, { maxLength: 6 });
    fc.assert(
      fc.property(rows, fc.array(anyRow, { maxLength: 1 }), (inequalities, equalities) => {
        const expected = findPoint(equalities, inequalities, 3, new Work(Infinity)) !== null;
        expect(isInhabitedExactly(equalities, inequalities, new Work(Infinity))).toBe(expected);
      }),
      { numRuns: 300, seed: 5 },
    );
  });

  it("operations keep what they cannot simplify", () => {
    const p = 9007199254740881;
    const a = set(`[N] -> { [x, y] : y = ${p}x + N and ${p - 2}y + 3x >= ${p} }`);
    const both = intersect(a, set(`[N] -> { [x, y] : x >= ${p} and N >= 0 }`));
    expect(isEmpty(projectOut(both, [0]), 100_000)).not.toBe("yes");
  });

  it("decides what overflows doubles", () => {
    const p = 9007199254740881;
    const q = 9007199254740847;
    expect(isEmpty(set(`{ [x, y, z] : ${p}x - ${q}y = 1 and ${q}y - ${p - 2}z = 1 }`))).toBe("no");
    expect(isEmpty(set(`{ [x, y] : ${p}x - ${q}y = 1 and 0 <= x <= 5 }`))).toBe("yes");
  });
});

describe("budgets", () => {
  const hard = set(
    "{ [a, b, c, d] : 0 <= a, b, c, d <= 1000 and 97a + 89b - 83c - 79d = 1 and 31a - 37b + 41c - 43d >= 3 and 13a + 17b >= 19c }",
  );

  it("answer unknown when they run out, and correctly when they do not", () => {
    expect(isEmpty({ ...hard, pieces: hard.pieces.map((p) => ({ ...p })) }, 3)).toBe("unknown");
    expect(subtract(hard, set("{ [a, b, c, d] : exists e: a = 3e + b }"), 3)).toEqual({
      kind: "unknown",
      reason: "budget",
    });
    const point = samplePoint(hard);
    if (point.kind === "unknown" || !point.value) throw new Error("expected a point");
    const [a, b, c, d] = point.value.values as [number, number, number, number];
    expect(97 * a + 89 * b - 83 * c - 79 * d).toBe(1);
    expect(31 * a - 37 * b + 41 * c - 43 * d).toBeGreaterThanOrEqual(3);
  });

  it("do not hide other errors", () => {
    expect(() =>
      answer(() => {
        throw new RangeError("a bug");
      }),
    ).toThrow(RangeError);
  });
});
