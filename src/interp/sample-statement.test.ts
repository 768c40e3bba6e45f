import { describe, expect, it } from "vitest";
import { parseNests } from "../region/nest-reader.ts";
import { Rng } from "../support/rng.ts";
import { samplePoints } from "./sample-points.ts";
import { StatementSampler } from "./sample-statement.ts";

function samplerOf(statement: string, values: readonly number[], shape = [values.length]) {
  const program = parseNests(`nests "t" (x) -> (y) {
    input x : f32[${shape}] output y : f32[${shape}]
    statement S "" ${statement} }`);
  if (!program.ok) throw new Error(program.diagnostics[0]!.message);
  const item = program.value.items[0]!;
  if (item.kind !== "statement") throw new Error("no statement");
  const data = Float64Array.from(values, Math.fround);
  const source = { dtype: "f32", shape, element: (at: number) => data[at]! } as const;
  const sampler = new StatementSampler(item.statement, new Map(), () => ({
    ...source,
    repeats: { data, phase: 0 },
  }));
  return { sampler, statement: item.statement };
}

describe("one element of a statement", () => {
  it("is computed with whole folds, and nothing outside the guard", () => {
    const { sampler } = samplerOf(
      `{i in 4, reduce j in 4} where 2 - i >= 0 {
        y[i] = reduce<sum, f32, reassociates>((x[i - j] if i - j >= 0 else 0))
      }`,
      [1, 2, 3, 4],
    );
    expect(sampler.valuesAt([2])).toMatchObject([{ tensor: "y", offset: 2, value: 6 }]);
    expect(sampler.valuesAt([3])).toEqual([]);
  });

  it("has the error of its sum in any order, not of the order that is taken", () => {
    const sum = "{i in 3, reduce j in 3} { y[i] = reduce<sum, f32, reassociates>(x[j]) }";
    const { sampler } = samplerOf(sum, [1, -1, 1e-6]);
    const [element] = sampler.valuesAt([0]);
    const other = Math.fround(Math.fround(1 + 1e-6) - 1);
    expect(Math.abs(other - Number(element!.value))).toBeGreaterThan(0);
    expect(Math.abs(other - Number(element!.value))).toBeLessThan(element!.error);
    expect(element!.error).toBeLessThan(1e-5);
  });

  it("has no error where nothing is rounded, and a whole step where a branch may go either way", () => {
    const values = [0.5, -3, 2.5, 7];
    const exact = samplerOf("{i in 4} { y[i] = (max(neg(x[i]), f32(0))) }", values);
    expect(exact.sampler.valuesAt([1])).toMatchObject([{ value: 3, error: 0 }]);
    const floor = samplerOf("{i in 4} { y[i] = (floor(mul(x[i], f32(2)))) }", values);
    expect(floor.sampler.valuesAt([0])[0]!.error).toBe(1);
    const clear = samplerOf("{i in 4} { y[i] = (floor(mul(x[i], f32(1.1)))) }", values);
    expect(clear.sampler.valuesAt([0])[0]!.error).toBe(0);
  });

  it("has an error that cancellation makes large against the value", () => {
    const { sampler } = samplerOf(
      "{i in 2} { y[i] = (sub(mul(x[i], f32(1.1)), f32(1.1))) }",
      [1.0000001, 2],
    );
    const [near, far] = [0, 1].map((i) => sampler.valuesAt([i])[0]!);
    expect(near!.error / Math.abs(Number(near!.value))).toBeGreaterThan(0.1);
    expect(far!.error / Math.abs(Number(far!.value))).toBeLessThan(1e-6);
  });
});

describe("sampled points", () => {
  it("have all corners, both sides of each tile boundary, and 256 random ones", () => {
    const copy = "{i in 100, j in 70} { y[i, j] = (x[i, j]) }";
    const { sampler, statement } = samplerOf(copy, new Array<number>(7000).fill(1), [100, 70]);
    const tiles = [{ statement: "S", loop: "i", factor: 32 }];
    const points = samplePoints(statement, sampler, tiles, new Rng(1));
    const seen = new Set(points.map((p) => p.join()));
    expect(seen.size).toBe(points.length);
    expect(points.length).toBeGreaterThanOrEqual(256);
    for (const corner of ["0,0", "0,69", "99,0", "99,69"]) expect(seen).toContain(corner);
    const rows = new Set(points.map(([i]) => i));
    for (const row of [31, 32, 95, 96, 98, 99]) expect(rows).toContain(row);
  });

  it("are all points of a small domain", () => {
    const copy = "{i in 10, j in 7} { y[i, j] = (x[i, j]) }";
    const { sampler, statement } = samplerOf(copy, new Array<number>(70).fill(1), [10, 7]);
    expect(samplePoints(statement, sampler, [], new Rng(1))).toHaveLength(70);
  });
});
