/** What a region has to do on any machine: operations, points, bytes; and the shape of a price. */
import type { Region, Statement } from "../region/nest.ts";
import { dtypes } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import { scalarCost } from "../semantics/scalar-expr.ts";

/** A time that no implementation on the target can beat, and what the schedule is expected to take. */
export interface RegionPrice {
  readonly estimateNs: number;
  readonly boundNs: number;
}

/** Bytes of every tensor the region exchanges with its surroundings, each once. */
export function compulsoryBytes(region: Region, ranges: IndexRanges): number {
  let bytes = 0;
  for (const { shape, dtype, role } of region.tensors.values()) {
    if (role !== "local") bytes += (product(shape, ranges) * dtypes[dtype].bits) / 8;
  }
  return bytes;
}

/** Multiply and add counted separately, per point of the domain; epilogues are not counted. */
export function bodyFlops(statement: Statement): number {
  const work = statement.body.reduce((sum, e) => sum + scalarCost(e), 0);
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
