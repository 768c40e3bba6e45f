/**
 * The box of a tensor that one iteration of some outer loops touches: per axis the first element (over
 * the outer loops) and how many. Used to place tiles in nearer scopes.
 */
import type { ScheduledStatement } from "../schedule/scheduled-region.ts";
import { add, type IndexExpr, mul, splitLinear, sub, substitute } from "../semantics/index-expr.ts";
import { type IndexRanges, loopRange, rangeOf } from "../semantics/index-range.ts";

export interface TileBox {
  readonly offset: readonly IndexExpr[];
  readonly extents: readonly number[];
}

/**
 * The box that `indices` (of one tensor) cover while the first `depth` loops stand still; undefined when
 * an index is not linear in an inner loop or the extent has no bound.
 */
export function tileBox(
  scheduled: ScheduledStatement,
  depth: number,
  indices: readonly (readonly IndexExpr[])[],
  symbols: IndexRanges,
): TileBox | undefined {
  const inner = scheduled.loops.slice(depth);
  const ranges = new Map(symbols);
  for (const l of scheduled.loops) ranges.set(l.name, loopRange(l.extent, ranges));
  const rank = indices[0]?.length ?? 0;
  const offset: IndexExpr[] = [];
  const extents: number[] = [];
  for (let axis = 0; axis < rank; axis++) {
    const exprs = indices.map((index) => substitute(index[axis]!, scheduled.index));
    const first = lowestCorner(exprs[0]!, inner);
    if (!first) return undefined;
    let low = 0;
    let high = 0;
    for (const expr of exprs) {
      const range = rangeOf(sub(expr, first), ranges);
      low = Math.min(low, range.min);
      high = Math.max(high, range.max);
    }
    if (!Number.isFinite(low) || !Number.isFinite(high)) return undefined;
    offset.push(add(first, low));
    extents.push(high - low + 1);
  }
  return { offset, extents };
}

function lowestCorner(expr: IndexExpr, inner: ScheduledStatement["loops"]): IndexExpr | undefined {
  let corner = expr;
  for (const loop of inner) {
    const linear = splitLinear(corner, loop.name);
    if (!linear) return undefined;
    const { coefficient, rest } = linear;
    corner = coefficient < 0 ? add(rest, mul(coefficient, add(loop.extent, -1))) : rest;
  }
  return corner;
}
