/**
 * Which points of a statement's loops a check by samples looks at: every corner of the domain, both
 * sides of every tile boundary and tail along each loop, and random ones. A domain that is no larger
 * than that is taken whole.
 */
import type { Statement } from "../region/nest.ts";
import type { TileFactor } from "../schedule/states/tile-factors.ts";
import { variablesOf } from "../semantics/index-expr.ts";
import type { Rng } from "../support/rng.ts";
import type { StatementSampler } from "./sample-statement.ts";

export type { TileFactor };

/** Random points of a domain that is not taken whole. */
export const randomPoints = 256;
/** Draws until that many are different: the domain has at least twice as many points. */
const mostDraws = 8 * randomPoints;
/** Draws with the other loops at random for every edge of one. */
const drawsOfOneEdge = 2;
/** Loops whose corners are combined; more have their ends taken one by one. */
const cornerLoops = 6;

type Point = readonly number[];

/** Whether an element may be written at more than one point: a scatter. */
export function writesAgain({ writes, indirects }: Statement): boolean {
  const loaded = new Set(indirects.map((v) => v.name));
  return writes.some(
    (w) => w.combine !== "overwrite" || [...variablesOf(...w.index)].some((n) => loaded.has(n)),
  );
}

/** A point of the box around the domain; undefined where a loop has no trips. */
export function drawPoint(
  sampler: StatementSampler,
  rng: Rng,
  fixed: ReadonlyMap<number, (extent: number) => number> = new Map(),
): Point | undefined {
  const point: number[] = [];
  for (let axis = 0; axis < sampler.axes; axis++) {
    const extent = sampler.extent(axis, point);
    if (extent < 1) return undefined;
    const at = fixed.get(axis)?.(extent) ?? rng.integer(0, extent - 1);
    point.push(Math.min(Math.max(at, 0), extent - 1));
  }
  return point;
}

/** Points to check, each once. */
export function samplePoints(
  statement: Statement,
  sampler: StatementSampler,
  factors: readonly TileFactor[],
  rng: Rng,
): readonly Point[] {
  const whole = allPoints(sampler, 2 * randomPoints);
  if (whole) return whole;
  const points = new Map<string, Point>();
  const add = (point: Point | undefined): void => {
    if (point) points.set(point.join(), point);
  };
  const loops = statement.loops.filter((l) => l.kind !== "reduce").map((l) => l.name);
  const corners = Math.min(loops.length, cornerLoops);
  for (let mask = 0; mask < 2 ** corners; mask++) {
    const ends = Array.from({ length: corners }, (_, axis) => {
      const high = Math.floor(mask / 2 ** axis) % 2 === 1;
      return [axis, (extent: number) => (high ? extent - 1 : 0)] as const;
    });
    add(drawPoint(sampler, rng, new Map(ends)));
  }
  for (const [axis, loop] of loops.entries()) {
    const own = factors.filter((f) => f.statement === statement.name && f.loop === loop);
    for (const edge of edgesOf(own.map((f) => f.factor))) {
      for (let i = 0; i < drawsOfOneEdge; i++) {
        add(drawPoint(sampler, rng, new Map([[axis, edge]])));
      }
    }
  }
  const drawn = new Set<string>();
  for (let i = 0; i < mostDraws && drawn.size < randomPoints; i++) {
    const point = drawPoint(sampler, rng);
    if (point) drawn.add(point.join());
    add(point);
  }
  return [...points.values()];
}

type Edge = (extent: number) => number;

/** Ends of a loop, and of each tile size the first boundary, the last one and the tail's end. */
function edgesOf(factors: readonly number[]): readonly Edge[] {
  const ends: Edge[] = [() => 0, () => 1, (extent) => extent - 2, (extent) => extent - 1];
  for (const f of factors) {
    const tail = (extent: number): number => Math.floor((extent - 1) / f) * f;
    ends.push(
      () => f - 1,
      () => f,
      (e) => tail(e) - 1,
      (e) => tail(e),
    );
  }
  return ends;
}

/** Every point, in order, unless there are more than `most`. */
function allPoints(sampler: StatementSampler, most: number): readonly Point[] | undefined {
  if (countPoints(sampler, most) === undefined) return undefined;
  const points: Point[] = [];
  forEachPoint(sampler, (point) => points.push([...point]));
  return points;
}

/** How many points there are, of whose innermost loop none is gone through; undefined where it is more than `most`. */
export function countPoints(sampler: StatementSampler, most: number): number | undefined {
  const innermost = sampler.axes - 1;
  const point = new Array<number>(sampler.axes).fill(0);
  let count = 0;
  const walk = (axis: number): boolean => {
    const extent = axis > innermost ? 1 : sampler.extent(axis, point);
    if (axis >= innermost) {
      count += Math.max(0, extent);
      return count <= most;
    }
    for (let i = 0; i < extent; i++) {
      point[axis] = i;
      if (!walk(axis + 1)) return false;
    }
    return true;
  };
  return walk(0) ? count : undefined;
}

/** Every point, in order; the array is used again. */
export function forEachPoint(sampler: StatementSampler, visit: (point: Point) => void): void {
  const point = new Array<number>(sampler.axes).fill(0);
  const walk = (axis: number): void => {
    if (axis === sampler.axes) {
      visit(point);
      return;
    }
    const extent = sampler.extent(axis, point);
    for (let i = 0; i < extent; i++) {
      point[axis] = i;
      walk(axis + 1);
    }
  };
  walk(0);
}

/** Some of all points, told by their numbers in that order. */
export function pointsAt(sampler: StatementSampler, numbers: readonly number[]): readonly Point[] {
  const found = new Map<number, Point | undefined>(numbers.map((n) => [n, undefined]));
  let number = 0;
  forEachPoint(sampler, (point) => {
    if (found.has(number)) found.set(number, [...point]);
    number++;
  });
  return numbers.map((n) => found.get(n)!);
}
