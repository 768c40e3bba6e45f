/**
 * Boxes to reading order: boxes whose vertical extents overlap by half the lower one form a line,
 * lines go from top to bottom, boxes within a line from left to right.
 */
import type { Quad } from "../image/geometry.ts";

interface Extent {
  readonly top: number;
  readonly bottom: number;
}

/** The items in lines; slanted text is compared by the heights at the boxes' facing ends. */
export function groupIntoLines<T extends { readonly quad: Quad }>(items: readonly T[]): T[][] {
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
