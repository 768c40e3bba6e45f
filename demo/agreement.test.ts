import { describe, expect, test } from "vitest";
import { float32Tensor, type Session, type Tensors } from "../bench/sessions/session.ts";
import { agrees, pairSessions, toleranceOf, worstDifference } from "./agreement.ts";

const y = (...values: number[]): Tensors => ({
  y: float32Tensor([values.length], Float32Array.from(values)),
});

function fixed(outputs: Tensors): Session {
  return { inputs: [], outputs: [], run: async () => outputs, release: async () => {} };
}

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

describe("pairSessions", () => {
  const model = { name: "m", depth: 4, longestSum: 64 };
  const check = async (ours: number, theirs: number) => {
    const pair = pairSessions(model, fixed(y(ours)), fixed(y(theirs)));
    expect(await pair.run({})).toEqual(y(ours));
    await pair.run({});
    expect(pair.agreement().runs).toBe(2);
    return agrees(pair.agreement());
  };
  test("the tolerance is the rounding of the model's sums", async () => {
    expect(toleranceOf(model)).toBe(2 ** -23 * 32);
    expect(await check(1, 1 + 2 ** -20)).toBe(true);
    expect(await check(1, 1 + 2 ** -17)).toBe(false);
    expect(await check(Number.NaN, 1)).toBe(false);
  });
});
