import { describe, expect, it } from "vitest";
import { parseRegion } from "../../region/nest-reader.ts";
import { invariant } from "../../support/invariant.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { applySchedule } from "../apply.ts";
import { printSchedule } from "../directive-text.ts";
import { checkSchedule } from "../legality/legality.ts";
import { drawStates } from "./draw-states.ts";
import { footprintBytes } from "./footprint.ts";
import {
  type LoopFigures,
  loopFigures,
  type NestFigures,
  nestFigures,
  packedAxis,
} from "./nest-figures.ts";
import { sampleRegions } from "./sample-regions.test-support.ts";
import { microLoops, outerLoops, type TileChoice } from "./tile-choice.ts";
import { TileSpace } from "./tile-space.ts";

const cases = Object.entries(sampleRegions).flatMap(([name, region]) =>
  ["wasm", "x64-avx512"].map((target) => [name, target, region] as const),
);

/** The loops of a choice, as `loopFigures` reads them off the applied schedule. */
function choiceLoops(
  figures: NestFigures,
  choice: TileChoice,
  lanes: number,
): readonly LoopFigures[] {
  return [...outerLoops(figures, choice, choice, lanes), ...microLoops(figures, choice, lanes)];
}

describe.each(cases)("superposition of %s on %s", (_, targetName, region) => {
  const target = targets.get(targetName)!;
  const figures = nestFigures(region, region.statements[0]!);
  const lanes = target.vectorBytes / 4;
  const states = drawStates(region, target, {
    count: 25,
    rng: new Rng(1),
    parallel: true,
    inLanes: false,
  });

  it("its states are legal, and their figures are those of the applied schedule", () => {
    expect(states.length).toBeGreaterThan(8);
    for (const { choice, schedule } of states) {
      const applied = applySchedule(region, schedule);
      expect(applied.ok, printSchedule(schedule)).toBe(true);
      if (!applied.ok) continue;
      expect(checkSchedule(applied.value).ok, printSchedule(schedule)).toBe(true);
      const found = loopFigures(figures, applied.value.statements[0]!);
      expect(choiceLoops(figures, choice, lanes), printSchedule(schedule)).toEqual(found);
      const packed = [...applied.value.layouts].map(([t, layout]) => packedAxis(t, layout));
      expect(packed).toEqual(choice.packed);
    }
  });

  it("every state that was named is left or was taken by a constraint", () => {
    const space = new TileSpace(region, target, { parallel: true });
    let left = 0;
    for (const tile of space.microTiles()) {
      const outer = space.outerChoices(tile);
      left += outer.length;
      expect(outer.length).toBeLessThanOrEqual(space.outerCount(tile));
    }
    expect(space.funnel.left).toBe(left);
  });

  it("a footprint is at most what the loops touch and at least one line", () => {
    for (const { choice } of states.slice(0, 20)) {
      const loops = choiceLoops(figures, choice, lanes);
      for (const a of figures.accesses) {
        const bytes = footprintBytes(a, loops);
        const whole = a.axes.reduce((n, x) => n * x.extent, a.bytes);
        const points = loops.reduce((n, l) => n * l.trips, 1);
        expect(bytes).toBeGreaterThanOrEqual(64);
        expect(bytes).toBeLessThanOrEqual(64 * Math.min(points, whole));
      }
    }
  });
});

it("a product under a mask of truth values runs in lanes", () => {
  const space = new TileSpace(sampleRegions.maskedScores!, targets.get("wasm")!, {
    parallel: false,
  });
  expect(space.microTiles().some((t) => t.lane?.loop === 1 && t.lane.vectors === 4)).toBe(true);
});

it("a group's part of the weights is packed where blocks end with it", () => {
  const space = new TileSpace(sampleRegions.grouped!, targets.get("wasm")!, { parallel: false });
  const tiles = space.microTiles().filter((t) => t.lane?.loop === 1 && t.packed.length > 0);
  const widths = new Set(tiles.map((t) => t.packed[0]!.width));
  expect([...widths].sort((a, b) => a - b)).toEqual([4, 8, 16]);
});

it("sevens fill many registers where fours divide the extent, and no few", () => {
  const region = parseRegion(`region R group R anchor S0 inlined () epilogue () {
    input x : f32[28, 64] weight w : f32[64, 96] output y : f32[28, 96]
    statement S0 "" {i in 28, j in 96, reduce k in 64} {
      y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j]))
    }
  }`);
  invariant(region.ok, () => JSON.stringify(region));
  const countsOn = (name: string): Set<number> => {
    const space = new TileSpace(region.value, targets.get(name)!, { parallel: false });
    const rows = space.tilesInLanes().flatMap((t) => (t.lane?.loop === 1 ? t.rows : []));
    return new Set(rows.map((r) => r.count));
  };
  expect(countsOn("x64-avx512")).toContain(7);
  expect(countsOn("x64-avx2")).not.toContain(7);
});
