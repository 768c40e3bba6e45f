import { expect, it } from "vitest";
import { fromRef, refTensor } from "../semantics/tensor.ts";
import { compareOutputs } from "./actions/compare-outputs.ts";

it("says that rows may stand elsewhere where a model ranks numbers and its outputs differ, and asks only then", () => {
  const ports = { inputs: [], outputs: [{ name: "y", graphName: "y" }] };
  const rows = (...values: number[]) => refTensor("f32", [values.length], values);
  let asked = 0;
  const compared = (values: readonly number[], ranks: boolean) =>
    compareOutputs({
      ports: ports as never,
      found: { y: fromRef(rows(...values)) as never },
      expected: [rows(1, 2, 3)],
      tolerances: [1e-6],
      isStepped: false,
      isRanked: () => {
        asked++;
        return ranks;
      },
      against: "oracle",
    });
  const notesOf = (values: readonly number[], ranks: boolean) =>
    compared(values, ranks).failed.flatMap((d) => d.notes);
  expect(notesOf([1, 2, 3], true)).toEqual([]);
  expect(asked).toBe(0);
  expect(notesOf([2, 1, 3], true).join()).toMatch(/ranks numbers \(TopK/);
  expect(notesOf([2, 1, 3], false).join()).not.toMatch(/ranks/);
});
