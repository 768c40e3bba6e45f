/**
 * The picture every step of the demo works on: 8-bit RGB, rows top to bottom, no padding, plus the
 * two operations that need no arithmetic. Decoding is in decode.ts, resampling in resize.ts and
 * warp.ts.
 */
import { invariant } from "../../src/support/invariant.ts";

/** 8-bit RGB picture; `data[(y * width + x) * 3 + channel]`. */
export interface Image {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

export function createImage(width: number, height: number): Image {
  invariant(width >= 1 && height >= 1, () => `image of ${width} x ${height} pixels`);
  return { width, height, data: new Uint8Array(width * height * 3) };
}

/** Turned by 180°: the order of the pixels is reversed. */
export function rotateHalfTurn(image: Image): Image {
  const out = createImage(image.width, image.height);
  const pixels = image.width * image.height;
  for (let p = 0; p < pixels; p++) copyPixel(image, p, out, pixels - 1 - p);
  return out;
}

/** Turned by 90° counter-clockwise: the right edge becomes the top. */
export function rotateQuarterTurn(image: Image): Image {
  const out = createImage(image.height, image.width);
  for (let y = 0; y < image.height; y++) {
    for (let x = 0; x < image.width; x++) {
      copyPixel(image, y * image.width + x, out, (image.width - 1 - x) * out.width + y);
    }
  }
  return out;
}

function copyPixel(from: Image, fromPixel: number, to: Image, toPixel: number): void {
  for (let c = 0; c < 3; c++) to.data[toPixel * 3 + c] = from.data[fromPixel * 3 + c]!;
}
