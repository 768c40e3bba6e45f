/**
 * Real inputs for models of pictures: five parts of the demo's photograph and scan (sources and licences in
 * demo/images/README.md), in the size of a case, with three channels or one, in [-1, 1] as most nets take
 * them. Cases of other inputs have none.
 */
import { readFileSync } from "node:fs";
import type { InputSpec, ModelCase } from "../bench/models/table.ts";
import { float32Tensor, type Tensors } from "../bench/sessions/session.ts";
import { decodeImage } from "../demo/image/decode.ts";
import { createImage, type Image } from "../demo/image/image.ts";
import { resizeBilinear } from "../demo/image/resize.ts";
import { shrinkTo } from "../demo/image/shrink.ts";

/** Parts of a picture, as fractions of its width and height. */
interface Part {
  readonly file: string;
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

const parts: readonly Part[] = [
  { file: "page.png", left: 0, top: 0, right: 1, bottom: 1 },
  { file: "page.png", left: 0, top: 0.1, right: 0.5, bottom: 0.5 },
  { file: "page.png", left: 0.4, top: 0.5, right: 1, bottom: 1 },
  { file: "typewriter.png", left: 0, top: 0, right: 1, bottom: 1 },
  { file: "typewriter.png", left: 0.1, top: 0.1, right: 0.5, bottom: 0.3 },
];

const longestSide = 1400;
const pictures = new Map<string, Image>();

function pictureOf(file: string): Image {
  const known = pictures.get(file);
  if (known) return known;
  const bytes = readFileSync(new URL(`../demo/images/${file}`, import.meta.url));
  const image = shrinkTo(decodeImage(bytes), longestSide);
  pictures.set(file, image);
  return image;
}

function cut({ file, left, top, right, bottom }: Part): Image {
  const image = pictureOf(file);
  const [x, y] = [Math.floor(left * image.width), Math.floor(top * image.height)];
  const width = Math.floor((right - left) * image.width);
  const height = Math.floor((bottom - top) * image.height);
  const result = createImage(width, height);
  for (let row = 0; row < height; row++) {
    const from = ((y + row) * image.width + x) * 3;
    result.data.set(image.data.subarray(from, from + width * 3), row * width * 3);
  }
  return result;
}

/** [batch, channels, height, width], channels 1 or 3, of a size that pictures have. */
function isPicture({ type, dims }: InputSpec): boolean {
  const [, channels, height, width] = dims;
  const plane = dims.length === 4 && (channels === 1 || channels === 3);
  return plane && type === "float32" && Math.min(height!, width!) >= 24;
}

export function realInputs({ inputs }: ModelCase): readonly Tensors[] {
  const [only, ...others] = inputs;
  if (!only || others.length > 0 || !isPicture(only)) return [];
  const [batch, channels, height, width] = only.dims as [number, number, number, number];
  return parts.map((_, first) => {
    const data = new Float32Array(batch * channels * height * width);
    for (let n = 0; n < batch; n++) {
      const image = resizeBilinear(cut(parts[(first + n) % parts.length]!), width, height);
      const pixels = width * height;
      for (let c = 0; c < channels; c++) {
        const to = (n * channels + c) * pixels;
        for (let p = 0; p < pixels; p++) data[to + p] = image.data[p * 3 + c]! / 127.5 - 1;
      }
    }
    return { [only.name]: float32Tensor(only.dims, data) };
  });
}
