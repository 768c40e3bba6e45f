/**
 * Boxes to reading order: the picture is turned, in mind, to where most of its text stands upright;
 * boxes whose vertical extents overlap by half the lower one form a line; lines go from top to
 * bottom, boxes within a line from left to right.
 */
import { distance, orderCorners, type Point, type Quad } from "../image/geometry.ts";

/** Which way text runs in the picture; upright text runs right. */
export type Direction = "right" | "down" | "left" | "up";

interface Extent {
  readonly top: number;
  readonly bottom: number;
}

/** The items in lines, as seen with the prevailing direction (by length of text) to the right. */
export function readingOrder<T extends { readonly quad: Quad; readonly direction: Direction }>(
  items: readonly T[],
): T[][] {
  const lengths = { right: 0, down: 0, left: 0, up: 0 };
  for (const { direction, quad } of items) {
    lengths[direction] += Math.max(distance(quad[0], quad[1]), distance(quad[1], quad[2]));
  }
  const directions = Object.keys(lengths) as Direction[];
  const prevailing = directions.reduce((a, b) => (lengths[b] > lengths[a] ? b : a));
  const turned = items.map((item) => {
    const corners = item.quad.map((p) => toRight(p, prevailing)) as unknown as Quad;
    return { item, quad: orderCorners(corners) };
  });
  return groupIntoLines(turned).map((line) => line.map(({ item }) => item));
}

/** The point after the turn that makes text of the given direction run to the right. */
function toRight({ x, y }: Point, direction: Direction): Point {
  switch (direction) {
    case "right":
      return { x, y };
    case "down":
      return { x: y, y: -x };
    case "left":
      return { x: -x, y: -y };
    case "up":
      return { x: -y, y: x };
  }
}

/** Slanted text is compared by the heights at the boxes' facing ends. */
function groupIntoLines<T extends { readonly quad: Quad }>(items: readonly T[]): T[][] {
  const lines: T[][] = [];
  for (const item of [...items].sort((a, b) => centerY(a.quad) - centerY(b.quad))) {
    const line = lines.find((members) => members.some((m) => onOneLine(m.quad, item.quad)));
    if (line === undefined) lines.push([item]);
    else line.push(item);
  }
  for (const line of lines) line.sort((a, b) => a.quad[0].x - b.quad[0].x);
  return lines.sort((a, b) => meanY(a) - meanY(b));
}

function centerY(quad: Quad): number {
  return quad.reduce((sum, p) => sum + p.y, 0) / 4;
}

function meanY(line: readonly { readonly quad: Quad }[]): number {
  return line.reduce((sum, { quad }) => sum + centerY(quad), 0) / line.length;
}

function width(quad: Quad): number {
  return quad[1].x - quad[0].x;
}

function onOneLine(a: Quad, b: Quad): boolean {
  const [left, right] = a[0].x <= b[0].x ? [a, b] : [b, a];
  if (left[1].x - right[0].x > 0.5 * Math.min(width(left), width(right))) return false;
  const first: Extent = { top: left[1].y, bottom: left[2].y };
  const second: Extent = { top: right[0].y, bottom: right[3].y };
  const shared = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
  return shared > 0.5 * Math.min(first.bottom - first.top, second.bottom - second.top);
}
