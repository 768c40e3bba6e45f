import { describe, expect, it } from "vitest";
import { applySchedule } from "../schedule/apply.ts";
import { drawStates } from "../schedule/states/draw-states.ts";
import { loopFigures, nestFigures, packedAxis } from "../schedule/states/nest-figures.ts";
import {
  type CheapTiles,
  regionStates,
  tileEstimateNs,
  worthMeasuring,
} from "../schedule/states/region-states.ts";
import { sampleRegions } from "../schedule/states/sample-regions.test-support.ts";
import { microLoops, outerLoops } from "../schedule/states/tile-choice.ts";
import { TileSpace } from "../schedule/states/tile-space.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { coreFigures } from "./core-figures.ts";
import { NestPricer } from "./nest-price.ts";
import { priceRegion, tilePricer } from "./region-price.ts";

const cases = Object.entries(sampleRegions).flatMap(([name, region]) =>
  ["wasm", "x64-avx2"].map((target) => [name, target, region] as const),
);

describe.each(cases)("prices of %s on %s", (_, targetName, region) => {
  const target = targets.get(targetName)!;
  const core = coreFigures(target);
  const figures = nestFigures(region, region.statements[0]!);
  const lanes = target.vectorBytes / 4;
  const drawing = { count: 25, rng: new Rng(2), parallel: true, inLanes: false };

  it("no price is below the bound, and a knob's price is that of the applied schedule", () => {
    const pricer = tilePricer(region, target, core);
    for (const { choice, schedule } of drawStates(region, target, drawing)) {
      const applied = applySchedule(region, schedule);
      if (!applied.ok) throw new Error("a state does not apply");
      const { estimateNs, boundNs } = priceRegion(applied.value, target);
      expect(boundNs).toBeGreaterThan(0);
      expect(estimateNs).toBeGreaterThanOrEqual(boundNs);
      const around = outerLoops(figures, choice, choice, lanes);
      const loops = { around, micro: microLoops(figures, choice, lanes) };
      const tile = pricer.tile(figures, loops, choice.packed);
      expect(tile.totalNs(around)).toBeCloseTo(estimateNs, 6);
      expect(tile.nearNs(around)).toBeLessThanOrEqual(tile.totalNs(around));
      const floorNs = tile.floorNs(Infinity);
      expect(floorNs).toBeLessThanOrEqual(estimateNs + 1e-9);
      const leastNs = pricer.leastNs(figures, loops, choice.packed);
      expect(leastNs).toBeLessThanOrEqual(floorNs);
      for (const limitNs of [0, 0.5 * floorNs, floorNs, 2 * floorNs]) {
        const within = tile.floorNs(limitNs);
        if (floorNs <= limitNs) expect(within).toBe(floorNs);
        else expect(within).toBeGreaterThan(limitNs);
      }
    }
  });

  it("every term is finite and none is negative", () => {
    for (const { schedule } of drawStates(region, target, drawing)) {
      const applied = applySchedule(region, schedule);
      if (!applied.ok) throw new Error("a state does not apply");
      const packed = [...applied.value.layouts].map(([t, layout]) => packedAxis(t, layout)!);
      const loops = loopFigures(figures, applied.value.statements[0]!);
      const {
        core: tiles,
        around,
        traffic,
        total,
      } = new NestPricer(figures, target, core).price(loops, packed);
      for (const ns of [tiles, around, total, ...traffic]) {
        expect(Number.isFinite(ns)).toBe(true);
        expect(ns).toBeGreaterThanOrEqual(0);
      }
      expect(total).toBeGreaterThanOrEqual(Math.max(tiles, ...traffic));
    }
  });

  it("the estimate is the cheapest tile, with a limit as without", () => {
    const pricer = tilePricer(region, target, core);
    const space = new TileSpace(region, target, { parallel: false });
    const { outer } = space.plain();
    let best = Infinity;
    for (const micro of space.microTiles()) {
      const around = outerLoops(figures, micro, { outer }, lanes);
      const loops = { around, micro: microLoops(figures, micro, lanes) };
      const totalNs = pricer.tile(figures, loops, micro.packed).totalNs(around);
      best = Math.min(best, totalNs);
      const isInLanes = micro.lane !== undefined || micro.reduceLane !== undefined;
      if (!isInLanes) expect(pricer.leastScalarNs(figures)).toBeLessThanOrEqual(totalNs);
      const limited = pricer.leastNs(figures, loops, micro.packed, 0.9 * totalNs);
      expect(limited).toBeLessThanOrEqual(totalNs);
    }
    // Asked again, it begins with the best.
    const cheap: CheapTiles = new Map();
    for (const limitNs of [Infinity, 2 * best, best, 0.5 * best]) {
      const pricer = tilePricer(region, target, core);
      const estimate = tileEstimateNs(region, target, { pricer, limitNs, cheap });
      expect(estimate).toBe(Math.min(best, limitNs));
    }
  });

  it("narrowing keeps the cheapest state of all", () => {
    const pricer = tilePricer(region, target, core);
    const { states, funnel } = regionStates(region, target, { threads: 2, pricer, refundNs: 0 });
    const space = new TileSpace(region, target, { parallel: false });
    let best = Infinity;
    for (const micro of space.microTiles()) {
      const inOrder = outerLoops(figures, micro, space.plain(), lanes);
      const plain = { around: inOrder, micro: microLoops(figures, micro, lanes) };
      const floorNs = pricer.tile(figures, plain, micro.packed).floorNs(Infinity);
      let least = Infinity;
      for (const choice of space.outerChoices(micro)) {
        const around = outerLoops(figures, micro, choice, lanes);
        const loops = { around, micro: microLoops(figures, micro, lanes) };
        const totalNs = pricer.tile(figures, loops, micro.packed).totalNs(around);
        // Tiles are given up by their floors: no order is cheaper by nearly as much as stays in sight.
        least = Math.min(least, totalNs);
        best = Math.min(best, totalNs);
      }
      expect(floorNs).toBeLessThanOrEqual((1 + (worthMeasuring - 1) / 3) * least);
    }
    const serial = Math.min(...states.filter((s) => s.shares === "").map((s) => s.serialNs));
    expect(Math.min(serial, states[0]!.priceNs)).toBeLessThanOrEqual(best + 1e-9);
    const { legal, roofline, symmetry, occupancy, code, kept } = funnel;
    expect(roofline + symmetry + occupancy + code + kept).toBe(legal);
  });
});

it("an engine's tile is the largest whose sums and operands leave the registers uncrowded", () => {
  const region = sampleRegions.matmul!;
  const target = targets.get("wasm")!;
  const pricer = tilePricer(region, target, coreFigures(target));
  const { states } = regionStates(region, target, { threads: 1, pricer, refundNs: 0 });
  const { lane, rows } = states[0]!.choice!;
  const sums = rows.reduce((n, r) => n * r.count, lane!.vectors);
  const operands = lane!.vectors + rows.reduce((n, r) => n * r.count, 1);
  expect(sums).toBe(8);
  expect(sums + operands + 2).toBeLessThanOrEqual(16);
});
