/**
 * Buffers written piecewise by several launches (the parts of a concatenation): each launch's part is
 * a slab, lo <= index < hi along one axis and whole along the others, and the slabs together must be
 * the buffer. Parts may be written through different views, so a slab is stated in elements: of each of
 * the `before` runs into which the axes before it cut the buffer, those from lo to hi.
 */
import { add, constant, type IndexExpr, mul, variablesOf } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { covers } from "./cover.ts";
import type { Facts } from "./facts.ts";
import type { Access } from "./sequential.ts";

export interface Slab {
  readonly before: string;
  /** Elements of a run. */
  readonly extent: IndexExpr;
  readonly lo: IndexExpr;
  readonly hi: IndexExpr;
}

/** What one launch writes. */
export interface Writes {
  readonly body: readonly Statement[];
  readonly buffer: Buffer;
  /** The stores into the buffer, with what is known where they stand. */
  readonly stores: readonly Access[];
  /** What is known outside the kernel. */
  readonly facts: Facts;
}

/** The part of the buffer that the launch surely writes, if it is a slab. */
export function slabOf({ body, buffer, stores, facts }: Writes): Slab | undefined {
  const { shape } = buffer;
  const ends = shape.map((extent, axis) => endsOf(stores, axis, extent));
  const whole = (axis: number): boolean => {
    const { lo, hi } = ends[axis]!;
    return lo.key === "0" && facts.atLeast(hi, shape[axis]!);
  };
  const partial = shape.map((_, axis) => axis).filter((axis) => !whole(axis));
  const [axis = 0] = partial;
  if (partial.length > 1 || shape.length === 0) return undefined;
  const lo = shape.map((_, i) => (i === axis ? ends[i]!.lo : constant(0)));
  const hi = shape.map((extent, i) => (i === axis ? ends[i]!.hi : extent));
  if (!covers(body, buffer, { lo, hi }, facts)) return undefined;
  const inner = mul(1, ...shape.slice(axis + 1));
  return {
    before: mul(1, ...shape.slice(0, axis)).key,
    extent: mul(shape[axis]!, inner),
    lo: mul(lo[axis]!, inner),
    hi: mul(hi[axis]!, inner),
  };
}

/** A proposal for the first element and the end of what the stores write along an axis. */
function endsOf(
  stores: readonly Access[],
  axis: number,
  extent: IndexExpr,
): { readonly lo: IndexExpr; readonly hi: IndexExpr } {
  const starts = stores.map(({ index, facts }) => smallest(index[axis]!, facts));
  const stops = stores.map(({ index, spans, facts }) =>
    largest(add(index[axis]!, spans[axis]!), facts, extent),
  );
  const known = (list: readonly (number | undefined)[]): list is readonly number[] =>
    !list.includes(undefined);
  return {
    lo: constant(known(starts) ? Math.min(...starts) : 0),
    hi: known(stops) ? constant(Math.max(...stops)) : extent,
  };
}

/** The greatest constant that e is proved to reach at least. */
function smallest(e: IndexExpr, facts: Facts): number | undefined {
  const { min, max } = rangeOf(e, facts.ranges);
  if (!Number.isSafeInteger(min) || !Number.isSafeInteger(max)) return undefined;
  let [low, high] = [min, max];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (facts.atLeast(e, middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The least constant that e is proved not to pass; undefined where that depends on parameters. */
function largest(e: IndexExpr, facts: Facts, extent: IndexExpr): number | undefined {
  if (variablesOf(extent).size > 0) return undefined;
  const negative = smallest(mul(-1, e), facts);
  return negative === undefined ? undefined : -negative;
}

/** Whether the slabs leave out nothing. */
export function slabsCover(slabs: readonly Slab[], facts: Facts): boolean {
  for (const { before, extent } of slabs) {
    let at = constant(0);
    const left = new Set(slabs.filter((s) => s.before === before));
    for (;;) {
      if (facts.atLeast(at, extent)) return true;
      const here = at;
      const next = [...left].find(
        (s) => facts.atLeast(here, s.lo) && facts.atLeast(s.hi, add(here, 1)),
      );
      if (!next) break;
      left.delete(next);
      at = next.hi;
    }
  }
  return false;
}
