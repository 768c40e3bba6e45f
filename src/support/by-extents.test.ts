import { expect, it } from "vitest";
import { ByExtents } from "./by-extents.ts";

it("finds what was kept of equal extents, and of no others", () => {
  const kept = new ByExtents<string>(4);
  kept.keep([[1, 2], undefined, []], "a");
  expect(kept.find([[1, 2], undefined, []])).toBe("a");
  for (const other of [
    [[1, 2], undefined],
    [[1, 2], [], []],
    [[1, 3], undefined, []],
    [[1, 2, 1], undefined, []],
    [undefined, undefined, []],
  ]) {
    expect(kept.find(other)).toBe(undefined);
  }
});

it("lets what was used least recently leave", () => {
  const kept = new ByExtents<number>(2);
  kept.keep([[1]], 1);
  kept.keep([[2]], 2);
  expect(kept.find([[1]])).toBe(1);
  kept.keep([[3]], 3);
  expect([1, 2, 3].map((n) => kept.find([[n]]))).toEqual([1, undefined, 3]);
});

it("does not follow a list that its owner changes, and no extent equals one that is no number", () => {
  const kept = new ByExtents<string>(2);
  const shape = [4];
  kept.keep([shape], "four");
  shape[0] = 5;
  expect(kept.find([shape])).toBe(undefined);
  expect(kept.find([[4]])).toBe("four");
  kept.keep([[Number.NaN]], "none");
  expect(kept.find([[Number.NaN]])).toBe(undefined);
});
