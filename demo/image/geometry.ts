/**
 * Plane geometry for text boxes: convex hull (Andrew's monotone chain), the rectangle of least area
 * around a point set (rotating calipers: one side of it lies on a side of the hull; Freeman and
 * Shapira, 1975), growing a rectangle, and testing whether a point lies in a convex polygon.
 * y grows downwards, as in pictures.
 */

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A rectangle at any angle: `u` is the unit vector along `width`; `height` runs along u turned by 90°. */
export interface Rectangle {
  readonly center: Point;
  readonly u: Point;
  readonly width: number;
  readonly height: number;
}

/** Corners in the order top-left, top-right, bottom-right, bottom-left of the text they hold. */
export type Quad = readonly [Point, Point, Point, Point];

export function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

/** The corners of the convex hull in order; points on a side are left out. */
export function convexHull(points: readonly Point[]): readonly Point[] {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  if (sorted.length < 3) return sorted;
  const lower = halfHull(sorted);
  const upper = halfHull(sorted.reverse());
  return [...lower.slice(0, -1), ...upper.slice(0, -1)];
}

function halfHull(sorted: readonly Point[]): Point[] {
  const chain: Point[] = [];
  for (const p of sorted) {
    while (chain.length >= 2 && turn(chain.at(-2)!, chain.at(-1)!, p) <= 0) chain.pop();
    chain.push(p);
  }
  return chain;
}

/** Twice the signed area of the triangle a b c. */
function turn(a: Point, b: Point, c: Point): number {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/** The rectangle of least area that holds all points (at least one). */
export function minAreaRectangle(points: readonly Point[]): Rectangle {
  const hull = convexHull(points);
  let best = boxAlong(hull, { x: 1, y: 0 });
  for (let i = 0; i < hull.length; i++) {
    const a = hull[i]!;
    const b = hull[(i + 1) % hull.length]!;
    const length = distance(a, b);
    if (length === 0) continue;
    const box = boxAlong(hull, { x: (b.x - a.x) / length, y: (b.y - a.y) / length });
    if (box.width * box.height < best.width * best.height) best = box;
  }
  return best;
}

/** The bounding rectangle with one side parallel to the unit vector u. */
function boxAlong(points: readonly Point[], u: Point): Rectangle {
  const along = points.map((p) => p.x * u.x + p.y * u.y);
  const across = points.map((p) => p.y * u.x - p.x * u.y);
  const [minS, maxS] = [Math.min(...along), Math.max(...along)];
  const [minT, maxT] = [Math.min(...across), Math.max(...across)];
  const s = (minS + maxS) / 2;
  const t = (minT + maxT) / 2;
  return {
    center: { x: s * u.x - t * u.y, y: s * u.y + t * u.x },
    u,
    width: maxS - minS,
    height: maxT - minT,
  };
}

/** Every side moved outwards by `margin`. */
export function growRectangle(r: Rectangle, margin: number): Rectangle {
  return { ...r, width: r.width + 2 * margin, height: r.height + 2 * margin };
}

/** The four corners in the order of `orderCorners`. */
export function rectangleCorners(r: Rectangle): Quad {
  const dx = { x: (r.u.x * r.width) / 2, y: (r.u.y * r.width) / 2 };
  const dy = { x: (-r.u.y * r.height) / 2, y: (r.u.x * r.height) / 2 };
  const corner = (s: number, t: number): Point => ({
    x: r.center.x + s * dx.x + t * dy.x,
    y: r.center.y + s * dx.y + t * dy.y,
  });
  return orderCorners([corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)]);
}

/** Of the two left-most corners the upper one, then clockwise as seen on the screen. */
export function orderCorners(corners: Quad): Quad {
  const byX = [...corners].sort((a, b) => a.x - b.x);
  const [topLeft, bottomLeft] = byX.slice(0, 2).sort((a, b) => a.y - b.y) as [Point, Point];
  const [topRight, bottomRight] = byX.slice(2).sort((a, b) => a.y - b.y) as [Point, Point];
  return [topLeft, topRight, bottomRight, bottomLeft];
}

/** Whether p lies inside or on the border of a convex polygon given in either direction. */
export function isInsideConvex(polygon: readonly Point[], p: Point): boolean {
  let sign = 0;
  for (let i = 0; i < polygon.length; i++) {
    const side = turn(polygon[i]!, polygon[(i + 1) % polygon.length]!, p);
    if (side === 0) continue;
    if (sign !== 0 && Math.sign(side) !== sign) return false;
    sign = Math.sign(side);
  }
  return true;
}
