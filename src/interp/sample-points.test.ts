import { describe, expect, it } from "vitest";
import { parseNests } from "../region/nest-reader.ts";
import { countPoints, forEachPoint, pointsAt } from "./sample-points.ts";
import { StatementSampler } from "./sample-statement.ts";

function samplerOf(loops: string, index: string, shape: string): StatementSampler {
  const parsed = parseNests(`nests "t" (x) -> (y) {
    input x : f32[1] output y : f32[${shape}]
    statement S "" {${loops}} { y[${index}] = (x[0]) } }`);
  if (!parsed.ok) throw new Error(parsed.diagnostics[0]!.message);
  const item = parsed.value.items[0]!;
  if (item.kind !== "statement") throw new Error("no statement");
  const extents = shape.split(", ").map(Number);
  return new StatementSampler(item.statement, new Map(), (tensor) => ({
    dtype: "f32",
    shape: tensor === "x" ? [1] : extents,
    element: () => 0,
  }));
}

function pointsOf(sampler: StatementSampler): readonly (readonly number[])[] {
  const points: number[][] = [];
  forEachPoint(sampler, (point) => points.push([...point]));
  return points;
}

describe("all points of a statement", () => {
  const triangle = samplerOf("i in 3, j in i + 1", "i, j", "3, 3");

  it("are counted and met in order, also where loops hang on others", () => {
    const points = [
      [0, 0],
      [1, 0],
      [1, 1],
      [2, 0],
      [2, 1],
      [2, 2],
    ];
    expect(pointsOf(triangle)).toEqual(points);
    expect(countPoints(triangle, 6)).toBe(6);
    expect(countPoints(triangle, 5)).toBeUndefined();
    expect(pointsAt(triangle, [4, 0, 4])).toEqual([points[4], points[0], points[4]]);
  });

  it("are one without loops, none where a loop has no trips", () => {
    const single = samplerOf("", "0", "1");
    expect([countPoints(single, 1), pointsOf(single)]).toEqual([1, [[]]]);
    const empty = samplerOf("i in 4, j in 0", "i, j", "4, 1");
    expect([countPoints(empty, 1), pointsOf(empty)]).toEqual([0, []]);
  });

  it("are counted without being gone through one by one", () => {
    const long = samplerOf("i in 2, j in 4503599627370496", "0", "1");
    expect(countPoints(long, Number.MAX_SAFE_INTEGER + 1)).toBe(2 ** 53);
    expect(countPoints(long, 2 ** 21)).toBeUndefined();
  });
});
