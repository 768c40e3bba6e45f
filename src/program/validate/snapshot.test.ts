/** States from which everything goes on alike have one text, in whatever order their parts were noted. */
import { expect, it } from "vitest";
import { emptyKnown, learn } from "./clocks.ts";
import type { Granule, Mark } from "./shadow.ts";
import { snapshotOf } from "./snapshot.ts";

it("does not hang on the order in which reads of a place were noted", () => {
  const runners = [0, 1, 2].map((slot) => {
    const known = emptyKnown();
    learn(known, slot, 1);
    return { slot, known, arrived: false, issued: [], waitsAt: undefined };
  });
  const read = (slot: number): Mark => ({ slot, clock: 1, isAsync: false });
  const textOf = (reads: readonly Mark[]): string => {
    const tile: Granule[] = [{ write: undefined, reads: [...reads] }];
    const granules = [["tile", tile]] as const;
    return snapshotOf({ runners, cells: [], meetings: [], granules, present: () => undefined });
  };
  expect(textOf([read(0), read(1)])).toBe(textOf([read(1), read(0)]));
  expect(textOf([read(0), read(1)])).not.toBe(textOf([read(0), read(2)]));
});
