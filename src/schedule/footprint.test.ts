/** Footprints of tiles against listing every element that their loops touch. */
import { describe, expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { applySchedule } from "./apply.ts";
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

/** Positions that the loops give the access, one axis after the other; from the first element on. */
function listed(a: AccessFigures, loops: readonly LoopFigures[]): ReadonlySet<string> {
  let points = [a.axes.map(() => 0)];
  for (const { origin, unit, trips } of loops) {
    const moved = a.axes.map((x) => x.steps[origin]! * x.divisor * unit);
    if (moved.every((m) => m === 0)) continue;
    const next = new Map<string, number[]>();
    for (const p of points) {
      for (let i = 0; i < trips; i++) {
        const at = p.map((v, axis) => v + Math.round(moved[axis]! * i));
        next.set(at.join(), at);
      }
    }
    points = [...next.values()];
  }
  const inside = points
    .map((p) => p.map((v, axis) => Math.floor(v / a.axes[axis]!.divisor)))
    .filter((p) => p.every((v, axis) => v < a.axes[axis]!.extent));
  return new Set(inside.map((p) => p.join()));
}

/** Bytes of lines of those elements when the first one opens a line, row-major. */
function lineBytesOf(a: AccessFigures, elements: ReadonlySet<string>): number {
  const lines = new Set<number>();
  for (const e of elements) {
    const at = e === "" ? [] : e.split(",").map(Number);
    const position = at.reduce((n, v, axis) => n + v * a.strides[axis]!, 0);
    lines.add(Math.floor((position * a.bytes) / lineBytes));
  }
  return lines.size * lineBytes;
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
        expect(distinctElements(a, loops)).toBe(elements.size);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(20);
  });

  it("touch no more lines than are counted, packed or not, within a line a row", () => {
    for (const loops of tiles) {
      if (loops.reduce((n, l) => n * l.trips, 1) > 3000) continue;
      for (const plain of figures.accesses) {
        const last = plain.axes.length - 1;
        const packed = { tensor: plain.tensor, axis: last, width: 16 };
        for (const a of last > 0 ? [plain, packedAccess(plain, packed)] : [plain]) {
          const elements = listed(a, loops);
          const least = lineBytesOf(a, elements);
          const counted = footprintBytes(a, loops);
          const rows = new Set([...elements].map((e) => e.split(",").slice(0, -1).join())).size;
          expect(counted + rows * lineBytes).toBeGreaterThanOrEqual(least);
          expect(counted).toBeLessThanOrEqual(least + rows * lineBytes);
        }
      }
    }
  });
});
