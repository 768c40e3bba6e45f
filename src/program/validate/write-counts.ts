/**
 * How many elements of a buffer some statements write at most: what writes fewer than a box has does not
 * cover it, and no proof need be looked for. In: statements. Out: a count that is never too small.
 */
import { constantValue, type IndexExpr, sub, variablesOf } from "../../semantics/index-expr.ts";
import type { Statement } from "../statement.ts";
import { childBodies } from "../walk.ts";

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
export function leastElements({
  lo,
  hi,
}: {
  readonly lo: readonly IndexExpr[];
  readonly hi: readonly IndexExpr[];
}): number {
  return lo.reduce((n, from, axis) => {
    const width = constantValue(sub(hi[axis]!, from));
    return width === undefined ? n : n * Math.max(0, width);
  }, 1);
}
