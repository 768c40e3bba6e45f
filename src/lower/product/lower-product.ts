/**
 * A product as a kernel of blocks: each block computes one tile of rows and columns, walks the depth in
 * steps with a ring of stages in shared memory, and hands the sums to the statement's epilogue.
 *
 *   copies of the first stages - 1 steps
 *   for each step: wait for its copies · barrier · copies of step + stages - 1 · products of the step
 *   epilogue on registers, guarded where the tile sticks out
 *
 * The barrier does two things at once: it makes all threads' copies of this step visible, and it comes after
 * everyone's reads of the slot that is overwritten next. Numbers are the schedule's (plan.ts); what cannot be
 * proved of the ring is refused by the validator (program/validate/split-proof.ts).
 */
import type { Buffer, GridAxis, Kernel } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import { sharedSide } from "../../schedule/products/product-blocks.ts";
import { isOpen, type ProductSide } from "../../schedule/products/product-form.ts";
import {
  type ScheduledProduct,
  type ScheduledRegion,
  symbolRanges,
} from "../../schedule/scheduled-region.ts";
import { less } from "../../semantics/condition.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  type IndexExpr,
  mod,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import type { IndexRange } from "../../semantics/index-range.ts";
import { Block } from "../block.ts";
import { reduceConditions } from "../conditions.ts";
import { loadAccess } from "../operands.ts";
import { copyGroup, groupThreads } from "../tiles.ts";
import {
  type Accumulators,
  accumulatorsOf,
  quadThreads,
  type ResultPiece,
  threadColumns,
} from "./accumulators.ts";
import { type Cluster, type ProductPlace, StageCopies } from "./copies.ts";
import { type FlatView, flattenAccess, operandsThrough } from "./flat-access.ts";
import { digitsOf, type ProductPlan, planProduct, sharedBuffer, stepsAlong } from "./plan.ts";
import { productGrid } from "./product-grid.ts";
import { type FlatContext, type Flatten, type ProductContext, ProductResults } from "./results.ts";
import { streamParts } from "./stream-parts.ts";
import { copiesOf, StreamedProduct } from "./streamed.ts";

export function lowerProduct(
  region: ScheduledRegion,
  product: ScheduledProduct,
  name: string,
  context: ProductContext,
): Kernel {
  const shapeOf = (tensor: string) => region.region.tensors.get(tensor)!.shape;
  const views = new Map<string, FlatView>();
  const flat: Flatten = (access) => {
    const found = flattenAccess(access, product.form, shapeOf);
    if (found) views.set(found.view.name, found.view);
    return found?.access ?? access;
  };
  const { rows, columns } = product.form;
  const side = ({ prologue, ...part }: ProductSide): ProductSide => ({
    ...part,
    access: flat(part.access),
    ...(prologue && { prologue: { ...prologue, reads: prologue.reads.map(flat) } }),
  });
  const form = { ...product.form, rows: side(rows), columns: side(columns) };
  const plan = planProduct(form, product.directive);
  return new ProductLowering(region, plan, { ...context, flat, views }).kernel(name);
}

/** All views through which the products of a region access memory. */
export function productViews({
  region,
  products,
  statements,
}: ScheduledRegion): readonly FlatView[] {
  const shapeOf = (tensor: string) => region.tensors.get(tensor)!.shape;
  return products.flatMap(({ form, directive }) => {
    const { statement } = statements.find((s) => s.statement.name === directive.statement)!;
    const { reads, writes, finishReads } = statement;
    const flat = [...reads, ...writes, ...finishReads].map((a) => flattenAccess(a, form, shapeOf));
    return flat.flatMap((f) => (f ? [f.view] : []));
  });
}

function clusterOf({ directive, form }: ProductPlan, nearest: IndexExpr): Cluster | undefined {
  const { cluster: size } = directive;
  if (size === 1) return undefined;
  return { size, rank: mod(nearest, size), shares: sharedSide(directive, form) };
}

class ProductLowering {
  readonly #region: ScheduledRegion;
  readonly #plan: ProductPlan;
  readonly #context: FlatContext;
  readonly #axes: readonly GridAxis[];
  readonly #ranges: Map<string, IndexRange>;
  /** Of each walk over tiles. */
  readonly #places: readonly ProductPlace[];
  readonly #thread: string;
  /** Registers by which threads tell each other what they have folded. */
  readonly #exchanged: Buffer[] = [];

  constructor(region: ScheduledRegion, plan: ProductPlan, context: FlatContext) {
    this.#region = region;
    this.#plan = plan;
    this.#context = context;
    const { form, rows, columns, directive } = plan;
    const tall = ceilDiv(form.rows.size, rows);
    const group = Math.min(directive.group, Math.ceil(form.rows.extent / rows));
    const wide = ceilDiv(form.columns.size, columns);
    const ranges = symbolRanges(region.region);
    const extents = [form.batch.size, ceilDiv(tall, group), wide, constant(group)] as const;
    const grid = productGrid(directive, extents, { names: context.names, ranges });
    this.#axes = grid.axes;
    this.#thread = context.names.fresh("thread");
    const threads = directive.by === "wgmma" ? groupThreads : plan.threads;
    const [first] = grid.walks;
    this.#ranges = new Map([...ranges, ...first!.ranges]).set(this.#thread, {
      min: 0,
      max: threads - 1,
    });
    const picked = this.#picked();
    this.#places = grid.walks.map(({ at: [batch, outer, across, below], ranges, ...walk }) => ({
      ...walk,
      left: mul(rows, add(mul(group, outer), below)),
      right: mul(columns, across),
      batch: new Map([...digitsOf(form.batch, batch), ...picked]),
      thread: this.#thread,
      ranges: new Map([...this.#ranges, ...ranges]),
      cluster: clusterOf(plan, grid.nearest),
    }));
  }

  /** Of blocks of one walk. */
  get #place(): ProductPlace {
    return this.#places[0]!;
  }

  /** Numbers that data gives a problem, by the names under which they are bound. */
  #picked(): readonly (readonly [string, IndexExpr])[] {
    return this.#plan.form.picks.map(({ name, extent }) => {
      const own = this.#context.names.fresh(`${name}_`);
      this.#ranges.set(own, { min: 0, max: constantValue(extent)! - 1 });
      return [name, variable(own)] as const;
    });
  }

  /** Loads them, for what follows in the block; they are the same for all of its threads. */
  #bindPicks(block: Block): void {
    const { batch, ranges } = this.#place;
    const { operand } = this.#context;
    const nothing = { loops: new Map(), assumed: new Set<string>(), unguarded: false };
    const site = { ...nothing, bindings: batch, ranges, lane: undefined, operand, block };
    for (const { name, access, extent, wraps, range } of this.#plan.form.picks) {
      const value = loadAccess(access, site);
      block.push({ kind: "letIndex", name: batch.get(name)!.key, value, extent, wraps, range });
    }
  }

  kernel(name: string): Kernel {
    if (this.#plan.directive.by === "wgmma") return this.#streamed(name);
    const { left, right, threads } = this.#plan;
    const sums = accumulatorsOf(this.#plan, this.#thread);
    const shared = [left, right].map((s) => sharedBuffer(this.#plan, s));
    const role = { name: "main", copies: 1, threads, threadVariable: this.#thread };
    const roles = [{ ...role, body: this.#body(sums) }];
    const buffers: readonly Buffer[] = [...shared, ...sums.buffers, ...this.#exchanged];
    return this.#whole(name, { buffers, counters: [], roles });
  }

  #whole(name: string, parts: Pick<Kernel, "buffers" | "counters" | "roles">): Kernel {
    const { directive } = this.#plan;
    const clusterSize = directive.parts * directive.cluster;
    const unit = clusterSize > 1 ? "clusters" : "blocks";
    const grid = { unit, axes: this.#axes, clusterSize, resident: false } as const;
    return { name, grid, ...parts, region: this.#region.region.name };
  }

  /** Tiles brought by one thread's tensor copies to warpgroups that multiply (streamed.ts). */
  #streamed(name: string): Kernel {
    const { names } = this.#context;
    const { tensors } = this.#region.region;
    const isWeight = (name: string): boolean =>
      tensors.get(this.#context.views.get(name)?.of ?? name)!.role === "weight";
    const picks = new Block(names);
    this.#bindPicks(picks);
    const own = { step: names.fresh("step"), copy: names.fresh("group") };
    const copies = copiesOf(this.#plan);
    const walks = this.#places.map((given) => {
      const ranges = new Map(given.ranges).set(own.copy, { min: 0, max: copies - 1 });
      const place = { ...given, ranges };
      const plan = { ...this.#plan, ...stepsAlong(this.#plan, place.part !== undefined) };
      return { place, stream: new StreamedProduct(plan, place, own) };
    });
    const consume = walks.map(({ place, stream }) => stream.perTile(this.#tile(place, stream)));
    const how = { thread: this.#thread, isWeight, picks: picks.statements, ...own };
    const streams = walks.map(({ stream }) => stream);
    const parts = streamParts(this.#plan, streams, how, consume.flat());
    return this.#whole(name, { ...parts, buffers: [...parts.buffers, ...this.#exchanged] });
  }

  /** What a warpgroup does with a tile. */
  #tile(place: ProductPlace, stream: StreamedProduct): readonly Statement[] {
    const results = new ProductResults(this.#region, this.#plan, place, this.#context);
    const body = new Block(this.#context.names);
    const { directive } = this.#plan;
    if (directive.ahead) results.loadAhead(body, stream.pieces());
    body.push(...stream.multiply(), ...stream.exchange());
    if (directive.results > 0) results.gather(body, stream);
    else this.#finish(body, results, stream.pieces());
    return body.statements;
  }

  /** The sums of a tile to memory, or what is folded of them. */
  #finish(body: Block, results: ProductResults, pieces: readonly ResultPiece[]): void {
    const { fold } = this.#plan.form;
    if (!fold) {
      results.store(body, pieces);
      return;
    }
    const { names } = this.#context;
    const sharers = this.#plan.directive.by === "fma" ? threadColumns : quadThreads;
    results.fold(body, pieces, fold, {
      names,
      buffers: this.#exchanged,
      sharers,
      thread: this.#thread,
    });
  }

  #body(sums: Accumulators): readonly Statement[] {
    const { names } = this.#context;
    const { stages, steps, trips } = this.#plan;
    const { views, operand } = this.#context;
    const reads = operandsThrough(views, this.#region.region, operand);
    const copies = new StageCopies(this.#plan, this.#place, reads);
    const block = new Block(names);
    this.#bindPicks(block);
    sums.clear(block);
    const first = names.fresh("first");
    const ahead = new Map([[first, { min: 0, max: stages - 2 }]]);
    block.loop(first, constant(stages - 1), { kind: "unrolled" }, (body) => {
      copies.issueAsync(body, variable(first), ahead);
      body.push({ kind: "commitGroup", group: copyGroup });
    });
    block.push(...copies.load(block, constant(0), new Map()));
    const step = names.fresh("step");
    const range = new Map([[step, { min: 0, max: steps - 1 }]]);
    block.loop(step, trips, { kind: "serial" }, (body) => {
      const now = variable(step);
      body.push(
        { kind: "waitGroup", group: copyGroup, pending: stages - 2 },
        { kind: "barrier", scope: "instance" },
      );
      const next = add(now, stages - 1);
      body.branch([less(next, trips)], (inside) =>
        copies.issueAsync(inside, next, new Map([[step, { min: 0, max: steps - stages }]])),
      );
      body.push({ kind: "commitGroup", group: copyGroup });
      const later = add(now, 1);
      const inRange = reduceConditions([less(later, trips)], range);
      const stores: Statement[] = [];
      const before = new Map([[step, { min: 0, max: Math.max(0, steps - 2) }]]);
      if (copies.sides.every((s) => s.isAsync)) sums.multiply(body, mod(now, stages));
      else {
        body.branch(
          inRange,
          (inside) => {
            stores.push(...copies.load(inside, later, before));
            sums.multiply(inside, mod(now, stages));
            inside.push(...stores);
          },
          (last) => sums.multiply(last, mod(now, stages)),
        );
      }
    });
    // Steps that were ahead of the last one, where a run has fewer than stages: the last group has no copies.
    if (isOpen(this.#plan.form.depth))
      block.push({ kind: "waitGroup", group: copyGroup, pending: 1 });
    const results = new ProductResults(this.#region, this.#plan, this.#place, this.#context);
    this.#finish(block, results, sums.pieces());
    return block.statements;
  }
}
