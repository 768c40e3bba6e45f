/**
 * One scheduled statement as program loops.
 *
 * Outer loops become loops; a ragged end shortens the last trip of a serial loop. Around the tile the
 * text branches once: where the whole tile is inside the domain, every unrolled and vector loop is
 * copied out over registers; elsewhere, where the size of what is left is known, it is a smaller tile
 * (last-tile.ts), and else the copies of the ragged loop are tried in halves (schedule/states/tile-parts.ts), at last one by
 * one as a short serial loop, each with the rest of the tile, so that a tail keeps whatever lanes it can. Guards of accesses (padding) are treated the
 * same way: a tile whose every access is inside runs unguarded; in the others a guard that skips whole
 * trips of a reduction loop does so, and the rest stay on the loads.
 *
 * Nothing is decided here: order, tile and lanes are the schedule's.
 */
import type { Buffer } from "../program/program.ts";
import type { Expr } from "../program/statement.ts";
import type { Access } from "../region/nest.ts";
import {
  isBound,
  type ScheduledLoop,
  type ScheduledStatement,
} from "../schedule/scheduled-region.ts";
import { firstPart } from "../schedule/states/tile-parts.ts";
import type { Condition } from "../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  fromTerms,
  type IndexBindings,
  type IndexExpr,
  mentionsVariable,
  substitute,
  variable,
} from "../semantics/index-expr.ts";
import { type IndexRanges, loopRange, simplify } from "../semantics/index-range.ts";
import { invariant } from "../support/invariant.ts";
import type { Block, Names } from "./block.ts";
import {
  hullOf,
  isRefuted,
  mentionsAny,
  reduceConditions,
  substituteConditions,
  tightenExtent,
} from "./conditions.ts";
import { type LastTile, lastTile } from "./last-tile.ts";
import { fillIsIdentity, isLocalLoop, type NestPlan, planNest } from "./nest-plan.ts";
import {
  conditionKey,
  type LaneLoop,
  loadAccess,
  lowerScalar,
  type Operand,
  openGuard,
  type Site,
  storeInterleaved,
  storeWrite,
} from "./operands.ts";
import { ReductionLowering } from "./reduction.ts";
import { TileLoads } from "./tile-loads.ts";

/** What all statements of a kernel share while they are lowered. */
export interface KernelContext {
  readonly names: Names;
  readonly operand: (tensor: string) => Operand;
  /** Register and local buffers made on the way. */
  readonly buffers: Buffer[];
  readonly gridAxis: string;
  /** Bound loops in terms of the grid's index variables, and the ranges of these. */
  readonly axes: ReadonlyMap<string, IndexExpr>;
  readonly axisRanges: IndexRanges;
  /** Multiply-add may be fused. */
  readonly fused: boolean;
  /** Pairs of floats of 16 bits are compared in one instruction. */
  readonly comparesPairs: boolean;
  /** Position of a tensor is inside its buffer even where the lane's own range is ragged. */
  readonly isPadded: (access: Access, loop: string, ranges: IndexRanges) => boolean;
}

/** Where in the nest the lowering stands. */
export interface Place {
  readonly block: Block;
  readonly ranges: IndexRanges;
  /** Loop names of the schedule in terms of program variables and constants. */
  readonly loops: ReadonlyMap<string, IndexExpr>;
  /** Domain conditions (over loop names) not yet guaranteed. */
  readonly pending: readonly Condition[];
  readonly assumed: ReadonlySet<string>;
}

/** One point of the unrolled tile: its loops bound to constants, its number. */
export interface TilePoint {
  readonly loops: ReadonlyMap<string, IndexExpr>;
  readonly position: readonly IndexExpr[];
}

export class NestLowering {
  readonly context: KernelContext;
  readonly plan: NestPlan;
  readonly outsideParts: number;
  /** Called once per depth of outer loops; must call `proceed` exactly once. */
  interrupt?: (depth: number, place: Place, proceed: () => void) => void;
  #laneRanges:
    | { readonly lane: LaneLoop; readonly outside: IndexRanges; readonly ranges: IndexRanges }
    | undefined;

  /** @param outsideParts reduce loops outside the parts of a sum; 0: it has no parts (long-sums.ts) */
  constructor(context: KernelContext, scheduled: ScheduledStatement, outsideParts = 0) {
    this.context = context;
    this.outsideParts = outsideParts;
    const domain = [...scheduled.ragged, ...this.#ownGuard(scheduled)];
    this.plan = planNest(scheduled, domain, context.axes.size > 0);
  }

  #ownGuard(scheduled: ScheduledStatement): readonly Condition[] {
    return substituteConditions(scheduled.statement.guard, scheduled.index);
  }

  /** Lowers the loops from `depth` on into the place's block; `interrupt` may add work at a depth. */
  lower(place: Place, depth: number, interrupted = false): void {
    if (this.interrupt && !interrupted) {
      this.interrupt(depth, place, () => this.lower(place, depth, true));
      return;
    }
    const loop = this.plan.outer[depth];
    if (!loop) {
      this.#lowerTile(this.plan.tile, place, true);
      return;
    }
    this.bindLoop(loop, place, (inside) => this.lower(inside, depth + 1));
  }

  /**
   * Opens a loop whose extent ends where a pending condition fails, and settles the conditions that
   * become decidable inside it.
   */
  bindLoop(loop: ScheduledLoop, place: Place, fill: (inside: Place) => void): void {
    const { context } = this;
    if (isBound(loop.mode)) {
      // A ragged end is a branch.
      this.settle(this.atAxis(loop, place), () => false, fill);
      return;
    }
    const name = place.ranges.has(loop.name) ? context.names.fresh(`${loop.name}_`) : loop.name;
    const pending = this.inProgramTerms(place.pending, place, loop.name, name);
    const later = this.#unboundExtents(place, loop.name);
    const own = substitute(loop.extent, place.loops);
    const extent = simplify(tightenExtent(name, own, pending, later), place.ranges);
    const mode =
      loop.mode === "grid"
        ? ({ kind: "grid", axis: context.gridAxis } as const)
        : ({ kind: "serial" } as const);
    const ranges = new Map(place.ranges).set(name, loopRange(own, place.ranges));
    const loops = new Map(place.loops).set(loop.name, variable(name));
    place.block.loop(name, extent, mode, (body) => {
      const discharged = (c: Condition): boolean => c.kind === "nonNegative" && falls(c, name);
      this.settle({ ...place, block: body, ranges, loops }, discharged, fill);
    });
  }

  /** The place with a bound loop's variable in reach, which is there all along. */
  atAxis(loop: ScheduledLoop, place: Place): Place {
    const axis = this.context.axes.get(loop.name);
    invariant(axis, () => `no axis for loop ${loop.name}`);
    const ranges = new Map([...place.ranges, ...this.context.axisRanges]);
    return { ...place, ranges, loops: new Map(place.loops).set(loop.name, axis) };
  }

  /** Branches on the pending conditions that mention no unbound loop, unless `discharged` already. */
  settle(place: Place, discharged: (c: Condition) => boolean, fill: (inside: Place) => void): void {
    const unbound = [...this.#unboundExtents(place).keys()];
    const bound = place.pending.map((c) => ({
      source: c,
      now: substituteConditions([c], place.loops)[0]!,
    }));
    const ready = bound.filter((c) => !mentionsAny(c.now, unbound));
    const settled = new Set(ready.map((c) => c.source));
    const known = (c: Condition): boolean => place.assumed.has(conditionKey(c));
    const test = ready.map((c) => c.now).filter((c) => !discharged(c) && !known(c));
    const assumed = new Set([...place.assumed, ...ready.map((c) => conditionKey(c.now))]);
    const pending = place.pending.filter((c) => !settled.has(c));
    place.block.branch(reduceConditions(test, place.ranges), (body) =>
      fill({ ...place, block: body, pending, assumed }),
    );
  }

  /** A place before any loop of the statement is open; `loops` maps fused outer loops. */
  start(block: Block, ranges: IndexRanges, loops: ReadonlyMap<string, IndexExpr>): Place {
    return { block, ranges, loops, pending: this.plan.domain, assumed: new Set() };
  }

  inProgramTerms(
    conditions: readonly Condition[],
    place: Place,
    loop: string,
    name: string,
  ): readonly Condition[] {
    return substituteConditions(conditions, new Map(place.loops).set(loop, variable(name)));
  }

  /** Loops of the statement that have no binding at the place, with their extents. */
  #unboundExtents(place: Place, except?: string): Map<string, IndexExpr> {
    const { loops } = this.plan.scheduled;
    const unbound = loops.filter((l) => !place.loops.has(l.name) && l.name !== except);
    return new Map(unbound.map((l) => [l.name, substitute(l.extent, place.loops)]));
  }

  #lowerTile(tile: readonly ScheduledLoop[], place: Place, whole: boolean): void {
    const names = tile.map((l) => l.name);
    const now = substituteConditions(place.pending, place.loops);
    const open = now.filter((c) => mentionsAny(c, names) && !this.#mentionsReduce(c));
    if (open.length === 0) {
      this.#lowerLeaf(tile, place, { storeGuard: [], whole });
      return;
    }
    const end = this.context.axes.size === 0 ? lastTile(tile, now, place.ranges) : undefined;
    if (end) {
      this.#lowerWithEnd(tile, end, place, whole);
      return;
    }
    const extents = new Map(tile.map((l) => [l.name, l.extent]));
    const hulls = open.map((c) => hullOf(c, extents));
    const known = hulls.filter((c) => c !== undefined);
    const needed = reduceConditions(known, place.ranges);
    const inside = this.#without(place, names);
    if (known.length === hulls.length && needed.length === 0) {
      this.#lowerLeaf(tile, inside, { storeGuard: [], whole });
      return;
    }
    const tail = (block: Block): void => this.#lowerRagged(tile, { ...place, block }, open);
    const never = known.length < hulls.length || needed.some((c) => isRefuted(c, place.ranges));
    if (never) {
      tail(place.block);
      return;
    }
    place.block.branch(
      needed,
      (block) => this.#lowerLeaf(tile, { ...inside, block }, { storeGuard: [], whole }),
      tail,
    );
  }

  /** Whole tiles along a loop, and a smaller one, as much in registers, where they end. */
  #lowerWithEnd(
    tile: readonly ScheduledLoop[],
    { loop, condition, hull, rest }: LastTile,
    place: Place,
    whole: boolean,
  ): void {
    const pending = place.pending.filter((_, i) => i !== condition);
    const smaller = tile.map((l) => (l === loop ? { ...l, extent: constant(rest) } : l));
    const atEnd = (block: Block): void =>
      this.#lowerTile(smaller, { ...place, block, pending }, whole);
    if (isRefuted(hull, place.ranges)) {
      atEnd(place.block);
      return;
    }
    place.block.branch(
      reduceConditions([hull], place.ranges),
      (block) => this.#lowerTile(tile, { ...place, block, pending }, whole),
      atEnd,
    );
  }

  /** The tile where it sticks out of the domain. */
  #lowerRagged(tile: readonly ScheduledLoop[], place: Place, open: readonly Condition[]): void {
    const ragged = tile.filter((l) => open.some((c) => mentionsAny(c, [l.name])));
    const [only] = ragged;
    if (ragged.length === 1 && only!.mode === "vector" && this.#readsArePadded(only!, place)) {
      const inside = this.#without(place, [only!.name]);
      this.#lowerLeaf(tile, inside, { storeGuard: open, whole: false });
      return;
    }
    const loop = ragged.find((l) => l.mode !== "vector") ?? only;
    invariant(loop, () => `no ragged loop in ${this.plan.scheduled.statement.name}`);
    if (this.#lowerInParts(tile, loop, place, open)) return;
    const rest = tile.filter((l) => l !== loop);
    this.bindLoop({ ...loop, mode: "serial" }, place, (inside) =>
      this.#lowerTile(rest, inside, false),
    );
  }

  /**
   * The copies of a loop that alone is ragged, fewer than the tile has: a first part as a smaller tile where
   * that much is left, and behind it the rest; where less is left, parts of the first part. False where the
   * loop cannot be halved so.
   */
  #lowerInParts(
    tile: readonly ScheduledLoop[],
    loop: ScheduledLoop,
    place: Place,
    open: readonly Condition[],
  ): boolean {
    const part = this.context.axes.size === 0 ? firstPart(loop) : undefined;
    const others = tile.flatMap((l) => (l === loop ? [] : [l.name]));
    const ends = (c: Condition): boolean => falls(c, loop.name) && !mentionsAny(c, others);
    if (part === undefined || !open.every(ends)) return false;
    const sized = (extent: number): readonly ScheduledLoop[] =>
      tile.map((l) => (l === loop ? { ...l, extent: constant(extent) } : l));
    const hulls = open.map((c) => hullOf(c, new Map([[loop.name, constant(part)]])));
    const known = hulls.filter((c) => c !== undefined);
    if (known.length < hulls.length) return false;
    const first = sized(part);
    const atFirst = (block: Block): void => {
      if (part > 1) this.#lowerRagged(first, { ...place, block }, open);
    };
    if (known.some((c) => isRefuted(c, place.ranges))) {
      atFirst(place.block);
      return true;
    }
    const rest = constantValue(loop.extent)! - part;
    place.block.branch(
      reduceConditions(known, place.ranges),
      (block) => {
        const inside = this.#without({ ...place, block }, [loop.name]);
        this.#lowerLeaf(first, inside, { storeGuard: [], whole: false });
        if (rest === 1) return;
        const shift = new Map([[loop.name, add(variable(loop.name), part)]]);
        const left = { ...place, block, pending: substituteConditions(place.pending, shift) };
        const behind = this.#counting(loop, shift, rest);
        behind.#lowerRagged(sized(rest), left, substituteConditions(open, shift));
      },
      atFirst,
    );
    return true;
  }

  /** The same statement with a loop's variable shifted, and so many trips of it. */
  #counting(loop: ScheduledLoop, shift: IndexBindings, trips: number): NestLowering {
    const { scheduled } = this.plan;
    const extent = constant(trips);
    const shifted: ScheduledStatement = {
      ...scheduled,
      loops: scheduled.loops.map((l) => (l.name === loop.name ? { ...l, extent } : l)),
      index: new Map([...scheduled.index].map(([name, e]) => [name, substitute(e, shift)])),
      ragged: substituteConditions(scheduled.ragged, shift),
    };
    return new NestLowering(this.context, shifted, this.outsideParts);
  }

  /** Every operand that moves with the loop is stored with padding, so lanes past the end may be read. */
  #readsArePadded(loop: ScheduledLoop, place: Place): boolean {
    const { statement, index } = this.plan.scheduled;
    if (!statement.reduction || statement.indirects.length > 0) return false;
    return statement.reads.every((access) => {
      const moved = access.index.map((e) => substitute(e, index));
      const touches = moved.some((e) => mentionsAny({ kind: "zero", expr: e }, [loop.name]));
      return !touches || this.context.isPadded(access, loop.name, place.ranges);
    });
  }

  /** The place with the conditions on `names` (and no reduce loop) taken as met. */
  #without(place: Place, names: readonly string[]): Place {
    const met = (c: Condition): boolean =>
      mentionsAny(substituteConditions([c], place.loops)[0]!, names) && !this.#mentionsReduce(c);
    return { ...place, pending: place.pending.filter((c) => !met(c)) };
  }

  #mentionsReduce(c: Condition): boolean {
    return mentionsAny(
      c,
      this.plan.reduce.map((l) => l.name),
    );
  }

  /** The tile itself, in registers; branches once between unguarded and guarded accesses. */
  #lowerLeaf(
    tile: readonly ScheduledLoop[],
    place: Place,
    options: { readonly storeGuard: readonly Condition[]; readonly whole: boolean },
  ): void {
    const vectorStays = tile.some((l) => l.mode === "vector");
    const lane = vectorStays ? this.plan.spaceLane : undefined;
    const core = (block: Block, unguarded: boolean): void =>
      this.#lowerCore(
        { tile, lane, storeGuard: options.storeGuard },
        { ...place, block },
        unguarded,
      );
    const guards = this.#openAccessGuards(tile, place);
    if (guards.length === 0 || !options.whole) {
      core(place.block, guards.length === 0);
      return;
    }
    const extents = new Map([...tile, ...this.plan.reduce].map((l) => [l.name, l.extent]));
    // Indices that are loaded are not known out here.
    const loaded = this.plan.scheduled.statement.indirects.map((v) => v.name);
    const hulls = guards.map((c) => (mentionsAny(c, loaded) ? undefined : hullOf(c, extents)));
    const known = hulls.filter((c) => c !== undefined);
    const needed = reduceConditions(known, place.ranges);
    const never = known.length < hulls.length || needed.some((c) => isRefuted(c, place.ranges));
    if (never) {
      core(place.block, false);
      return;
    }
    place.block.branch(
      needed,
      (block) => core(block, true),
      (block) => core(block, false),
    );
  }

  /** Guards of the body's reads that the ranges leave open, with tile and reduce loops symbolic. */
  #openAccessGuards(tile: readonly ScheduledLoop[], place: Place): readonly Condition[] {
    const ranges = new Map(place.ranges);
    for (const l of [...tile, ...this.plan.reduce]) {
      ranges.set(l.name, loopRange(substitute(l.extent, place.loops), ranges));
    }
    const site = this.site({ ...place, ranges }, place.loops, undefined);
    return this.plan.scheduled.statement.reads.flatMap((access) => openGuard(access, site));
  }

  #lowerCore(
    shape: {
      readonly tile: readonly ScheduledLoop[];
      readonly lane: LaneLoop | undefined;
      readonly storeGuard: readonly Condition[];
    },
    place: Place,
    unguarded: boolean,
  ): void {
    const { statement } = this.plan.scheduled;
    if (statement.reduction) {
      new ReductionLowering(this, statement.reduction, shape, unguarded).lower(place);
      return;
    }
    const loads = new TileLoads(this.plan.scheduled, shape.tile);
    this.forEachPoint(shape.tile, place, (point, inside) => {
      const site = { ...this.site(inside, point.loops, shape.lane), unguarded };
      this.withIndirects(site, (bound) => {
        const args = loads.of(bound);
        const values = statement.body.map((e) => lowerScalar(e, args, bound));
        this.finish(values, shape.storeGuard, bound);
      });
    });
  }

  /** Applies the epilogue to the components and stores the results. */
  finish(components: readonly Expr[], storeGuard: readonly Condition[], site: Site): void {
    const { statement } = this.plan.scheduled;
    const guard = substituteConditions(storeGuard, site.loops);
    const guarded = { ...site, unguarded: false };
    const operands = statement.finishReads.map((access) =>
      loadAccess({ ...access, guard: [...access.guard, ...guard] }, guarded),
    );
    const bound = components.map((c) => site.block.bind(c));
    const values = statement.finish
      ? statement.finish.map((e) => lowerScalar(e, [...bound, ...operands], site))
      : bound;
    statement.writes.forEach((write, i) => {
      const isShared = guard.length === 0 && site.interleaved?.has(write);
      if (isShared) storeInterleaved(statement.writes, i, values, site);
      else storeWrite(write, values[i]!, guard, site);
    });
  }

  /** Runs `fill` for each point of the tile: copies for unrolled loops, loops for local ones. */
  forEachPoint(
    tile: readonly ScheduledLoop[],
    place: Place,
    fill: (point: TilePoint, inside: Place) => void,
  ): void {
    const visit = (at: number, inside: Place, position: readonly IndexExpr[]): void => {
      const loop = tile[at];
      if (!loop) {
        fill({ loops: inside.loops, position }, inside);
      } else if (loop.mode === "vector") {
        visit(at + 1, inside, position);
      } else if (isLocalLoop(loop)) {
        const name = this.context.names.fresh(`${loop.name}_`);
        const ranges = new Map(inside.ranges).set(name, loopRange(loop.extent, inside.ranges));
        const loops = new Map(inside.loops).set(loop.name, variable(name));
        inside.block.loop(name, loop.extent, { kind: "serial" }, (block) =>
          visit(at + 1, { ...inside, block, ranges, loops }, [...position, variable(name)]),
        );
      } else {
        for (let i = 0; i < constantValue(loop.extent)!; i++) {
          const loops = new Map(inside.loops).set(loop.name, constant(i));
          visit(at + 1, { ...inside, loops }, [...position, constant(i)]);
        }
      }
    };
    visit(0, place, []);
  }

  /** The site of accesses at a place: original variables bound through the schedule. */
  site(place: Place, loops: ReadonlyMap<string, IndexExpr>, lane: LaneLoop | undefined): Site {
    const { operand } = this.context;
    return {
      bindings: new LoopBindings(this.plan.scheduled.index, loops),
      ranges: lane ? this.#rangesWith(lane, place.ranges) : place.ranges,
      lane,
      operand,
      assumed: place.assumed,
      unguarded: false,
      block: place.block,
      loops,
      ...(lane === this.plan.spaceLane && { interleaved: this.plan.interleaved }),
    };
  }

  /** The copies of a tile have the same. */
  #rangesWith(lane: LaneLoop, outside: IndexRanges): IndexRanges {
    const known = this.#laneRanges;
    if (known?.lane === lane && known.outside === outside) return known.ranges;
    const ranges = new Map(outside).set(lane.name, { min: 0, max: lane.lanes - 1 });
    this.#laneRanges = { lane, outside, ranges };
    return ranges;
  }

  /** Loads the index tensors of the statement as index variables around `fill`. */
  withIndirects(site: Site, fill: (bound: Site) => void): void {
    const { indirects } = this.plan.scheduled.statement;
    if (indirects.length === 0) {
      fill(site);
      return;
    }
    const own = new Map<string, IndexExpr>();
    const bindings = { get: (name: string) => own.get(name) ?? site.bindings.get(name) };
    const ranges = new Map(site.ranges);
    for (const { name, access, extent, wraps, range } of indirects) {
      // The same for all lanes: what differs is no choice of schedule/.
      const bound = { ...site, bindings, ranges, lane: undefined };
      const variableName = this.context.names.fresh(`${name}_`);
      const value = loadAccess(access, bound);
      const limit = simplify(substitute(extent, bindings), ranges);
      site.block.push({ kind: "letIndex", name: variableName, value, extent: limit, wraps, range });
      own.set(name, variable(variableName));
      ranges.set(variableName, loopRange(limit, ranges));
    }
    fill({ ...site, bindings, ranges });
  }

  /**
   * Guards of reads whose fill is the identity of the reduction: where they fail the trip adds nothing.
   * In terms of the schedule's loops.
   */
  skippable(): readonly Condition[] {
    const { statement, index } = this.plan.scheduled;
    const monoid = statement.reduction?.monoid;
    if (!monoid) return [];
    return statement.reads.flatMap((access, i) =>
      fillIsIdentity(statement.body[0]!, i, access.fill, monoid)
        ? substituteConditions(access.guard, index)
        : [],
    );
  }
}

/** Variables of a statement at a place, each worked out once and when an access needs it. */
class LoopBindings {
  readonly #index: ReadonlyMap<string, IndexExpr>;
  readonly #loops: ReadonlyMap<string, IndexExpr>;
  readonly #known = new Map<string, IndexExpr>();

  constructor(index: ReadonlyMap<string, IndexExpr>, loops: ReadonlyMap<string, IndexExpr>) {
    this.#index = index;
    this.#loops = loops;
  }

  get(name: string): IndexExpr | undefined {
    const known = this.#known.get(name);
    const expr = known ? undefined : this.#index.get(name);
    if (!expr) return known;
    const bound = substitute(expr, this.#loops);
    this.#known.set(name, bound);
    return bound;
  }
}

/** Whether the condition fails from some value of `name` on. */
function falls(c: Condition, name: string): boolean {
  const step = substitute(c.expr, new Map([[name, variable(name)]])).terms.find(
    (t) => t.key === name,
  );
  const elsewhere = c.expr.terms.some(
    (t) => t.key !== name && mentionsVariable(fromTerms(0, [t]), name),
  );
  return !elsewhere && step !== undefined && step.coefficient < 0;
}
