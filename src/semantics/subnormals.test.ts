import { describe, expect, it } from "vitest";
import { withoutSubnormals } from "./subnormals.ts";

const smallestNormal = 2 ** -126;
const f32 = (...values: readonly number[]) => ({
  dtype: "f32" as const,
  shape: [values.length],
  data: Float32Array.from(values),
});

describe("withoutSubnormals", () => {
  it("makes zeros of subnormal numbers, keeps their signs and all others", () => {
    const kept = [0, -0, 1, -smallestNormal, smallestNormal, Infinity, -Infinity, NaN];
    const given = f32(...kept, 2 ** -149, -(2 ** -127));
    const found = withoutSubnormals(given);
    expect([...(found.data as Float32Array)]).toEqual([...kept, 0, -0]);
    expect(given.data.at(-1)).toBe(-(2 ** -127));
  });

  it("copies nothing where there is none, and leaves other types alone", () => {
    const normal = f32(1, 0, -2);
    expect(withoutSubnormals(normal)).toBe(normal);
    const whole = { dtype: "i32" as const, shape: [1], data: Int32Array.of(1) };
    expect(withoutSubnormals(whole)).toBe(whole);
  });

  it("reads a view at its own place", () => {
    const data = new Float32Array([2 ** -140, 3, 2 ** -140]).subarray(1);
    const found = withoutSubnormals({ dtype: "f32", shape: [2], data });
    expect([...(found.data as Float32Array)]).toEqual([3, 0]);
  });
});
