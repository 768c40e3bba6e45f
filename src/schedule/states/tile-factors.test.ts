import { expect, it } from "vitest";
import { parseSchedule } from "../directive-text.ts";
import { tileFactors } from "./tile-factors.ts";

it("gives tiles of tiles in points of the loop that was cut first", () => {
  const schedule = parseSchedule(`schedule "r" for "wasm" {
    split S:i by 4 -> i0 i1
    split S:i0 by 8 -> i00 i01
    split S:i1 by 2 -> i10 i11
    tile S:(j, k) by (16, 3) -> (j0, k0) (j1, k1)
    vectorize S:i11
  }`);
  if (!schedule.ok) throw new Error("does not parse");
  const of = (loop: string, factor: number) => ({ statement: "S", loop, factor });
  expect(tileFactors(schedule.value)).toEqual([
    of("i", 4),
    of("i", 32),
    of("i", 2),
    of("j", 16),
    of("k", 3),
  ]);
});
