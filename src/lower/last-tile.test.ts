import { describe, expect, it } from "vitest";
import type { ScheduledLoop } from "../schedule/scheduled-region.ts";
import { add, constant, mul, variable } from "../semantics/index-expr.ts";
import { lastTile } from "./last-tile.ts";

function loop(name: string, trips: number, mode: ScheduledLoop["mode"]): ScheduledLoop {
  return { name, extent: constant(trips), mode, kind: "space" } as ScheduledLoop;
}

/** Rows left of `extent` in tiles of `rows` times `lanes`. */
function restOf(extent: number, rows: number, lanes: number): number | undefined {
  const width = rows * lanes;
  const taken = add(mul(-width, variable("o")), mul(-lanes, variable("r")), mul(-1, variable("l")));
  const condition = { kind: "nonNegative", expr: add(extent - 1, taken) } as const;
  const tile = [loop("r", rows, "unroll"), loop("l", lanes, "vector")];
  const trips = Math.ceil(extent / width);
  return lastTile(tile, [condition], new Map([["o", { min: 0, max: trips - 1 }]]))?.rest;
}

describe("the last tile of a loop", () => {
  it("has as many rows as are left", () => {
    expect(restOf(196, 6, 1)).toBe(4);
    expect(restOf(7, 6, 1)).toBe(1);
    expect(restOf(5, 6, 1)).toBe(5);
    expect(restOf(40, 3, 8)).toBe(2);
  });
  it("is none where the loop is whole, or what is left is no number of vectors", () => {
    expect(restOf(196, 7, 1)).toBeUndefined();
    expect(restOf(42, 3, 8)).toBeUndefined();
  });
});
