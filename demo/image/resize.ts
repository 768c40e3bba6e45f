/**
 * Bilinear resizing with the sampling convention the OCR models were trained with: pixel centres at
 * half-integers, source position (x + 0.5) * scale - 0.5, edges clamped, no low-pass filter (OpenCV's
 * INTER_LINEAR).
 */
import { createImage, type Image } from "./image.ts";

interface Tap {
  readonly low: number;
  readonly high: number;
  readonly weight: number;
}

export function resizeBilinear(image: Image, width: number, height: number): Image {
  const out = createImage(width, height);
  const columns = taps(image.width, width);
  const rows = taps(image.height, height);
  for (let y = 0; y < height; y++) {
    const top = rows[y]!.low * image.width;
    const bottom = rows[y]!.high * image.width;
    const v = rows[y]!.weight;
    for (let x = 0; x < width; x++) {
      const { low, high, weight } = columns[x]!;
      for (let c = 0; c < 3; c++) {
        const above = mix(
          image.data[(top + low) * 3 + c]!,
          image.data[(top + high) * 3 + c]!,
          weight,
        );
        const below = mix(
          image.data[(bottom + low) * 3 + c]!,
          image.data[(bottom + high) * 3 + c]!,
          weight,
        );
        out.data[(y * width + x) * 3 + c] = Math.round(mix(above, below, v));
      }
    }
  }
  return out;
}

/** For each output position the two source positions and the weight of the second. */
function taps(from: number, to: number): readonly Tap[] {
  return Array.from({ length: to }, (_, i) => {
    const at = Math.min(Math.max(((i + 0.5) * from) / to - 0.5, 0), from - 1);
    const low = Math.floor(at);
    return { low, high: Math.min(low + 1, from - 1), weight: at - low };
  });
}

function mix(a: number, b: number, weight: number): number {
  return a + (b - a) * weight;
}
