/** Footprints of tiles against listing every element that their loops touch. */
import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { applySchedule } from "../apply.ts";
import { drawStates } from "./draw-states.ts";
import { distinctElements, footprintBytes, lineBytes } from "./footprint.ts";
import {
  type AccessFigures,
  type LoopFigures,
  loopFigures,
  nestFigures,
  packedAccess,
} from "./nest-figures.ts";
import { sampleRegions } from "./sample-regions.test-support.ts";

/** Elements that the loops touch, from the first one on. */
function listed(a: AccessFigures, loops: readonly LoopFigures[]): readonly (readonly number[])[] {
  let points = [a.axes.map(() => 0)];
  for (const { origin, unit, trips } of loops) {
    const moved = a.axes.map((x) => x.steps[origin]! * unit);
    if (moved.every((m) => m === 0)) continue;
    const next = new Map<string, number[]>();
    for (const p of points) {
      for (let i = 0; i < trips; i++) {
        const at = p.map((v, axis) => v + moved[axis]! * i);
        next.set(at.join(), at);
      }
    }
    points = [...next.values()];
  }
  return points.filter((p) => p.every((v, axis) => v < a.axes[axis]!.extent));
}

/** Bytes of lines of those elements when the first one opens a line, row-major. */
function lineBytesOf(a: AccessFigures, elements: readonly (readonly number[])[]): number {
  const lines = elements.map((at) => {
    const position = at.reduce((n, v, axis) => n + v * a.strides[axis]!, 0);
    return Math.floor((position * a.bytes) / lineBytes);
  });
  return new Set(lines).size * lineBytes;
}

function rowsOf(elements: readonly (readonly number[])[]): number {
  return new Set(elements.map((e) => e.slice(0, -1).join())).size;
}

describe.each(Object.entries(sampleRegions))("tiles of %s", (_, region) => {
  const target = targets.get("x64-avx512") ?? targets.get("wasm")!;
  const figures = nestFigures(region, region.statements[0]!);
  const drawing = { count: 12, rng: new Rng(2), parallel: false, inLanes: false };
  const tiles = drawStates(region, target, drawing).flatMap(({ schedule }) => {
    const applied = applySchedule(region, schedule);
    if (!applied.ok) throw new Error("a state does not apply");
    const loops = loopFigures(figures, applied.value.statements[0]!);
    return loops.map((_, depth) => loops.slice(depth));
  });

  it("touch as many elements as listing finds", () => {
    let compared = 0;
    for (const loops of tiles) {
      if (loops.reduce((n, l) => n * l.trips, 1) > 3000) continue;
      for (const a of figures.accesses) {
        const elements = listed(a, loops);
        expect(distinctElements(a, loops)).toBe(elements.length);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(20);
  });

  it("touch no more lines than are counted, within a line a row", () => {
    for (const loops of tiles) {
      if (loops.reduce((n, l) => n * l.trips, 1) > 3000) continue;
      for (const a of figures.accesses) {
        const elements = listed(a, loops);
        const [least, rows] = [lineBytesOf(a, elements), rowsOf(elements)];
        const counted = footprintBytes(a, loops);
        expect(counted + rows * lineBytes).toBeGreaterThanOrEqual(least);
        expect(counted).toBeLessThanOrEqual(least + rows * lineBytes);
      }
    }
  });

  it("packed in blocks touch whole blocks at most", () => {
    const width = 16;
    for (const loops of tiles) {
      if (loops.reduce((n, l) => n * l.trips, 1) > 3000) continue;
      for (const plain of figures.accesses) {
        const axis = plain.axes.length - 1;
        const a = packedAccess(plain, { tensor: plain.tensor, axis, width });
        const elements = listed(plain, loops);
        const blocks = new Set(
          elements.map((e) => [Math.floor(e[axis]! / width), ...e.slice(0, -1)].join()),
        );
        const counted = footprintBytes(a, loops);
        expect(counted).toBeGreaterThanOrEqual(Math.ceil((elements.length * a.bytes) / lineBytes));
        expect(counted).toBeLessThanOrEqual(
          blocks.size * lineBytes * Math.ceil((width * a.bytes) / lineBytes),
        );
      }
    }
  });
});
