/**
 * Probability map of the detection model to text boxes, the post-processing of differentiable
 * binarization (Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", 2020,
 * section 3.5): threshold, one least rectangle a component, mean probability inside its hull as score (a
 * bent line leaves much background in its rectangle), and growing
 * by area * ratio / perimeter because the model was trained on shrunk text.
 */
import {
  convexHull,
  growRectangle,
  isInsideConvex,
  minAreaRectangle,
  type Point,
  type Quad,
  type Rectangle,
  rectangleCorners,
} from "../image/geometry.ts";
import { findComponents, type ScoreMap } from "./components.ts";

export interface BoxRules {
  /** Pixels above it belong to text. */
  readonly pixelThreshold: number;
  /** Boxes whose mean probability is below it are dropped. */
  readonly boxThreshold: number;
  readonly growRatio: number;
  /** Shortest side in map pixels, before growing. */
  readonly leastSide: number;
}

/** The values in common use with PP-OCR v4 detection models. */
export const defaultBoxRules: BoxRules = {
  pixelThreshold: 0.3,
  boxThreshold: 0.5,
  growRatio: 1.5,
  leastSide: 3,
};

/** A found piece of text in coordinates of the map. */
export interface TextBox {
  readonly quad: Quad;
  readonly score: number;
}

export function findTextBoxes(map: ScoreMap, rules: BoxRules = defaultBoxRules): TextBox[] {
  const boxes: TextBox[] = [];
  for (const component of findComponents(map, rules.pixelThreshold)) {
    const tight = minAreaRectangle(component.rim);
    if (Math.min(tight.width, tight.height) < rules.leastSide) continue;
    const score = meanInside(map, convexHull(component.rim));
    if (score < rules.boxThreshold) continue;
    const grown = growRectangle(tight, growth(tight, rules.growRatio));
    boxes.push({ quad: rectangleCorners(grown), score });
  }
  return boxes;
}

/** How far shrunk text is moved outwards on every side. */
function growth(r: Rectangle, ratio: number): number {
  return (r.width * r.height * ratio) / (2 * (r.width + r.height));
}

/** Mean of the map over the pixels whose centre lies in the polygon. */
function meanInside(map: ScoreMap, polygon: readonly Point[]): number {
  const bound = (values: readonly number[], size: number) => [
    Math.max(0, Math.floor(Math.min(...values))),
    Math.min(size - 1, Math.ceil(Math.max(...values))),
  ];
  const [x0, x1] = bound(
    polygon.map((p) => p.x),
    map.width,
  );
  const [y0, y1] = bound(
    polygon.map((p) => p.y),
    map.height,
  );
  let sum = 0;
  let count = 0;
  for (let y = y0!; y <= y1!; y++) {
    for (let x = x0!; x <= x1!; x++) {
      if (!isInsideConvex(polygon, { x, y })) continue;
      sum += map.data[y * map.width + x]!;
      count++;
    }
  }
  return count === 0 ? 0 : sum / count;
}
