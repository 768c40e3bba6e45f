import { describe, expect, test } from "vitest";
import { toleranceOf, worstDifference } from "./compare.ts";
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
  test("equal infinities and NaNs agree", () => {
    const values = y(Number.NaN, Number.POSITIVE_INFINITY, -0);
    expect(worstDifference(values, values)).toBe(0);
  });
});

test("the tolerance is the rounding of the model's sums", () => {
  expect(toleranceOf({ depth: 4, longestSum: 64 })).toBe(2 ** -23 * 32);
});
