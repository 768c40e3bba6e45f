import { encode as encodeJpeg } from "jpeg-js";
import { PNG } from "pngjs";
import { describe, expect, test } from "vitest";
import { decodeImage } from "./decode.ts";
import { createImage, type Image, rotateHalfTurn, rotateQuarterTurn } from "./image.ts";
import { resizeBilinear } from "./resize.ts";
import { shrinkTo } from "./shrink.ts";

/** A picture whose pixel (x, y) has the channels given by `paint`. */
function paint(
  width: number,
  height: number,
  color: (x: number, y: number) => readonly [number, number, number],
): Image {
  const image = createImage(width, height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) image.data.set(color(x, y), (y * width + x) * 3);
  }
  return image;
}

const gray = (v: number) => [v, v, v] as const;
const reds = (image: Image) => [...image.data].filter((_, i) => i % 3 === 0);

describe("decodeImage", () => {
  test("PNG, with transparency over white", () => {
    const png = new PNG({ width: 2, height: 1 });
    png.data = Buffer.from([10, 20, 30, 255, 0, 0, 0, 51]);
    const image = decodeImage(PNG.sync.write(png));
    expect(image).toEqual({
      width: 2,
      height: 1,
      data: Uint8Array.from([10, 20, 30, 204, 204, 204]),
    });
  });

  test("JPEG, to its own precision", () => {
    const data = Buffer.alloc(16 * 16 * 4, 128);
    const image = decodeImage(encodeJpeg({ width: 16, height: 16, data }, 95).data);
    expect([image.width, image.height]).toEqual([16, 16]);
    for (const value of image.data) expect(Math.abs(value - 128)).toBeLessThan(3);
  });

  test("refuses other formats", () => {
    expect(() => decodeImage(new TextEncoder().encode("GIF89a"))).toThrow(RangeError);
  });
});

describe("turning", () => {
  const image = paint(3, 2, (x, y) => gray(10 * y + x));
  test("half turn", () => expect(reds(rotateHalfTurn(image))).toEqual([12, 11, 10, 2, 1, 0]));
  test("quarter turn counter-clockwise", () => {
    const turned = rotateQuarterTurn(image);
    expect([turned.width, turned.height]).toEqual([2, 3]);
    expect(reds(turned)).toEqual([2, 12, 1, 11, 0, 10]);
  });
  test("two quarter turns are a half turn", () => {
    expect(rotateQuarterTurn(rotateQuarterTurn(image))).toEqual(rotateHalfTurn(image));
  });
});

describe("resizeBilinear", () => {
  test("doubling puts samples at quarter positions and clamps the edges", () => {
    const image = paint(2, 1, (x) => gray(100 * x));
    expect(reds(resizeBilinear(image, 4, 1))).toEqual([0, 25, 75, 100]);
  });
  test("halving averages the two middle pixels", () => {
    const image = paint(4, 2, (x) => gray(10 * x));
    expect(reds(resizeBilinear(image, 2, 1))).toEqual([5, 25]);
  });
  test("a plane of constant slope keeps its slope at any size", () => {
    const image = paint(40, 30, (x, y) => gray(2 * x + 3 * y));
    const small = resizeBilinear(image, 17, 11);
    for (let y = 0; y < 11; y++) {
      for (let x = 0; x < 17; x++) {
        const expected = 2 * (((x + 0.5) * 40) / 17 - 0.5) + 3 * (((y + 0.5) * 30) / 11 - 0.5);
        expect(Math.abs(small.data[(y * 17 + x) * 3]! - expected)).toBeLessThanOrEqual(0.5);
      }
    }
  });
  test("the same size is the same picture", () => {
    const image = paint(5, 4, (x, y) => [x, y, x * y]);
    expect(resizeBilinear(image, 5, 4)).toEqual(image);
  });
});

describe("shrinkTo", () => {
  test("averages blocks and drops the remainder", () => {
    const image = paint(5, 2, (x, y) => gray(10 * x + y));
    const small = shrinkTo(image, 3);
    expect([small.width, small.height]).toEqual([2, 1]);
    expect(reds(small)).toEqual([6, 26]); // means 5.5 and 25.5, rounded
  });
  test("leaves small pictures alone", () => {
    const image = paint(5, 2, () => gray(7));
    expect(shrinkTo(image, 5)).toBe(image);
  });
});
