/**
 * Text detection: picture in, quadrilaterals around lines of text out, in picture coordinates. The
 * model sees the picture resized so that both sides are multiples of 32, because it halves five
 * times.
 */
import { type Session, takeFloat32 } from "../../bench/sessions/session.ts";
import type { Point, Quad } from "../image/geometry.ts";
import type { Image } from "../image/image.ts";
import { resizeBilinear } from "../image/resize.ts";
import { imagenetNormalisation, imageToPlanes } from "./planes.ts";
import { findTextBoxes, type TextBox } from "./text-boxes.ts";

/** Longest side that the model is given, in pixels; small pictures are enlarged up to it. */
export const detectionSide = 800;

/** Text boxes of the picture, corners clamped to it. */
export async function detectText(session: Session, image: Image): Promise<readonly TextBox[]> {
  const [width, height] = detectionSize(image);
  const input = imageToPlanes(resizeBilinear(image, width, height), imagenetNormalisation);
  const outputs = await session.run({ [session.inputs[0]!.name]: input });
  const map = takeFloat32(outputs, session.outputs[0]!.name);
  return findTextBoxes({ width, height, data: map.data }).map((box) => ({
    score: box.score,
    quad: box.quad.map((p) => toPicture(p, image, width, height)) as unknown as Quad,
  }));
}

/** Width and height given to the model: the longest side `detectionSide`, both multiples of 32. */
export function detectionSize(image: {
  readonly width: number;
  readonly height: number;
}): [number, number] {
  const scale = detectionSide / Math.max(image.width, image.height);
  const snap = (side: number) => Math.max(32, Math.round((side * scale) / 32) * 32);
  return [snap(image.width), snap(image.height)];
}

function toPicture(p: Point, image: Image, width: number, height: number): Point {
  return {
    x: Math.min(Math.max((p.x * image.width) / width, 0), image.width),
    y: Math.min(Math.max((p.y * image.height) / height, 0), image.height),
  };
}
