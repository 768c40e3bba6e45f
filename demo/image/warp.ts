/**
 * Cuts a quadrilateral out of a picture and straightens it: the projective map from the unit square
 * to the quadrilateral in closed form (Heckbert, "Fundamentals of Texture Mapping and Image
 * Warping", 1989, section 2.2.3), sampled with the cubic convolution kernel of Keys (1981, a = -0.75,
 * OpenCV's INTER_CUBIC), edge pixels repeated outside the picture.
 */
import { distance, type Point, type Quad } from "./geometry.ts";
import { createImage, type Image } from "./image.ts";

/** The straightened content of `quad`, as wide and high as its longest opposite sides. */
export function cropQuad(image: Image, quad: Quad): Image {
  const [topLeft, topRight, bottomRight, bottomLeft] = quad;
  const width = Math.max(distance(topLeft, topRight), distance(bottomLeft, bottomRight));
  const height = Math.max(distance(topLeft, bottomLeft), distance(topRight, bottomRight));
  const out = createImage(Math.max(1, Math.round(width)), Math.max(1, Math.round(height)));
  const map = squareToQuad(quad);
  const pixel = new Float64Array(3);
  for (let y = 0; y < out.height; y++) {
    for (let x = 0; x < out.width; x++) {
      const at = map(x / out.width, y / out.height);
      sampleCubic(image, at, pixel);
      for (let c = 0; c < 3; c++) {
        out.data[(y * out.width + x) * 3 + c] = Math.min(255, Math.max(0, Math.round(pixel[c]!)));
      }
    }
  }
  return out;
}

/** The projective map that takes (0,0) (1,0) (1,1) (0,1) to the corners of the quadrilateral. */
export function squareToQuad([p0, p1, p2, p3]: Quad): (u: number, v: number) => Point {
  const sx = p0.x - p1.x + p2.x - p3.x;
  const sy = p0.y - p1.y + p2.y - p3.y;
  const dx1 = p1.x - p2.x;
  const dy1 = p1.y - p2.y;
  const dx2 = p3.x - p2.x;
  const dy2 = p3.y - p2.y;
  const det = dx1 * dy2 - dx2 * dy1;
  // A degenerate quadrilateral has no projective map; its affine part still samples inside it.
  const g = det === 0 ? 0 : (sx * dy2 - dx2 * sy) / det;
  const h = det === 0 ? 0 : (dx1 * sy - sx * dy1) / det;
  const a = p1.x - p0.x + g * p1.x;
  const b = p3.x - p0.x + h * p3.x;
  const d = p1.y - p0.y + g * p1.y;
  const e = p3.y - p0.y + h * p3.y;
  return (u, v) => {
    const w = g * u + h * v + 1;
    return { x: (a * u + b * v + p0.x) / w, y: (d * u + e * v + p0.y) / w };
  };
}

function sampleCubic(image: Image, at: Point, out: Float64Array): void {
  const x0 = Math.floor(at.x);
  const y0 = Math.floor(at.y);
  const wx = cubicWeights(at.x - x0);
  const wy = cubicWeights(at.y - y0);
  out.fill(0);
  for (let j = 0; j < 4; j++) {
    const row = clamp(y0 - 1 + j, image.height) * image.width;
    for (let i = 0; i < 4; i++) {
      const weight = wy[j]! * wx[i]!;
      const from = (row + clamp(x0 - 1 + i, image.width)) * 3;
      for (let c = 0; c < 3; c++) out[c]! += weight * image.data[from + c]!;
    }
  }
}

/** Weights of the pixels at -1, 0, 1, 2 for a position t in [0, 1) between 0 and 1. */
function cubicWeights(t: number): readonly number[] {
  const a = -0.75;
  const near = (d: number) => ((a + 2) * d - (a + 3)) * d * d + 1;
  const far = (d: number) => a * (((d - 5) * d + 8) * d - 4);
  return [far(1 + t), near(t), near(1 - t), far(2 - t)];
}

function clamp(index: number, size: number): number {
  return Math.min(Math.max(index, 0), size - 1);
}
