import { describe, expect, it } from "vitest";
import type { DType } from "../../semantics/dtype.ts";
import { fromRef, makeRefData, tensorBytes } from "../../semantics/tensor.ts";
import { bytesOfFill, type Fill, FillBlocks, fillPeriod, repeatsOfFill } from "./fill.ts";

/** Element by element, as a fill is defined. */
function defined(fill: Fill, elements: number): Uint8Array {
  const { data, phase } = repeatsOfFill(fill, new FillBlocks());
  const whole = makeRefData(fill.dtype, elements);
  for (let i = 0; i < elements; i++) whole[i] = data[(i + phase) % data.length]!;
  return tensorBytes(fromRef({ dtype: fill.dtype, shape: [elements], data: whole }));
}

describe("bytesOfFill", () => {
  const dtypes: DType[] = ["f32", "bf16", "f64", "i8", "i64", "bool", "i4", "u4"];
  const sizes = [1, 7, 65_521, fillPeriod, fillPeriod + 3, 3 * fillPeriod + 1000];

  it.each(dtypes)("gives the elements of %s from any phase on", (dtype) => {
    const blocks = new FillBlocks();
    for (const phase of [0, 1, 8, 59_999]) {
      for (const elements of sizes) {
        const fill: Fill = { dtype, seed: 5, phase, sign: "any" };
        const equal = Buffer.compare(bytesOfFill(fill, elements, blocks), defined(fill, elements));
        expect([phase, elements, equal]).toEqual([phase, elements, 0]);
      }
    }
  });

  it("keeps recipes apart", () => {
    const blocks = new FillBlocks();
    const fills: Fill[] = [
      { dtype: "f32", seed: 1, phase: 3, sign: "any" },
      { dtype: "f32", seed: 2, phase: 3, sign: "any" },
      { dtype: "f32", seed: 1, phase: 3, sign: "positive" },
      { dtype: "i32", seed: 1, phase: 3, sign: "any", range: [0, 5] },
      { dtype: "i32", seed: 1, phase: 3, sign: "any", range: [0, 6] },
    ];
    for (const fill of [...fills, ...fills]) {
      expect(bytesOfFill(fill, 1000, blocks)).toEqual(defined(fill, 1000));
    }
  });
});
