/**
 * A picture as the models see it: float32 planes in blue, green, red order (the models were trained
 * on OpenCV's channel order), each value scaled by 1/255, shifted and divided per plane.
 */
import { float32Tensor, type Tensor } from "../../bench/sessions/session.ts";
import type { Image } from "../image/image.ts";

/** value = (byte / 255 - mean) / deviation, one entry a plane in the order of the planes. */
export interface Normalisation {
  readonly mean: readonly [number, number, number];
  readonly deviation: readonly [number, number, number];
}

/** Detection: the ImageNet constants, applied to the planes in the order they stand. */
export const imagenetNormalisation: Normalisation = {
  mean: [0.485, 0.456, 0.406],
  deviation: [0.229, 0.224, 0.225],
};

/** Recognition and angle: bytes to [-1, 1]. */
export const symmetricNormalisation: Normalisation = {
  mean: [0.5, 0.5, 0.5],
  deviation: [0.5, 0.5, 0.5],
};

/**
 * The tensor [1, 3, height, paddedWidth]; columns right of the picture stay 0, the value the models
 * saw as padding in training.
 */
export function imageToPlanes(
  image: Image,
  { mean, deviation }: Normalisation,
  paddedWidth: number = image.width,
): Tensor {
  const { width, height, data } = image;
  const planes = new Float32Array(3 * height * paddedWidth);
  for (let plane = 0; plane < 3; plane++) {
    const channel = 2 - plane;
    const scale = 1 / (255 * deviation[plane]!);
    const shift = mean[plane]! / deviation[plane]!;
    for (let y = 0; y < height; y++) {
      const row = (plane * height + y) * paddedWidth;
      for (let x = 0; x < width; x++) {
        planes[row + x] = data[(y * width + x) * 3 + channel]! * scale - shift;
      }
    }
  }
  return float32Tensor([1, 3, height, paddedWidth], planes);
}
