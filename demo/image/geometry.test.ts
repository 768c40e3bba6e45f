import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  convexHull,
  growRectangle,
  isInsideConvex,
  minAreaRectangle,
  type Point,
  type Rectangle,
  rectangleCorners,
} from "./geometry.ts";

const coordinate = fc.integer({ min: -50, max: 50 });
const points = fc.array(fc.record({ x: coordinate, y: coordinate }), {
  minLength: 1,
  maxLength: 20,
});

/** Area of the bounding rectangle at an angle, by turning the points. */
function areaAt(all: readonly Point[], angle: number): number {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  const xs = all.map((p) => p.x * c + p.y * s);
  const ys = all.map((p) => p.y * c - p.x * s);
  return (Math.max(...xs) - Math.min(...xs)) * (Math.max(...ys) - Math.min(...ys));
}

/** Position of p in the rectangle's own axes, from its centre. */
function local(r: Rectangle, p: Point): readonly [number, number] {
  const d = { x: p.x - r.center.x, y: p.y - r.center.y };
  return [d.x * r.u.x + d.y * r.u.y, d.y * r.u.x - d.x * r.u.y];
}

describe("convexHull", () => {
  test("holds every point and uses only given points", () => {
    fc.assert(
      fc.property(points, (all) => {
        const hull = convexHull(all);
        for (const p of hull) expect(all).toContainEqual(p);
        if (hull.length >= 3) for (const p of all) expect(isInsideConvex(hull, p)).toBe(true);
      }),
    );
  });
  test("leaves out points on sides", () => {
    const square = [0, 1, 2].flatMap((x) => [0, 1, 2].map((y) => ({ x, y })));
    expect(convexHull(square).length).toBe(4);
  });
});

describe("minAreaRectangle", () => {
  test("holds every point and no angle gives less area", () => {
    fc.assert(
      fc.property(points, (all) => {
        const r = minAreaRectangle(all);
        for (const p of all) {
          const [s, t] = local(r, p);
          expect(Math.abs(s)).toBeLessThanOrEqual(r.width / 2 + 1e-9);
          expect(Math.abs(t)).toBeLessThanOrEqual(r.height / 2 + 1e-9);
        }
        for (let k = 0; k < 90; k++) {
          expect(r.width * r.height).toBeLessThanOrEqual(areaAt(all, (k * Math.PI) / 180) + 1e-6);
        }
      }),
    );
  });
});

describe("rectangleCorners", () => {
  test("start at the top left and go clockwise", () => {
    const r = { center: { x: 10, y: 5 }, u: { x: 1, y: 0 }, width: 8, height: 2 };
    expect(rectangleCorners(r)).toEqual([
      { x: 6, y: 4 },
      { x: 14, y: 4 },
      { x: 14, y: 6 },
      { x: 6, y: 6 },
    ]);
  });
  test("give the same reading direction whichever side u names", () => {
    fc.assert(
      fc.property(fc.double({ min: -0.6, max: 0.6, noNaN: true }), (angle) => {
        const u = { x: Math.cos(angle), y: Math.sin(angle) };
        const center = { x: 3, y: 4 };
        const names: Rectangle[] = [
          { center, u, width: 20, height: 2 },
          { center, u: { x: -u.x, y: -u.y }, width: 20, height: 2 },
          { center, u: { x: -u.y, y: u.x }, width: 2, height: 20 },
        ];
        const [first, ...others] = names.map(rectangleCorners);
        for (const quad of others) {
          for (let i = 0; i < 4; i++) {
            expect(quad[i]!.x).toBeCloseTo(first![i]!.x, 9);
            expect(quad[i]!.y).toBeCloseTo(first![i]!.y, 9);
          }
        }
      }),
    );
  });
});

test("growRectangle moves each side by the margin", () => {
  const r = { center: { x: 0, y: 0 }, u: { x: 0.6, y: 0.8 }, width: 4, height: 2 };
  expect(growRectangle(r, 1.5)).toEqual({ ...r, width: 7, height: 5 });
});
