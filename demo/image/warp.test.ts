import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Quad } from "./geometry.ts";
import { createImage } from "./image.ts";
import { cropQuad, squareToQuad } from "./warp.ts";

describe("squareToQuad", () => {
  test("takes the square's corners to the quadrilateral's, and lines to lines", () => {
    const offset = fc.integer({ min: -8, max: 8 });
    fc.assert(
      fc.property(fc.array(offset, { minLength: 8, maxLength: 8 }), (d) => {
        const quad: Quad = [
          { x: 0 + d[0]!, y: 0 + d[1]! },
          { x: 90 + d[2]!, y: 0 + d[3]! },
          { x: 90 + d[4]!, y: 40 + d[5]! },
          { x: 0 + d[6]!, y: 40 + d[7]! },
        ];
        const map = squareToQuad(quad);
        const corners = [map(0, 0), map(1, 0), map(1, 1), map(0, 1)];
        for (const [i, p] of corners.entries()) {
          expect(p.x).toBeCloseTo(quad[i]!.x, 6);
          expect(p.y).toBeCloseTo(quad[i]!.y, 6);
        }
        const [a, b, c] = [map(0.1, 0.2), map(0.5, 0.4), map(0.9, 0.6)];
        const area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
        expect(Math.abs(area)).toBeLessThan(1e-6);
      }),
    );
  });
});

describe("cropQuad", () => {
  const image = createImage(60, 40);
  for (let y = 0; y < 40; y++) {
    for (let x = 0; x < 60; x++) image.data.fill(2 * x + 3 * y, (y * 60 + x) * 3).fill(0, 7200);
  }

  test("an upright box is the sub-picture, untouched", () => {
    const quad: Quad = [
      { x: 10, y: 5 },
      { x: 30, y: 5 },
      { x: 30, y: 15 },
      { x: 10, y: 15 },
    ];
    const crop = cropQuad(image, quad);
    expect([crop.width, crop.height]).toEqual([20, 10]);
    for (let y = 0; y < 10; y++) {
      for (let x = 0; x < 20; x++) {
        expect(crop.data[(y * 20 + x) * 3]).toBe(image.data[((y + 5) * 60 + x + 10) * 3]);
      }
    }
  });

  test("a slanted box follows the slope of the picture", () => {
    const quad: Quad = [
      { x: 12, y: 8 },
      { x: 36, y: 15 },
      { x: 33.5, y: 24.6 },
      { x: 9.5, y: 17.6 },
    ];
    const crop = cropQuad(image, quad);
    const map = squareToQuad(quad);
    for (let y = 0; y < crop.height; y++) {
      for (let x = 0; x < crop.width; x++) {
        const at = map(x / crop.width, y / crop.height);
        const found = crop.data[(y * crop.width + x) * 3]!;
        expect(Math.abs(found - (2 * at.x + 3 * at.y))).toBeLessThanOrEqual(1);
      }
    }
  });
});
