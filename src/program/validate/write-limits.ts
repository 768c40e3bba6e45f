/**
 * What some statements write of a buffer at most: how many elements, and between which ends of each axis.
 * What writes fewer than a box has, or does not reach its ends, does not cover it, and no proof need be
 * looked for. In: statements. Out: counts and ends that are never too small.
 */
import { constantValue, type IndexExpr, sub, variablesOf } from "../../semantics/index-expr.ts";
import { type IndexRange, type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { childBodies } from "../walk.ts";

interface Box {
  readonly lo: readonly IndexExpr[];
  readonly hi: readonly IndexExpr[];
}

interface Written {
  /** In lanes of stores; Infinity: not known. */
  readonly most: number;
  /** What the places of the stores depend on. */
  readonly variables: ReadonlySet<string>;
}

const nothing: Written = { most: 0, variables: new Set() };
const known = new WeakMap<Statement, Map<string, Written>>();

/** Counts lanes of stores: an element of a buffer with several lanes counts as so many. */
export function mostWritten(s: Statement, buffer: string): number {
  return writtenBy(s, buffer).most;
}

export function mostWrittenBy(body: readonly Statement[], buffer: string): number {
  return together(body, buffer).most;
}

function writtenBy(s: Statement, buffer: string): Written {
  if (s.kind === "store") {
    if (s.buffer !== buffer) return nothing;
    return { most: s.value.lanes, variables: new Set(s.index.flatMap((e) => [...variablesOf(e)])) };
  }
  const bodies = childBodies(s);
  if (bodies.length === 0) return nothing;
  let ofBuffers = known.get(s);
  if (!ofBuffers) {
    ofBuffers = new Map();
    known.set(s, ofBuffers);
  }
  let written = ofBuffers.get(buffer);
  if (!written) {
    const inside = union(bodies.map((body) => together(body, buffer)));
    written = s.kind === "for" ? trips(s, inside) : inside;
    ofBuffers.set(buffer, written);
  }
  return written;
}

/** Trips that all write to the same places write no more than one. */
function trips(s: Extract<Statement, { kind: "for" }>, inside: Written): Written {
  if (inside.most === 0 || !inside.variables.has(s.variable)) return inside;
  return { ...inside, most: inside.most * (constantValue(s.extent) ?? Number.POSITIVE_INFINITY) };
}

/** A place that depends on a value that was read, or on what another statement of the list says, may be any. */
function together(body: readonly Statement[], buffer: string): Written {
  const all = union(body.map((s) => writtenBy(s, buffer)));
  const isFree = body.some((s) => s.kind === "letIndex" && all.variables.has(s.name));
  return isFree ? { ...all, most: Number.POSITIVE_INFINITY } : all;
}

function union(all: readonly Written[]): Written {
  const some = all.filter((w) => w.most > 0);
  if (some.length < 2) return some[0] ?? nothing;
  return {
    most: some.reduce((sum, w) => sum + w.most, 0),
    variables: new Set(some.flatMap((w) => [...w.variables])),
  };
}

/**
 * Elements that a box has at least when it has any: an axis whose width is not constant counts once. A
 * box without elements gives 0 or 1.
 */
export function leastElements({ lo, hi }: Box): number {
  return lo.reduce((n, from, axis) => {
    const width = constantValue(sub(hi[axis]!, from));
    return width === undefined ? n : n * Math.max(0, width);
  }, 1);
}

/** False where counts or ends show that the statements leave something of the box out, if it has elements. */
export function mayCover(
  body: readonly Statement[],
  { name, lanes }: Buffer,
  box: Box,
  ranges: IndexRanges,
): boolean {
  if (mostWrittenBy(body, name) < leastElements(box) * lanes) return false;
  const ends = box.lo.map((): IndexRange => ({ min: Infinity, max: -Infinity }));
  widen(body, name, { lanes, ranges, ends });
  return ends.every(({ min, max }, axis) => {
    const [lo, hi] = [constantValue(box.lo[axis]!), constantValue(box.hi[axis]!)];
    return (lo === undefined || min <= lo) && (hi === undefined || max >= hi - 1);
  });
}

interface Hull {
  readonly lanes: number;
  readonly ranges: IndexRanges;
  /** Least and greatest index of each axis so far. */
  readonly ends: IndexRange[];
}

function widen(body: readonly Statement[], buffer: string, hull: Hull): void {
  for (const s of body) {
    if (s.kind === "store") {
      if (s.buffer === buffer) widenBy(s, hull);
      continue;
    }
    const inside = s.kind === "for" ? { ...hull, ranges: withLoop(s, hull.ranges) } : hull;
    for (const child of childBodies(s)) widen(child, buffer, inside);
  }
}

function widenBy(s: Extract<Statement, { kind: "store" }>, { lanes, ranges, ends }: Hull): void {
  for (const [axis, e] of s.index.entries()) {
    const { min, max } = rangeOf(e, ranges);
    const beyond = axis === s.index.length - 1 ? s.value.lanes / lanes - 1 : 0;
    const end = ends[axis]!;
    ends[axis] = { min: Math.min(end.min, min), max: Math.max(end.max, max + beyond) };
  }
}

function withLoop(
  { variable, extent }: Extract<Statement, { kind: "for" }>,
  ranges: IndexRanges,
): IndexRanges {
  const max = Math.max(0, rangeOf(extent, ranges).max - 1);
  return new Map(ranges).set(variable, { min: 0, max });
}
