import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allDTypes, isBigDType } from "./dtype.ts";
import {
  argMonoid,
  identityElement,
  type Monoid,
  onlineSoftmaxMonoid,
  simpleMonoid,
  welfordMonoid,
} from "./monoids.ts";
import { evaluateScalar, type ScalarValue } from "./scalar-meaning.ts";

type Tuple = readonly ScalarValue[];

function identityOf(monoid: Monoid): Tuple {
  return monoid.identity.map((e) => evaluateScalar(e, []));
}

function combine(monoid: Monoid, a: Tuple, b: Tuple): Tuple {
  return monoid.combine.map((e) => evaluateScalar(e, [...a, ...b]));
}

/** Reduces by splitting at random places: any bracketing must agree. */
function reduceTree(monoid: Monoid, items: readonly Tuple[], split: number): Tuple {
  if (items.length === 0) return identityOf(monoid);
  if (items.length === 1) return items[0]!;
  const at = 1 + (split % (items.length - 1));
  const left = reduceTree(monoid, items.slice(0, at), split);
  return combine(monoid, left, reduceTree(monoid, items.slice(at), split + 1));
}

function finish(monoid: Monoid, value: Tuple): Tuple {
  return monoid.finish.map((e) => evaluateScalar(e, value));
}

function expectClose(a: ScalarValue, b: number): void {
  if (Number.isNaN(b)) expect(a).toBeNaN();
  else expect(Math.abs(Number(a) - b)).toBeLessThanOrEqual(1e-9 * Math.max(1, Math.abs(b)));
}

const values = fc.array(fc.double({ min: -30, max: 30, noNaN: true }), { minLength: 1 });

describe("simple monoids", () => {
  it.each(["sum", "prod", "max", "min"] as const)(
    "%s has a neutral identity in every dtype",
    (k) => {
      for (const dtype of allDTypes.filter((d) => d !== "bool" && d !== "e8m0")) {
        const monoid = simpleMonoid(k, dtype);
        const one = isBigDType(dtype) ? 1n : 1;
        expect(combine(monoid, identityOf(monoid), [one])).toEqual([one]);
        expect(combine(monoid, [one], identityOf(monoid))).toEqual([one]);
      }
    },
  );

  it("and, or are over bool", () => {
    for (const x of [0, 1]) {
      for (const k of ["and", "or"] as const) {
        const monoid = simpleMonoid(k, "bool");
        expect(combine(monoid, identityOf(monoid), [x])).toEqual([x]);
      }
    }
  });

  it("uses the range where there is no infinity", () => {
    expect(identityElement("max", "f8e4m3fn")).toBe(-448);
    expect(identityElement("max", "f32")).toBe(-Infinity);
    expect(identityElement("min", "u64")).toBe((1n << 64n) - 1n);
  });
});

describe("onlineSoftmax", () => {
  const monoid = onlineSoftmaxMonoid("f64");
  it("is the softmax-weighted mean in any bracketing, masked scores included", () => {
    const score = fc.oneof(fc.double({ min: -50, max: 50, noNaN: true }), fc.constant(-Infinity));
    const items = fc.array(fc.tuple(score, fc.double({ min: -9, max: 9, noNaN: true })), {
      minLength: 1,
    });
    fc.assert(
      fc.property(items, fc.nat(100), (pairs, split) => {
        const top = Math.max(...pairs.map(([s]) => s));
        const weights = pairs.map(([s]) => Math.exp(s - top));
        const total = weights.reduce((x, y) => x + y, 0);
        const mean = pairs.reduce((sum, [, v], i) => sum + weights[i]! * v, 0) / total;
        const tuples = [identityOf(monoid), ...pairs.map(([s, v]) => [s, 1, v])];
        expectClose(finish(monoid, reduceTree(monoid, tuples, split))[0]!, mean);
      }),
    );
  });

  it("has a neutral identity", () => {
    expect(combine(monoid, identityOf(monoid), [2, 3, 4])).toEqual([2, 3, 4]);
    expect(combine(monoid, identityOf(monoid), identityOf(monoid))).toEqual([-Infinity, 0, 0]);
  });
});

describe("argmax and argmin", () => {
  const small = fc.array(fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constant(Number.NaN)), {
    minLength: 1,
  });
  it.each([
    ["max", "first"],
    ["max", "last"],
    ["min", "first"],
    ["min", "last"],
  ] as const)("%s with the %s of ties, in any bracketing", (kind, tie) => {
    const monoid = argMonoid({ kind, dtype: "f32", indexDType: "i64", tie });
    fc.assert(
      fc.property(small, fc.nat(50), (xs, split) => {
        const best = kind === "max" ? Math.max(...xs) : Math.min(...xs);
        const isBest = (x: number) => x === best || (Number.isNaN(x) && Number.isNaN(best));
        const expected = tie === "first" ? xs.findIndex(isBest) : xs.findLastIndex(isBest);
        const tuples: Tuple[] = xs.map((x, i) => [x, BigInt(i)]);
        const padded = [identityOf(monoid), ...tuples, identityOf(monoid)];
        expect(finish(monoid, reduceTree(monoid, padded, split))).toEqual([BigInt(expected)]);
      }),
    );
  });

  it("skips the NaN test on integers", () => {
    const monoid = argMonoid({ kind: "max", dtype: "i32", indexDType: "i32", tie: "first" });
    expect(combine(monoid, identityOf(monoid), [-(2 ** 31), 4])).toEqual([-(2 ** 31), 4]);
  });
});

describe("welford", () => {
  const monoid = welfordMonoid("f64");
  it("is mean and population variance in any bracketing", () => {
    fc.assert(
      fc.property(values, fc.nat(100), (xs, split) => {
        const mean = xs.reduce((a, b) => a + b, 0) / xs.length;
        const variance = xs.reduce((s, x) => s + (x - mean) ** 2, 0) / xs.length;
        const tuples = [identityOf(monoid), ...xs.map((x) => [1, x, 0])];
        const [m, v] = finish(monoid, reduceTree(monoid, tuples, split));
        expectClose(m!, mean);
        expectClose(v!, variance);
      }),
    );
  });
});
