/**
 * Connected components of a thresholded map: 8-connected pixels above the threshold, found by an
 * explicit-stack flood fill. Each component is returned by the pixels on its rim, which is all that
 * its hull needs.
 */
import type { Point } from "../image/geometry.ts";

/** A map of scores in [0, 1], row-major. */
export interface ScoreMap {
  readonly width: number;
  readonly height: number;
  readonly data: Float32Array;
}

/** One component: its rim pixels and how many pixels it has in all. */
export interface Component {
  readonly rim: readonly Point[];
  readonly pixels: number;
}

/** The components of the pixels above `threshold`, in the order of their first pixel. */
export function findComponents(map: ScoreMap, threshold: number): readonly Component[] {
  const open = new Uint8Array(map.data.length);
  for (let i = 0; i < open.length; i++) open[i] = map.data[i]! > threshold ? 1 : 0;
  const inside = open.slice();
  const components: Component[] = [];
  for (let i = 0; i < open.length; i++) {
    if (open[i] === 1) components.push(flood(map, inside, open, i));
  }
  return components;
}

function flood(map: ScoreMap, inside: Uint8Array, open: Uint8Array, start: number): Component {
  const stack = [start];
  const rim: Point[] = [];
  let pixels = 0;
  open[start] = 0;
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    pixels++;
    const x = at % map.width;
    const y = (at - x) / map.width;
    let neighboursInside = 0;
    for (let ny = Math.max(0, y - 1); ny <= Math.min(map.height - 1, y + 1); ny++) {
      for (let nx = Math.max(0, x - 1); nx <= Math.min(map.width - 1, x + 1); nx++) {
        const next = ny * map.width + nx;
        neighboursInside += inside[next]!;
        if (open[next] === 0) continue;
        open[next] = 0;
        stack.push(next);
      }
    }
    if (neighboursInside < 9) rim.push({ x, y });
  }
  return { rim, pixels };
}
