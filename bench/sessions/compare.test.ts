import { describe, expect, test } from "vitest";
import { Rng } from "../../src/support/rng.ts";
import { countElements, toleranceOf, worstDifference } from "./compare.ts";
import { float32Tensor, type Tensors } from "./session.ts";

const y = (...values: number[]): Tensors => ({
  y: float32Tensor([values.length], Float32Array.from(values)),
});

describe("worstDifference", () => {
  test("is relative above 1 and absolute below", () => {
    expect(worstDifference(y(0.5, 200), y(0.25, 100))).toBe(1);
    expect(worstDifference(y(0.5), y(0.25))).toBe(0.25);
  });
  test("is infinite for NaN, infinities, other shapes and missing outputs", () => {
    const inf = Number.POSITIVE_INFINITY;
    expect(worstDifference(y(Number.NaN), y(1))).toBe(inf);
    expect(worstDifference(y(1), y(Number.NaN))).toBe(inf);
    expect(worstDifference(y(inf), y(1))).toBe(inf);
    expect(worstDifference(y(1, 2), y(1))).toBe(inf);
    expect(worstDifference({}, y(1))).toBe(inf);
    expect(worstDifference({ y: float32Tensor([1, 1], Float32Array.of(1)) }, y(1))).toBe(inf);
  });
  test("is relative to the range of an output that bytes are spread over", () => {
    const differ = (...values: number[]) =>
      worstDifference(y(...values), y(0, -8, Number.POSITIVE_INFINITY), { isQuantized: true });
    expect(differ(2, -8, Number.POSITIVE_INFINITY)).toBe(0.25);
    expect(differ(2, -8, 8)).toBe(Number.POSITIVE_INFINITY);
    expect(worstDifference(y(0.5), y(0.25), { isQuantized: true })).toBe(0.25);
  });
  test("equal infinities and NaNs agree", () => {
    const values = y(Number.NaN, Number.POSITIVE_INFINITY, -0);
    expect(worstDifference(values, values)).toBe(0);
  });
});

test("the tolerance grows with the model's rounding and with the elements looked at", () => {
  const rounding = { depth: 4, longestSum: 64 };
  expect(toleranceOf(rounding, 1)).toBe(2 ** -23 * 32);
  expect(toleranceOf(rounding, 1e6) / toleranceOf(rounding, 1)).toBeCloseTo(5.26, 2);
  expect(countElements({ ...y(1, 2), z: y(1).y! })).toBe(3);
});

test("the largest of n random sums stays within the tolerance, and near it", () => {
  const rng = new Rng(1);
  const terms = 256;
  let worst = 0;
  const count = 3000;
  for (let i = 0; i < count; i++) {
    const products = Array.from({ length: terms }, () => Math.fround(rng.normal() / 16));
    const exact = products.reduce((a, b) => a + b, 0);
    const rounded = products.reduce((a, b) => Math.fround(a + b), 0);
    worst = Math.max(worst, Math.abs(rounded - exact) / Math.max(1, Math.abs(exact)));
  }
  const tolerance = toleranceOf({ depth: 1, longestSum: terms }, count);
  expect(worst).toBeLessThan(tolerance);
  expect(worst).toBeGreaterThan(tolerance / 100);
});
