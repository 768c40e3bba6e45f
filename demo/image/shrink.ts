/**
 * Shrinks a large scan by a whole factor, each output pixel the mean of a factor x factor block.
 * Resizing by bilinear samples alone would skip most pixels of a high-resolution scan and leave
 * ragged letters.
 */
import { createImage, type Image } from "./image.ts";

/** The picture with its longest side at most `limit` (a remainder at the right and bottom is cut). */
export function shrinkTo(image: Image, limit: number): Image {
  const factor = Math.ceil(Math.max(image.width, image.height) / limit);
  if (factor <= 1 || Math.min(image.width, image.height) < factor) return image;
  const out = createImage(Math.floor(image.width / factor), Math.floor(image.height / factor));
  for (let y = 0; y < out.height; y++) {
    for (let x = 0; x < out.width; x++) {
      for (let c = 0; c < 3; c++) {
        out.data[(y * out.width + x) * 3 + c] = blockMean(image, factor, [x, y, c]);
      }
    }
  }
  return out;
}

function blockMean(image: Image, factor: number, at: readonly [number, number, number]): number {
  const [x, y, c] = at;
  let sum = 0;
  for (let j = 0; j < factor; j++) {
    const row = ((y * factor + j) * image.width + x * factor) * 3 + c;
    for (let i = 0; i < factor; i++) sum += image.data[row + i * 3]!;
  }
  return Math.round(sum / (factor * factor));
}
