/**
 * The reduction of one tile: accumulators set to the identity, the reduction's loops around one update
 * per point of the tile, and the epilogue on the accumulators before the only store.
 *
 * A vector loop over the reduction keeps one partial result per lane (it reassociates) and combines the
 * lanes at the end; its ragged end adds single lanes beside identities. A long sum is added up in parts
 * (long-sums.ts).
 */

import type { Buffer } from "../program/program.ts";
import type { Expr } from "../program/statement.ts";
import type { Reduction } from "../region/nest.ts";
import { isBound, type ScheduledLoop } from "../schedule/scheduled-region.ts";
import { dotInstruction } from "../schedule/states/dot-form.ts";
import { type Condition, less } from "../semantics/condition.ts";
import { zeroOf } from "../semantics/dtype.ts";
import {
  constant,
  constantValue,
  type IndexExpr,
  substitute,
  variable,
} from "../semantics/index-expr.ts";
import type { Monoid } from "../semantics/monoids.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";
import { invariant } from "../support/invariant.ts";
import type { Block } from "./block.ts";
import { hullOf, mentionsAny, reduceConditions, substituteConditions } from "./conditions.ts";
import { dotOperands } from "./dot-operands.ts";
import { combinePairwise, exchangeInHalves, freeze } from "./exchange.ts";
import { type Accumulated, accumulatedAs, asFolded } from "./narrow-extremes.ts";
import type { NestLowering, Place, TilePoint } from "./nest-lowering.ts";
import { isLocalLoop } from "./nest-plan.ts";
import { type LaneLoop, lowerScalar, multiplyOperands, type Site, splatOf } from "./operands.ts";
import { TileLoads } from "./tile-loads.ts";

/** Threads bound to a reduction are a warp (lower-region.ts). */
const threadsOfWarp = 32;

interface TileShape {
  readonly tile: readonly ScheduledLoop[];
  readonly lane: LaneLoop | undefined;
  readonly storeGuard: readonly Condition[];
}

export class ReductionLowering {
  readonly #nest: NestLowering;
  /** The fold, and what is accumulated for it. */
  readonly #folded: Monoid;
  readonly #own: Accumulated;
  readonly #shape: TileShape;
  readonly #unguarded: boolean;
  readonly #lanes: number;
  #accumulators: readonly string[] = [];

  constructor(nest: NestLowering, reduction: Reduction, shape: TileShape, unguarded: boolean) {
    this.#nest = nest;
    this.#shape = shape;
    this.#unguarded = unguarded;
    this.#lanes = (shape.lane ?? nest.plan.reduceLane)?.lanes ?? 1;
    this.#folded = reduction.monoid;
    const { comparesPairs } = nest.context;
    const how = { lanes: this.#lanes, comparesPairs };
    this.#own = accumulatedAs(nest.plan.scheduled.statement, reduction.monoid, how);
  }

  lower(place: Place): void {
    this.#begin(place);
    const skip = this.#unguarded ? [] : this.#skipped();
    const inside = { ...place, block: place.block, pending: [...place.pending, ...skip] };
    this.#nest.settle(
      inside,
      () => false,
      (start) => this.#lowerLoops(0, start),
    );
    const threads = this.#nest.plan.reduce.find((l) => isBound(l.mode));
    const end = threads ? this.#nest.atAxis(threads, place) : place;
    this.#forEachPoint(end, (point, at) => {
      const site = this.#nest.site(at, point.loops, this.#shape.lane);
      const accumulated = this.#own.monoid.identity.map((_, component) =>
        this.#loadAccumulator(component, point),
      );
      const components = asFolded(accumulated, this.#folded);
      const lanes = this.#nest.plan.reduceLane && !this.#shape.lane;
      const own = lanes ? this.#combineLanes(components, at.block) : components;
      const reduced = threads ? this.#combineThreads(own, at.block) : own;
      // Every thread of the warp has the result; the first stores it.
      const first = threads ? [less(variable(threads.name), 1)] : [];
      this.#nest.finish(reduced, [...this.#shape.storeGuard, ...first], site);
    });
  }

  /** New accumulators, set to the identity. */
  #begin(place: Place): void {
    this.#accumulators = this.#makeAccumulators();
    this.#forEachPoint(place, (point, inside) => {
      this.#own.monoid.identity.forEach((identity, component) => {
        this.#storeAccumulator(inside.block, component, point, this.#literal(identity));
      });
    });
  }

  /** What `fill` adds up is a sum of its own, which then joins the whole one. */
  #lowerPart(place: Place, fill: () => void): void {
    const whole = this.#accumulators;
    this.#begin(place);
    const part = this.#accumulators;
    fill();
    this.#forEachPoint(place, (point, { block }) => {
      this.#accumulators = part;
      const [term] = this.#own.monoid.identity.map((_, i) => this.#loadAccumulator(i, point));
      this.#accumulators = whole;
      const old = this.#freeze(this.#loadAccumulator(0, point), block);
      const { dtype, lanes } = old;
      const value: Expr = { kind: "apply", op: "add", dtype, lanes, operands: [old, term!] };
      this.#storeAccumulator(block, 0, point, value);
    });
    this.#accumulators = whole;
  }

  /** Skip conditions that hold for the whole tile at once; the others stay on the loads. */
  #skipped(): readonly Condition[] {
    const names = this.#shape.tile.map((l) => l.name);
    return this.#nest.skippable().filter((c) => !mentionsAny(c, names));
  }

  #forEachPoint(place: Place, fill: (point: TilePoint, inside: Place) => void): void {
    this.#nest.forEachPoint(this.#shape.tile, place, fill);
  }

  #lowerLoops(depth: number, place: Place): void {
    const { outsideParts } = this.#nest;
    if (depth > 0 && depth === outsideParts) {
      this.#lowerPart(place, () => this.#lowerTerms(depth, place));
    } else {
      this.#lowerTerms(depth, place);
    }
  }

  #lowerTerms(depth: number, place: Place): void {
    const loop = this.#nest.plan.reduce[depth];
    if (!loop) {
      this.#update(place, this.#shape.lane);
    } else if (loop.mode === "vector") {
      if (this.#shape.lane) this.#dotProducts(this.#shape.lane, place);
      else this.#lowerVectorLoop(loop, place);
    } else if (loop.mode === "unroll") {
      for (let i = 0; i < constantValue(loop.extent)!; i++) {
        const loops = new Map(place.loops).set(loop.name, constant(i));
        this.#nest.settle(
          { ...place, loops },
          () => false,
          (inside) => this.#lowerLoops(depth + 1, inside),
        );
      }
    } else {
      this.#nest.bindLoop(loop, place, (inside) => this.#lowerLoops(depth + 1, inside));
    }
  }

  /** All lanes at once where the whole vector is inside, else lane by lane. */
  #lowerVectorLoop(loop: ScheduledLoop, place: Place): void {
    const lane = this.#nest.plan.reduceLane;
    invariant(lane, () => "a vector reduction has a lane loop");
    invariant(loop === this.#nest.plan.reduce.at(-1), () => "the vector loop must be innermost");
    const now = substituteConditions(place.pending, place.loops);
    // Sums that are kept together may end at different places.
    const inside = new Map([loop, ...this.#shape.tile].map((l) => [l.name, l.extent]));
    const hulls = now.map((c) => hullOf(c, inside));
    const known = hulls.filter((c) => c !== undefined);
    const all = { ...place, pending: [] };
    const tail = (block: Block): void =>
      this.#nest.bindLoop({ ...loop, mode: "serial" }, { ...place, block }, (inside) =>
        this.#update(inside, undefined),
      );
    if (known.length < hulls.length) {
      tail(place.block);
      return;
    }
    const needed = reduceConditions(known, place.ranges);
    place.block.branch(needed, (block) => this.#update({ ...all, block }, lane), tail);
  }

  /** The trips of the innermost loop as terms of one instruction in each lane of results. */
  #dotProducts(lane: LaneLoop, place: Place): void {
    const { statement } = this.#nest.plan.scheduled;
    const depth = this.#nest.plan.reduceLane;
    const { dtype } = statement.body[0]!;
    const intrinsic = depth && dotInstruction(dtype, depth.lanes, lane.lanes);
    invariant(intrinsic, () => "dot products have a loop of their terms");
    this.#forEachPoint(place, (point, inside) => {
      const site = {
        ...this.#nest.site(inside, point.loops, lane),
        unguarded: this.#unguarded,
      };
      const operands = dotOperands(statement, { ...site, depth });
      const old = this.#loadAccumulator(0, point);
      const value: Expr = {
        kind: "call",
        dtype,
        lanes: lane.lanes,
        intrinsic,
        operands: [old, ...operands],
      };
      this.#storeAccumulator(site.block, 0, point, value);
    });
  }

  /** accumulator = combine(accumulator, body) for each point of the tile that has the trip. */
  #update(place: Place, lane: LaneLoop | undefined): void {
    const { scheduled } = this.#nest.plan;
    const loads = new TileLoads(scheduled, this.#shape.tile);
    const settled = (point: TilePoint, at: Place): void => {
      const site = { ...this.#nest.site(at, point.loops, lane), unguarded: this.#unguarded };
      this.#nest.withIndirects(site, (bound) => {
        const args = loads.of(bound);
        const values = this.#own.body.map((e) => lowerScalar(e, args, bound));
        this.#combineInto(point, values, bound);
      });
    };
    this.#forEachPoint(place, (point, inside) =>
      this.#nest.settle(
        inside,
        () => false,
        (at) => settled(point, at),
      ),
    );
  }

  #combineInto(point: TilePoint, values: readonly Expr[], site: Site): void {
    const { block } = site;
    const { monoid } = this.#own;
    const whole = values.map((v, i) => this.#widen(v, monoid.identity[i]!, block));
    const old = monoid.identity.map((_, i) => this.#loadAccumulator(i, point));
    const wide = { ...site, lane: this.#wideLane() };
    const product = monoid.name === "sum" ? multiplyOperands(whole[0]!) : undefined;
    if (product && this.#nest.context.fused) {
      const [a, b] = product.map((o) => block.bind(o)) as [Expr, Expr];
      const { dtype, lanes } = old[0]!;
      const intrinsic = lanes === 1 ? `fma.${dtype}` : `fma.${dtype}x${lanes}`;
      const operands = [a, b, old[0]!];
      this.#storeAccumulator(block, 0, point, { kind: "call", dtype, lanes, intrinsic, operands });
      return;
    }
    const left = old.map((o) => this.#freeze(o, block));
    const right = whole.length === 1 ? whole : whole.map((v) => block.bind(v));
    const next = monoid.combine.map((e) => lowerScalar(e, [...left, ...right], wide));
    const ready = next.length === 1 ? next : next.map((v) => this.#freeze(v, block));
    ready.forEach((value, i) => {
      this.#storeAccumulator(block, i, point, value);
    });
  }

  /** Names a value here and now: accumulator loads must not be shared across updates. */
  #freeze(value: Expr, block: Block): Expr {
    return freeze(value, this.#nest.context.names, block);
  }

  #wideLane(): LaneLoop | undefined {
    return this.#lanes === 1 ? undefined : { name: "", lanes: this.#lanes };
  }

  /** A single lane's value beside identities, where the accumulator has more lanes. */
  #widen(value: Expr, identity: ScalarExpr, block: Block): Expr {
    if (value.lanes === this.#lanes) return value;
    if (this.#shape.lane) return splatOf(value, this.#lanes, block);
    const empty = { ...this.#literal(identity), lanes: 1 };
    const operands = [value, ...Array.from({ length: this.#lanes - 1 }, () => empty)];
    return { kind: "pack", dtype: value.dtype, lanes: this.#lanes, operands };
  }

  /** One scalar tuple from the lanes' partial tuples, pairwise. */
  #combineLanes(components: readonly Expr[], block: Block): readonly Expr[] {
    const bound = components.map((c) => this.#freeze(c, block));
    const parts = Array.from({ length: this.#lanes }, (_, lane) =>
      bound.map(
        (operand): Expr => ({
          kind: "extract",
          dtype: operand.dtype,
          lanes: 1,
          operand,
          lane,
        }),
      ),
    );
    return combinePairwise(this.#folded, parts, block);
  }

  /** The tuple of all threads of the warp. */
  #combineThreads(components: readonly Expr[], block: Block): readonly Expr[] {
    const { names, buffers } = this.#nest.context;
    const at = this.#nest.plan.scheduled.statement.name;
    const context = { names, buffers, block, at };
    const order = { threads: threadsOfWarp, stride: 1 };
    return exchangeInHalves(this.#folded, components, order, context);
  }

  #literal(identity: ScalarExpr): Expr {
    invariant(identity.kind === "literal", () => "a monoid's identity is a literal");
    const { dtype, value } = identity;
    return { kind: "literal", dtype, lanes: this.#lanes, value };
  }

  #makeAccumulators(): readonly string[] {
    const { tile } = this.#shape;
    const local = tile.some(isLocalLoop);
    const shape = tile.filter((l) => l.mode !== "vector").map((l) => l.extent);
    return this.#own.monoid.components.map(({ dtype }) => {
      const name = this.#nest.context.names.freshBuffer("acc");
      const buffer: Buffer = {
        name,
        kind: "scratch",
        scope: local ? "local" : "register",
        dtype,
        lanes: this.#lanes,
        shape: shape.map((e) => substitute(e, new Map())),
      };
      this.#nest.context.buffers.push(buffer);
      return name;
    });
  }

  #loadAccumulator(component: number, point: TilePoint): Expr {
    const { dtype } = this.#own.monoid.components[component]!;
    const buffer = this.#accumulators[component]!;
    const index: readonly IndexExpr[] = point.position;
    return {
      kind: "load",
      dtype,
      lanes: this.#lanes,
      buffer,
      index,
      guard: [],
      fill: zeroOf(dtype),
    };
  }

  #storeAccumulator(block: Block, component: number, point: TilePoint, value: Expr): void {
    const buffer = this.#accumulators[component]!;
    block.push({ kind: "store", buffer, index: point.position, value });
  }
}
