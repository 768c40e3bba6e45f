/** What a region has to do on any machine: operations, points, bytes; and the shape of a price. */
import type { Region, Statement } from "../region/nest.ts";
import { dtypes } from "../semantics/dtype.ts";
import { constantValue, type IndexExpr, sub, variablesOf } from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import { scalarFlops } from "../semantics/scalar-expr.ts";

/** A time that no implementation on the target can beat, and what the schedule is expected to take. */
export interface RegionPrice {
  readonly estimateNs: number;
  readonly boundNs: number;
}

/**
 * Bytes of what the region's statements touch of the tensors that it shares with its surroundings, each
 * element once: of a tensor that is cut or gathered from, no more than there are points that do so.
 */
export function compulsoryBytes(region: Region, ranges: IndexRanges): number {
  const touched = new Map<string, number>();
  for (const statement of region.statements) {
    const { reads, finishReads, writes, indirects } = statement;
    const extents = loopExtents(statement, ranges);
    const sources = new Map(indirects.map((v) => [v.name, variablesOf(...v.access.index)]));
    const apart = new Map<string, (readonly IndexExpr[])[]>();
    const own = new Map<string, number>();
    for (const access of [...reads, ...finishReads, ...writes, ...indirects.map((v) => v.access)]) {
      const { role, shape } = region.tensors.get(access.tensor)!;
      if (role === "local") continue;
      const elements = elementsTouched(access.index, shape, { extents, sources, ranges });
      const others = apart.get(access.tensor) ?? [];
      const before = own.get(access.tensor) ?? 0;
      if (!others.every((other) => liesApart(access.index, other, extents))) {
        own.set(access.tensor, Math.max(elements, before));
        continue;
      }
      apart.set(access.tensor, [...others, access.index]);
      own.set(access.tensor, Math.min(before + elements, product(shape, ranges)));
    }
    for (const [name, elements] of own)
      touched.set(name, Math.max(elements, touched.get(name) ?? 0));
  }
  let bytes = 0;
  for (const [name, elements] of touched) {
    bytes += (elements * dtypes[region.tensors.get(name)!.dtype].bits) / 8;
  }
  return bytes;
}

/** Every candidate of a statement asks for the same. */
const known = new WeakMap<Statement, number>();

/** The same of what a statement reads point by point. */
export function bytesRead(region: Region, statement: Statement, ranges: IndexRanges): number {
  const before = known.get(statement);
  if (before !== undefined) return before;
  const reading = { ...statement, finishReads: [], writes: [], indirects: [] };
  const bytes = compulsoryBytes({ ...region, statements: [reading] }, ranges);
  known.set(statement, bytes);
  return bytes;
}

/** How many values each loop takes, and each integer that is loaded. */
function loopExtents(
  { loops, indirects }: Statement,
  ranges: IndexRanges,
): ReadonlyMap<string, number> {
  const most = (e: IndexExpr): number => Math.max(1, rangeOf(e, ranges).max);
  const extents = new Map(loops.map((l) => [l.name, most(l.extent)]));
  for (const { name, access, extent } of indirects) {
    const points = [...variablesOf(...access.index)].map((v) => extents.get(v) ?? 1);
    extents.set(
      name,
      Math.min(
        most(extent),
        points.reduce((a, b) => a * b, 1),
      ),
    );
  }
  return extents;
}

interface Domain {
  readonly extents: ReadonlyMap<string, number>;
  /** Loops that decide an integer that is loaded. */
  readonly sources: ReadonlyMap<string, ReadonlySet<string>>;
  readonly ranges: IndexRanges;
}

/** At most the tensor, at most the points that differ in what the index says. */
function elementsTouched(
  index: readonly IndexExpr[],
  shape: readonly IndexExpr[],
  { extents, sources, ranges }: Domain,
): number {
  const count = (names: Iterable<string>): number =>
    [...names].reduce((n, v) => n * (extents.get(v) ?? 1), 1);
  const points = (exprs: readonly IndexExpr[]): number => count(variablesOf(...exprs));
  const deciding = [...variablesOf(...index)].flatMap((v) => [...(sources.get(v) ?? [v])]);
  const byAxis = index.reduce(
    (n, e, axis) => n * Math.min(points([e]), product([shape[axis]!], ranges)),
    1,
  );
  return Math.min(byAxis, points(index), count(new Set(deciding)));
}

/** Whether two accesses over the same loops, a constant distance from each other, have no element in common. */
function liesApart(
  a: readonly IndexExpr[],
  b: readonly IndexExpr[],
  extents: ReadonlyMap<string, number>,
): boolean {
  const distances = a.map((e, axis) => constantValue(sub(e, b[axis]!)));
  if (distances.includes(undefined)) return false;
  return a.some((e, axis) => {
    const steps = e.terms.map(({ coefficient, key }) => ({
      coefficient,
      extent: extents.get(key),
    }));
    if (steps.some(({ extent }) => extent === undefined)) return false;
    const sorted = steps.sort((x, y) => Math.abs(y.coefficient) - Math.abs(x.coefficient));
    const moves = sorted.map((s) => ({ step: Math.abs(s.coefficient), most: s.extent! - 1 }));
    return !isReached(Math.abs(distances[axis]!), moves);
  });
}

/** Whether a distance is a sum of steps, each taken at most so often in either direction; the longest first. */
function isReached(
  distance: number,
  [first, ...rest]: readonly { readonly step: number; readonly most: number }[],
): boolean {
  if (!first) return distance === 0;
  const least = Math.floor(distance / first.step);
  return [least, least + 1].some(
    (n) => n <= first.most && isReached(Math.abs(distance - n * first.step), rest),
  );
}

/**
 * Multiply and add counted separately, per point of the domain; epilogues are not counted, and conversions are no
 * operations: instructions that multiply narrow numbers take them as they are.
 */
export function bodyFlops(statement: Statement): number {
  const work = statement.body.reduce((sum, e) => sum + scalarFlops(e), 0);
  return statement.reduction ? work + statement.body.length : work > 0 ? 1 : 0;
}

export function pointsOf(statement: Statement, ranges: IndexRanges): number {
  return product(
    statement.loops.map((l) => l.extent),
    ranges,
  );
}

export function product(extents: readonly IndexExpr[], ranges: IndexRanges): number {
  return extents.reduce((n, e) => n * Math.max(1, rangeOf(e, ranges).max), 1);
}

/** How sharply the longest of several limits is the time: they share the machine where they are alike. */
const sharpness = 8;

/** About the longest of some times, a little more where others are as long. */
export function longestOf(...times: readonly number[]): number {
  const longest = Math.max(...times);
  if (!(longest > 0) || longest === Infinity) return longest;
  const sum = times.reduce((n, t) => n + (t / longest) ** sharpness, 0);
  return longest * sum ** (1 / sharpness);
}
