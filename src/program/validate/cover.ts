/**
 * Coverage: does running some statements write every element of a box of a buffer? Needed for outputs
 * (every byte is written) and for reads of memory that the program itself fills.
 *
 * The question is handed down the statements. A store covers a box inside its lanes. A loop whose
 * variable moves the store along one axis covers the box when each trip covers its own window of it;
 * a loop that moves nothing, when it runs at least once and its first or last trip covers it. A branch
 * must cover with the branch taken, whichever it may be. A list covers a box that can be swept along
 * its axes in pieces, each covered by one statement. All bounds are symbolic (facts.ts), so one proof
 * holds for all parameters. What it leaves open is listed where sizes are constant (listed-cover.ts), of long
 * loops two trips that answer for all (alike-trips.ts); what is not proved is not covered.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  max,
  min,
  mul,
  splitLinear,
  sub,
  substitute,
  variable,
} from "../../semantics/index-expr.ts";
import { simplify } from "../../semantics/index-range.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { childBodies, mapBodies, mapStatements, substituteStatements } from "../walk.ts";
import { coversByTrips } from "./alike-trips.ts";
import type { Facts } from "./facts.ts";
import { coversByListing } from "./listed-cover.ts";
import { splitByResidue } from "./residues.ts";
import { leastElements, mayCover, mostWritten } from "./write-limits.ts";

/** Elements lo <= index < hi along each axis. */
export interface Box {
  readonly lo: readonly IndexExpr[];
  readonly hi: readonly IndexExpr[];
}

interface Question {
  readonly buffer: string;
  /** Lanes of one element of the buffer: a store of that many moves on by one. */
  readonly lanes: number;
  /** Each thread has its own: what other instances write does not count. */
  readonly isPrivate: boolean;
  readonly box: Box;
  readonly facts: Facts;
  readonly budget: { steps: number };
}

interface Window {
  readonly start: IndexExpr;
  readonly end: IndexExpr;
}

const maxSteps = 4000;

/** Whether the statements together write all of the box. */
export function covers(
  body: readonly Statement[],
  buffer: Buffer,
  box: Box,
  facts: Facts,
): boolean {
  const { name, lanes, scope } = buffer;
  const isPrivate = scope === "register" || scope === "local";
  const budget = { steps: maxSteps };
  const writing = apartFrom(facts, skeletonOf(body, name));
  const q = { buffer: name, lanes, isPrivate, box, facts, budget };
  if (!mayCover(writing, buffer, box, facts.ranges)) return isEmpty(q);
  if (coversList(writing, q) || coversByResidues(writing, q, 0)) return true;
  const listing = { lanes, runs: (extent: IndexExpr) => facts.atLeast(extent, 1) };
  return (
    !isPrivate && (coversByListing(writing, box, listing) || coversByTrips(writing, box, listing))
  );
}

/** Interleaved stores: the elements of each residue along an axis by themselves (residues.ts). */
function coversByResidues(body: readonly Statement[], q: Question, first: number): boolean {
  return q.box.lo.some((_, at) => {
    if (at < first) return false;
    const parts = splitByResidue(body, q, at, q.box);
    return parts?.every((part) => {
      const own = { ...q, box: part.box, budget: { steps: maxSteps } };
      return coversList(part.body, own) || coversByResidues(part.body, own, at + 1);
    });
  });
}

const skeletons = new WeakMap<readonly Statement[], Map<string, readonly Statement[]>>();

/** What leads to the stores into a buffer; the values stored are of no matter, only their lanes. */
function skeletonOf(body: readonly Statement[], buffer: string): readonly Statement[] {
  let known = skeletons.get(body);
  if (!known) {
    known = new Map();
    skeletons.set(body, known);
  }
  let skeleton = known.get(buffer);
  if (!skeleton) {
    const leads = (s: Statement): boolean => s.kind === "letIndex" || buffersWritten(s).has(buffer);
    skeleton = body.filter(leads).map((s) => {
      if (s.kind !== "store") return mapBodies(s, (inner) => skeletonOf(inner, buffer));
      const { dtype, lanes } = s.value;
      return { ...s, value: { kind: "literal", dtype, lanes, value: 0 } };
    });
    known.set(buffer, skeleton);
  }
  return skeleton;
}

const loopVariables = new WeakMap<Statement, ReadonlySet<string>>();

/** Variables of the loops at and below a statement. */
function loopVariablesOf(s: Statement): ReadonlySet<string> {
  const known = loopVariables.get(s);
  if (known) return known;
  const names = new Set<string>(s.kind === "for" ? [s.variable] : []);
  for (const inner of childBodies(s).flat()) {
    for (const name of loopVariablesOf(inner)) names.add(name);
  }
  loopVariables.set(s, names);
  return names;
}

/** The statements without loop variables that the facts, and so perhaps the box, know already. */
function apartFrom(facts: Facts, body: readonly Statement[]): readonly Statement[] {
  const clash = (s: Statement): boolean => [...loopVariablesOf(s)].some((n) => facts.has(n));
  if (!body.some(clash)) return body;
  return mapStatements(body, (s) => [s.kind === "for" ? renamed(s, facts) : s]);
}

const writers = new WeakMap<Statement, ReadonlySet<string>>();

/** Buffers that a statement stores to, anywhere inside. */
export function buffersWritten(s: Statement): ReadonlySet<string> {
  const known = writers.get(s);
  if (known) return known;
  const names = new Set<string>();
  if (s.kind === "store") names.add(s.buffer);
  for (const body of childBodies(s)) {
    for (const inner of body) for (const name of buffersWritten(inner)) names.add(name);
  }
  writers.set(s, names);
  return names;
}

function isEmpty({ box, facts }: Question): boolean {
  return box.lo.some((lo, axis) => facts.atLeast(lo, box.hi[axis]!)) || facts.isImpossible();
}

function coversList(list: readonly Statement[], q: Question): boolean {
  const body = withFreshIndices(list, q.facts);
  const able = body.filter((s) => buffersWritten(s).has(q.buffer));
  if (q.budget.steps-- <= 0) return false;
  if (able.length === 0) return isEmpty(q);
  const stores = able.filter((s) => s.kind === "store");
  if (stores.length > 1 && tileCovers(stores, q)) return true;
  if (able.some((s) => coversOne(s, q))) return true;
  if (isEmpty(q)) return true;
  if (able.length === 1) return false;
  const joined = joinLoops(able, q.facts);
  if (joined.length < able.length && coversList(joined, q)) return true;
  if (areOneBranch(able)) return branchesCover(able, q);
  return sweeps(able, q, 0) || branchesCover(able, q);
}

/** Copies of one branch, as unrolled trips leave them. */
function areOneBranch(able: readonly Statement[]): boolean {
  const keys = able.map((s) =>
    s.kind === "if" ? s.conditions.map((c) => `${c.kind} ${c.expr.key}`).join() : undefined,
  );
  return keys[0] !== undefined && keys.every((k) => k === keys[0]);
}

/** Loops of one extent as one loop: for coverage the order of the trips is of no matter. */
function joinLoops(able: readonly Statement[], facts: Facts): readonly Statement[] {
  const joined = new Map<string | Statement, Statement>();
  for (const s of able) {
    if (s.kind !== "for") {
      joined.set(s, s);
      continue;
    }
    const key = `${s.extent.key} ${s.mode.kind === "grid" ? s.mode.axis : ""}`;
    const first = joined.get(key);
    if (first?.kind !== "for") {
      // A name that no loop inside can have, as it cannot be spelled in a program.
      let name = `${s.variable}'`;
      while (facts.has(name)) name += "'";
      joined.set(key, withVariable(s, name));
      continue;
    }
    const { body } = withVariable(s, first.variable);
    joined.set(key, { ...first, body: [...first.body, ...body] });
  }
  return [...joined.values()];
}

/** Several statements of which a branch is one: each way through it, with the others beside it. */
function branchesCover(able: readonly Statement[], q: Question): boolean {
  const at = able.findIndex((s) => s.kind === "if");
  const branch = able[at];
  if (branch?.kind !== "if" || q.budget.steps-- <= 0) return false;
  const { facts } = q;
  const way = (body: readonly Statement[]): readonly Statement[] => able.toSpliced(at, 1, ...body);
  const { conditions } = branch;
  if (conditions.every((c) => facts.holds(c))) return coversList(way(branch.then), q);
  if (conditions.some((c) => facts.fails(c))) return coversList(way(branch.else), q);
  return (
    coversList(way(branch.then), { ...q, facts: facts.withConditions(conditions) }) &&
    negations(conditions).every((no) =>
      coversList(way(branch.else), { ...q, facts: facts.withNonNegative(no) }),
    )
  );
}

/** Indices bound by letIndex under a name that the facts use for something else get another name. */
function withFreshIndices(body: readonly Statement[], facts: Facts): readonly Statement[] {
  const taken = body.flatMap((s) => (s.kind === "letIndex" && facts.has(s.name) ? [s.name] : []));
  if (taken.length === 0) return body;
  const fresh = new Map(taken.map((name) => [name, variable(`${name}?`)] as const));
  return body
    .map((s) => mapBodies(s, (inner) => substituteStatements(inner, fresh)))
    .map((s) =>
      s.kind === "store" ? { ...s, index: s.index.map((e) => substitute(e, fresh)) } : s,
    );
}

/** Cuts the box along `axis` at the ends of the statements' windows, then along the later axes. */
function sweeps(able: readonly Statement[], q: Question, axis: number): boolean {
  if (q.budget.steps-- <= 0) return false;
  if (axis === q.box.lo.length) return false;
  const { facts } = q;
  const windows = able.map((s) => windowOf(s, q, axis));
  const hi = q.box.hi[axis]!;
  let at = q.box.lo[axis]!;
  for (let cut = 0; cut <= able.length; cut++) {
    if (facts.atLeast(at, hi)) return true;
    const here = at;
    const reach = windows.filter(
      (w) =>
        w && w.end.key !== here.key && facts.atLeast(here, w.start) && facts.atLeast(w.end, here),
    );
    const ends = new Map(reach.map((w) => [w!.end.key, w!.end]));
    // Whole tiles may reach into what another statement begins with.
    for (const w of windows)
      if (w && w.start.key !== here.key && facts.atLeast(w.start, here))
        ends.set(w.start.key, w.start);
    let next: IndexExpr | undefined;
    for (const end of ends.values()) {
      const stop = facts.atLeast(end, hi) ? hi : end;
      const part = { ...q, box: narrowed(q.box, axis, here, stop) };
      const some = able.filter((_, i) => {
        const w = windows[i];
        return w && facts.atLeast(here, w.start) && facts.atLeast(w.end, stop);
      });
      if (some.some((s) => coversOne(s, part)) || sweeps(some, part, axis + 1)) {
        next = stop;
        break;
      }
    }
    if (!next) return false;
    at = next;
  }
  return facts.atLeast(at, hi);
}

function narrowed(box: Box, axis: number, lo: IndexExpr, hi: IndexExpr): Box {
  return { lo: box.lo.with(axis, lo), hi: box.hi.with(axis, hi) };
}

/** A guess of what a statement covers along an axis; only proposes cuts, proves nothing. */
function windowOf(s: Statement, q: Question, axis: number): Window | undefined {
  if (s.kind === "store") {
    const start = s.index[axis]!;
    const span = axis === s.index.length - 1 ? s.value.lanes / q.lanes : 1;
    return { start, end: add(start, span) };
  }
  for (const body of childBodies(s)) {
    const able = body.filter((x) => buffersWritten(x).has(q.buffer));
    const window = able[0] && hullOf(able, windowOf(able[0], q, axis), { q, axis });
    if (!window) continue;
    if (s.kind !== "for") return window;
    const linear = splitLinear(window.start, s.variable);
    if (!linear) return undefined;
    if (linear.coefficient === 0) return window;
    const end = add(linear.rest, mul(linear.coefficient, s.extent));
    return linear.coefficient > 0
      ? { start: linear.rest, end }
      : { start: add(end, -linear.coefficient), end: add(linear.rest, 1) };
  }
  return undefined;
}

/** The window with those of stores beside it that stand at constant distances, as unrolled rows do. */
function hullOf(
  able: readonly Statement[],
  first: Window | undefined,
  { q, axis }: { readonly q: Question; readonly axis: number },
): Window | undefined {
  let hull = first;
  for (const s of able.slice(1)) {
    const window = s.kind === "store" ? windowOf(s, q, axis) : undefined;
    if (!hull || !window) continue;
    const before = constantValue(sub(hull.start, window.start)) ?? 0;
    const behind = constantValue(sub(window.end, hull.end)) ?? 0;
    if (before > 0) hull = { ...hull, start: window.start };
    if (behind > 0) hull = { ...hull, end: window.end };
  }
  return hull;
}

function coversOne(s: Statement, q: Question): boolean {
  if (q.budget.steps-- <= 0 || !buffersWritten(s).has(q.buffer)) return false;
  if (mostWritten(s, q.buffer) < leastElements(q.box) * q.lanes) return false;
  switch (s.kind) {
    case "store":
      return s.buffer === q.buffer && storeCovers(s, q);
    case "if":
      return branchCovers(s, q);
    case "when":
      return coversList(s.then, q) && coversList(s.else, q);
    case "for":
      if (q.isPrivate && s.mode.kind === "grid") return false;
      return loopCovers(renamed(s, q.facts), q);
    default:
      return false;
  }
}

const mostTileElements = 4096;

/**
 * Stores that stand at constant distances from each other, as unrolled loops leave them: they cover
 * the box that spans them when none of its elements is left out, and so any box inside.
 */
function tileCovers(stores: readonly Store[], q: Question): boolean {
  const { box, facts, lanes } = q;
  const base = stores[0]!.index;
  const placed = stores.flatMap((s) => {
    const at = s.index.map((e, axis) => constantValue(sub(e, base[axis]!)));
    return at.includes(undefined) ? [] : [{ at: at as number[], span: s.value.lanes / lanes }];
  });
  const last = base.length - 1;
  const from = base.map((_, axis) => Math.min(...placed.map((p) => p.at[axis]!)));
  const to = base.map((_, axis) =>
    Math.max(...placed.map((p) => p.at[axis]! + (axis === last ? p.span : 1))),
  );
  const size = to.reduce((n, end, axis) => n * (end - from[axis]!), 1);
  if (!Number.isInteger(size) || size > mostTileElements) return false;
  const inside = base.every(
    (e, axis) =>
      facts.atLeast(box.lo[axis]!, add(e, from[axis]!)) &&
      facts.atLeast(add(e, to[axis]!), box.hi[axis]!),
  );
  if (!inside) return false;
  const written = new Set<number>();
  for (const { at, span } of placed) {
    const first = at.reduce((n, v, axis) => n * (to[axis]! - from[axis]!) + v - from[axis]!, 0);
    for (let lane = 0; lane < span; lane++) written.add(first + lane);
  }
  return written.size === size;
}

function storeCovers(s: Store, { box, facts, lanes }: Question): boolean {
  return s.index.every((e, axis) => {
    const span = axis === s.index.length - 1 ? s.value.lanes / lanes : 1;
    return facts.atLeast(box.lo[axis]!, e) && facts.atLeast(add(e, span), box.hi[axis]!);
  });
}

function branchCovers(s: Extract<Statement, { kind: "if" }>, q: Question): boolean {
  const { facts } = q;
  if (s.conditions.every((c) => facts.holds(c))) return coversList(s.then, q);
  if (s.conditions.some((c) => facts.fails(c))) return coversList(s.else, q);
  const taken = { ...q, facts: facts.withConditions(s.conditions) };
  if (!coversList(s.then, taken)) return false;
  return negations(s.conditions).every((no) =>
    coversList(s.else, { ...q, facts: facts.withNonNegative(no) }),
  );
}

/** Ways in which a conjunction can fail, each an expression that is then >= 0. */
export function negations(conditions: readonly Condition[]): readonly IndexExpr[] {
  return conditions.flatMap((c) =>
    c.kind === "zero" ? [sub(c.expr, 1), sub(-1, c.expr)] : [sub(-1, c.expr)],
  );
}

type Loop = Extract<Statement, { kind: "for" }>;
type Store = Extract<Statement, { kind: "store" }>;

/** The loop with a variable that the facts do not know. */
function renamed(s: Loop, facts: Facts): Loop {
  if (!facts.has(s.variable)) return s;
  let name = `${s.variable}'`;
  while (facts.has(name)) name += "'";
  return withVariable(s, name);
}

function withVariable(s: Loop, name: string): Loop {
  const body = substituteStatements(s.body, new Map([[s.variable, variable(name)]]));
  return { ...s, variable: name, body };
}

function loopCovers(s: Loop, q: Question): boolean {
  const bases = movedAxes(s, q.buffer);
  if (bases.length === 0) {
    const backwards = reversed(s);
    const found = movedAxes(backwards, q.buffer);
    return found.length > 0 ? movesCover(backwards, q, found) : onceCovers(s, q);
  }
  return movesCover(s, q, bases);
}

/** The trips in the other order, which for coverage is of no matter. */
function reversed(s: Loop): Loop {
  const trip = sub(sub(s.extent, 1), variable(s.variable));
  return { ...s, body: substituteStatements(s.body, new Map([[s.variable, trip]])) };
}

function movesCover(s: Loop, q: Question, bases: readonly MovedAxis[]): boolean {
  const few = bases.slice(0, fewBases);
  return (
    few.some((base) => tripCovers(s, q, base)) ||
    few.some((b) => windowsCover(s, q, b)) ||
    piecesCover(s, q, bases) ||
    tripsCover(s, q)
  );
}

/** Several stores of the loop sweep one piece each of an axis. */
function piecesCover(s: Loop, q: Question, bases: readonly MovedAxis[]): boolean {
  const { facts, box } = q;
  return [...new Set(bases.map((b) => b.axis))].some((axis) => {
    const hi = box.hi[axis]!;
    let at = box.lo[axis]!;
    const here = bases.filter((b) => b.axis === axis);
    for (const [i, moved] of here.entries()) {
      const swept = add(moved.base, mul(moved.step, s.extent));
      const next = here[i + 1]?.base;
      const cut = next && facts.atLeast(swept, next) && facts.atLeast(next, at) ? next : swept;
      const begin = at;
      // Stores beside each other sweep to one end; a guard may end the sweep where the next one begins.
      for (const end of cut === swept ? [swept] : [swept, cut]) {
        if (!facts.atLeast(begin, moved.base) || !facts.atLeast(end, add(begin, 1))) continue;
        const isLast = facts.atLeast(end, hi);
        // The whole box is what was asked.
        if (isLast && begin === box.lo[axis]) continue;
        const piece = narrowed(box, axis, begin, isLast ? hi : end);
        if (!windowsCover(s, { ...q, box: piece }, moved)) continue;
        if (isLast) return true;
        at = end;
        break;
      }
    }
    return false;
  });
}

const mostTrips = 8;

/** The trips of a short loop together: those of a stride interleave. */
function tripsCover(s: Loop, q: Question): boolean {
  const count = constantValue(s.extent);
  if (count === undefined || count < 2 || count > mostTrips) return false;
  const trips = Array.from({ length: count }, (_, i) =>
    substituteStatements(s.body, new Map([[s.variable, constant(i)]])),
  );
  return coversList(trips.flat(), q);
}

/** A box no wider than the loop's step may lie in the window of one trip. */
function tripCovers(s: Loop, q: Question, { axis, step, base }: MovedAxis): boolean {
  const { facts, box } = q;
  const lo = box.lo[axis]!;
  const width = constantValue(sub(box.hi[axis]!, lo));
  if (width === undefined || width > step) return false;
  const trip = simplify(floorDiv(sub(lo, base), step), facts.ranges);
  if (!facts.atLeast(trip, 0) || !facts.atLeast(sub(s.extent, 1), trip)) return false;
  return coversList(substituteStatements(s.body, new Map([[s.variable, trip]])), q);
}

/** A loop that moves nothing covers what its last or first trip covers. */
function onceCovers(s: Loop, q: Question): boolean {
  if (!q.facts.atLeast(s.extent, 1)) return false;
  return [sub(s.extent, 1), constant(0)].some((trip) =>
    coversList(substituteStatements(s.body, new Map([[s.variable, trip]])), q),
  );
}

/** Places of a loop's stores that one may cover a box by itself, and that together may be its pieces. */
const [fewBases, mostPieces] = [6, 64] as const;

interface MovedAxis {
  readonly axis: number;
  readonly step: number;
  /** First element of trip 0. */
  readonly base: IndexExpr;
}

/** Axes along which the loop moves a store, with the store's place when all inner loops are at 0. */
function movedAxes(s: Loop, buffer: string): readonly MovedAxis[] {
  const found = new Map<string, MovedAxis>();
  const visit = (body: readonly Statement[], zero: ReadonlyMap<string, number>): void => {
    for (const inner of body) {
      if (!buffersWritten(inner).has(buffer)) continue;
      if (inner.kind === "store") {
        for (const [axis, e] of inner.index.entries()) {
          const linear = splitLinear(substitute(e, zero), s.variable);
          if (!linear || linear.coefficient <= 0) continue;
          const moved = { axis, step: linear.coefficient, base: linear.rest };
          found.set(`${axis}:${moved.step}:${moved.base.key}`, moved);
        }
      }
      const below = inner.kind === "for" ? new Map(zero).set(inner.variable, 0) : zero;
      for (const child of childBodies(inner)) visit(child, below);
    }
  };
  visit(s.body, new Map());
  const all = [...found.values()];
  all.sort((a, b) => a.axis - b.axis || a.base.constant - b.base.constant);
  return all.slice(0, mostPieces);
}

function windowsCover(s: Loop, q: Question, { axis, step, base }: MovedAxis): boolean {
  const { facts, box } = q;
  const [lo, hi] = [box.lo[axis]!, box.hi[axis]!];
  if (!facts.atLeast(lo, base) || !facts.atLeast(add(base, mul(step, s.extent)), hi)) return false;
  const inside = facts.withVariable(s.variable, s.extent);
  const start = add(base, mul(step, variable(s.variable)));
  const from = lo.key === base.key ? start : simplify(max(lo, start), inside.ranges);
  const to = simplify(min(hi, add(start, step)), inside.ranges);
  const narrow = narrowed(box, axis, from, to);
  const nonEmpty = inside.withNonNegative(sub(sub(to, from), 1));
  return coversList(s.body, { ...q, box: narrow, facts: nonEmpty });
}
