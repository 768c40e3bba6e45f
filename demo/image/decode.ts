/**
 * PNG and JPEG bytes to an Image. The format is read from the signature, not from a file name;
 * transparency is composed over white, as paper would be.
 */
import { decode as decodeJpeg } from "jpeg-js";
import { PNG } from "pngjs";
import { createImage, type Image } from "./image.ts";

/** Decodes a PNG or JPEG file; throws a RangeError for anything else. */
export function decodeImage(bytes: Uint8Array): Image {
  if (startsWith(bytes, [0x89, 0x50, 0x4e, 0x47])) {
    const png = PNG.sync.read(Buffer.from(bytes));
    return overWhite(png.width, png.height, png.data);
  }
  if (startsWith(bytes, [0xff, 0xd8, 0xff])) {
    const jpeg = decodeJpeg(bytes, { useTArray: true, maxResolutionInMP: 100 });
    return overWhite(jpeg.width, jpeg.height, jpeg.data);
  }
  throw new RangeError("the picture is neither a PNG nor a JPEG file; convert it to one of them");
}

function startsWith(bytes: Uint8Array, signature: readonly number[]): boolean {
  return signature.every((byte, i) => bytes[i] === byte);
}

function overWhite(width: number, height: number, rgba: Uint8Array): Image {
  const image = createImage(width, height);
  for (let p = 0; p < width * height; p++) {
    const alpha = rgba[p * 4 + 3]! / 255;
    for (let c = 0; c < 3; c++) {
      image.data[p * 3 + c] = Math.round(rgba[p * 4 + c]! * alpha + 255 * (1 - alpha));
    }
  }
  return image;
}
