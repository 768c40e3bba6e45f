/**
 * Buffers written piecewise by several launches (the parts of a concatenation). Each launch's part is
 * thought of as a slab, lo <= index < hi along one axis and whole along the others. Where a part begins
 * its stores say, with all loops at their first trip; that it reaches to where the next one begins, and
 * the last one to the end, is asked of cover.ts. Parts may be written through different views, so ends
 * are counted in elements within each of the `before` runs that the axes before cut the buffer into.
 */
import { add, constant, type IndexExpr, mul } from "../../semantics/index-expr.ts";
import type { Buffer } from "../program.ts";
import { type Box, covers } from "./cover.ts";
import type { Facts } from "./facts.ts";
import { exactQuotient } from "./index-terms.ts";
import { coversByAxes } from "./product-cover.ts";
import type { Access } from "./sequential.ts";
import { flat, inOneView, type Part, refined, seenBy } from "./views.ts";
import { mayCover } from "./write-limits.ts";

interface Slab {
  readonly part: Part;
  readonly axis: number;
  /** Elements behind the axis, for each of its indices. */
  readonly inner: IndexExpr;
  /** First element that is written, within a run. */
  readonly lo: IndexExpr;
}

/** Whether the parts leave out no element of their buffer. */
export function partsCover(parts: readonly Part[], facts: Facts): boolean {
  const starts = parts.map((part) => startsOf(part, facts));
  const axes = starts.flatMap((lo, i) =>
    lo.flatMap((e, axis) => (e.key === "0" ? [] : [elementsBefore(parts[i]!.buffer, axis)])),
  );
  const inSlabs = [...new Set(axes)].some((before) => {
    const slabs = parts.flatMap((part, i) => slabOf(part, starts[i]!, before) ?? []);
    return slabsCover(slabs, facts);
  });
  return inSlabs || coverTogether(parts, facts);
}

/** The same by the sets of places along the axes of one view, or of one that all views are joined axes of. */
export function partsCoverByAxes(parts: readonly Part[]): boolean {
  const same = inOneView(parts) ?? refined(parts);
  if (!same || parts[0]!.buffer.layout) return false;
  return coversByAxes(
    same.flatMap((part) => part.body),
    same[0]!.buffer,
  );
}

/** Parts that interleave, as one body: through one view, or through several seen as one. */
function coverTogether(parts: readonly Part[], facts: Facts): boolean {
  const { buffer } = parts[0]!;
  const same = inOneView(parts);
  if (same) return coverAll(same, facts);
  if (parts.some(({ buffer: b }) => b.lanes !== buffer.lanes || b.layout)) return false;
  return coverAll(
    parts.map((part) => seenBy(part, flat(part.buffer))),
    facts,
  );
}

function coverAll(parts: readonly Part[], facts: Facts): boolean {
  const { buffer } = parts[0]!;
  const box = { lo: buffer.shape.map(() => constant(0)), hi: buffer.shape };
  const body = parts.flatMap((part) => part.body);
  return covers(body, buffer, box, facts);
}

function elementsBefore({ shape }: Buffer, axis: number): string {
  return mul(1, ...shape.slice(0, axis)).key;
}

/** For each axis the least index of the stores, or 0. */
function startsOf({ buffer, stores }: Part, facts: Facts): readonly IndexExpr[] {
  return buffer.shape.map((_, axis) => {
    const ends = new Map<string, IndexExpr>();
    for (const s of stores) {
      const end = s.facts.lowerEnd(s.index[axis]!, facts);
      ends.set(end.key, end);
    }
    const all = [...ends.values()];
    return all.find((e) => all.every((other) => facts.atLeast(other, e))) ?? constant(0);
  });
}

function slabOf(part: Part, starts: readonly IndexExpr[], before: string): Slab | undefined {
  const { shape } = part.buffer;
  const able = shape.flatMap((_, axis) =>
    elementsBefore(part.buffer, axis) === before ? [axis] : [],
  );
  const axis = able.find((a) => starts[a]!.key !== "0") ?? able.at(-1);
  if (axis === undefined) return undefined;
  const inner = mul(1, ...shape.slice(axis + 1));
  return { part, axis, inner, lo: mul(starts[axis]!, inner) };
}

/** The first elements of each of the runs that the axes before one cut a buffer into. */
export interface WrittenRuns {
  /** How many runs there are. */
  readonly before: string;
  /** Elements of each. */
  readonly end: IndexExpr;
}

/**
 * How far the parts reach from the begin, along an axis that parts begin behind: up to one of the places where the
 * stores of `all`, some of which may come later, begin.
 */
export function runsWritten(
  parts: readonly Part[],
  all: readonly Place[],
  facts: Facts,
): WrittenRuns | undefined {
  const starts = parts.map((part) => startsOf(part, facts));
  for (const before of new Set(all.map((p) => p.before))) {
    const slabs = parts.flatMap((part, i) => slabOf(part, starts[i]!, before) ?? []);
    const ends = all.filter((p) => p.before === before && facts.atLeast(p.end, 1));
    ends.sort((a, b) => (a.end.key === b.end.key ? 0 : facts.atLeast(a.end, b.end) ? -1 : 1));
    const end = ends.find((p) =>
      slabsCover(
        slabs.filter((s) => facts.atLeast(p.end, add(s.lo, 1))),
        facts,
        p.end,
      ),
    )?.end;
    if (end) return { before, end };
  }
  return undefined;
}

/** Where parts of a buffer may begin: elements within each run. */
export type Place = WrittenRuns;

/** Where stores into a view begin with all loops at their first trip, as elements within runs. */
export function placesOf({ shape }: Buffer, indices: readonly (readonly IndexExpr[])[]): Place[] {
  const found = new Map<string, Place>();
  for (const axis of shape.keys()) {
    const inner = mul(1, ...shape.slice(axis + 1));
    for (const index of indices) {
      const end = mul(constant(index[axis]!.constant), inner);
      const place = { before: mul(1, ...shape.slice(0, axis)).key, end };
      if (end.key !== "0") found.set(`${place.before} ${end.key}`, place);
    }
  }
  return [...found.values()];
}

/** Whether a read through a view stays within what has been written of each run. */
export function isWithin(
  { before, end }: WrittenRuns,
  { buffer, index, spans, facts }: Pick<Access, "buffer" | "index" | "spans" | "facts">,
): boolean {
  return buffer.shape.some((_, axis) => {
    if (elementsBefore(buffer, axis) !== before) return false;
    const room = exactQuotient(end, mul(1, ...buffer.shape.slice(axis + 1)));
    return room !== undefined && facts.atLeast(room, add(index[axis]!, spans[axis]!));
  });
}

function slabsCover(slabs: readonly Slab[], facts: Facts, total?: IndexExpr): boolean {
  const stretches = stretchesOf(slabs, facts, total);
  if (!stretches) return false;
  // What a part could reach is cheap to say, and shows of most lists of which parts are missing that they are.
  const { ranges } = facts;
  return (
    stretches.every(({ part, box }) => mayCover(part.body, part.buffer, box, ranges)) &&
    stretches.every(({ part, box }) => covers(part.body, part.buffer, box, facts))
  );
}

interface Stretch {
  readonly part: Part;
  readonly box: Box;
}

/** What each slab must write so that together they leave nothing out: up to where the next one begins. */
function stretchesOf(
  slabs: readonly Slab[],
  facts: Facts,
  upTo?: IndexExpr,
): readonly Stretch[] | undefined {
  const [first] = slabs;
  if (!first) return undefined;
  const total = upTo ?? mul(first.part.buffer.shape[first.axis]!, first.inner);
  const left = new Set(slabs);
  const stretches: Stretch[] = [];
  let at = constant(0);
  while (!facts.atLeast(at, total)) {
    const here = at;
    const slab = [...left].find((s) => s.lo.key === here.key);
    if (!slab) return undefined;
    left.delete(slab);
    const ends = [...left].flatMap((s) => (facts.atLeast(s.lo, add(here, 1)) ? [s.lo] : []));
    const next = ends.find((e) => ends.every((other) => facts.atLeast(other, e))) ?? total;
    const stretch = stretchOf(slab, next);
    if (!stretch) return undefined;
    stretches.push(stretch);
    at = next;
  }
  return stretches;
}

/** The slab up to `end`. */
function stretchOf({ part, axis, inner, lo }: Slab, end: IndexExpr): Stretch | undefined {
  const { shape } = part.buffer;
  const [from, to] = [lo, end].map((e) => exactQuotient(e, inner));
  if (!from || !to) return undefined;
  const box = {
    lo: shape.map((_, i) => (i === axis ? from : constant(0))),
    hi: shape.map((extent, i) => (i === axis ? to : extent)),
  };
  return { part, box };
}
