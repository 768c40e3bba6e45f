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
import type { Expr, Statement } from "../../program/statement.ts";
import type { Access, Statement as NestStatement, Write } from "../../region/nest.ts";
import { sharedSide } from "../../schedule/products/product-blocks.ts";
import { isOfResult, type ProductSide } from "../../schedule/products/product-form.ts";
import type { ScheduledProduct, ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { atMost, type Condition, less } from "../../semantics/condition.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  sub,
  substitute,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRange, simplify } from "../../semantics/index-range.ts";
import { Block, type Names } from "../block.ts";
import { reduceConditions } from "../conditions.ts";
import { loadAccess, lowerScalar, type Operand, type Site, storeWrite } from "../operands.ts";
import { copyGroup, groupThreads } from "../tiles.ts";
import { type Accumulators, accumulatorsOf, type ResultPiece } from "./accumulators.ts";
import { type Cluster, type ProductPlace, StageCopies, type Turns } from "./copies.ts";
import { type FlatView, flatColumn, flatRow, flattenAccess } from "./flat-access.ts";
import { digitsOf, type ProductPlan, planProduct, sharedBuffer } from "./plan.ts";
import { StreamedProduct } from "./streamed.ts";

export interface ProductContext {
  readonly names: Names;
  readonly operand: (tensor: string) => Operand;
}

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
  const side = (part: ProductSide): ProductSide => ({ ...part, access: flat(part.access) });
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

type Flatten = <T extends Access | Write>(access: T) => T;

interface FlatContext extends ProductContext {
  /** The access through a view where there is one. */
  readonly flat: Flatten;
  readonly views: ReadonlyMap<string, FlatView>;
}

/** Axes of the grid, where a block's tile is (batch, group of rows, columns, row of the group), and its tiles. */
interface ProductGrid {
  readonly axes: readonly GridAxis[];
  readonly at: readonly [IndexExpr, IndexExpr, IndexExpr, IndexExpr];
  readonly turns: Turns | undefined;
  readonly part: IndexExpr | undefined;
  /** The axis along which blocks are neighbours. */
  readonly nearest: IndexExpr;
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
  readonly #ranges = new Map<string, IndexRange>();
  readonly #place: ProductPlace;
  readonly #thread: string;
  readonly #writes: NestStatement["writes"];
  readonly #finishReads: NestStatement["finishReads"];

  constructor(region: ScheduledRegion, plan: ProductPlan, context: FlatContext) {
    this.#region = region;
    this.#plan = plan;
    this.#context = context;
    const { form, rows, columns } = plan;
    const [{ statement }] = region.statements as [ScheduledRegion["statements"][number]];
    this.#writes = statement.writes.map(context.flat);
    this.#finishReads = statement.finishReads.map(context.flat);
    const tall = Math.ceil(form.rows.extent / rows);
    const group = Math.min(plan.directive.group, tall);
    const wide = Math.ceil(form.columns.extent / columns);
    const grid = this.#grid([form.batch.extent, Math.ceil(tall / group), wide, group]);
    const [batch, outer, across, below] = grid.at;
    const down = add(mul(group, outer), below);
    this.#axes = grid.axes;
    this.#thread = context.names.fresh("thread");
    const threads = plan.directive.by === "wgmma" ? groupThreads : plan.threads;
    this.#ranges.set(this.#thread, { min: 0, max: threads - 1 });
    this.#place = {
      left: mul(rows, down),
      right: mul(columns, across),
      batch: new Map([...digitsOf(form.batch, batch), ...this.#picked()]),
      thread: this.#thread,
      ranges: this.#ranges,
      turns: grid.turns,
      part: grid.part,
      cluster: clusterOf(plan, grid.nearest),
    };
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

  /** Tiles by batch, groups of rows, columns and rows within the group: the last moves fastest. */
  #grid(extents: readonly [number, number, number, number]): ProductGrid {
    const { names } = this.#context;
    const { blocks, parts } = this.#plan.directive;
    const axis = (name: string, extent: number): GridAxis => {
      this.#ranges.set(name, { min: 0, max: extent - 1 });
      return { name, extent: constant(extent) };
    };
    if (blocks === 0) {
      const stems = ["batch", "down", "across", "below"] as const;
      const axes: GridAxis[] = [];
      const at = extents.map((extent, i) => {
        if (extent === 1) return constant(0);
        const name = names.fresh(stems[i]!);
        axes.push(axis(name, extent));
        return variable(name);
      }) as unknown as ProductGrid["at"];
      const part = parts > 1 ? names.fresh("part") : undefined;
      // Blocks of a cluster are neighbours along the last axis.
      if (part !== undefined) axes.push(axis(part, parts));
      const one = [{ name: names.fresh("block"), extent: constant(1) }];
      const given = axes.length > 0 ? axes : one;
      const nearest = variable(given.at(-1)!.name);
      const own = part === undefined ? undefined : variable(part);
      return { axes: given, at, turns: undefined, part: own, nearest };
    }
    const tiles = extents.reduce((a, b) => a * b, 1);
    const [block, turn] = [names.fresh("block"), names.fresh("turn")];
    const axes = [axis(block, blocks)];
    this.#ranges.set(turn, { min: 0, max: Math.ceil(tiles / blocks) - 1 });
    const isEven = tiles % blocks === 0;
    const count = isEven ? constant(tiles / blocks) : ceilDiv(sub(tiles, variable(block)), blocks);
    let rest = add(mul(blocks, variable(turn)), variable(block));
    const at: IndexExpr[] = [];
    extents.toReversed().forEach((extent, i) => {
      at.unshift(i === extents.length - 1 ? rest : mod(rest, extent));
      rest = floorDiv(rest, extent);
    });
    const turns = { variable: turn, count };
    const where = at as unknown as ProductGrid["at"];
    return { axes, at: where, turns, part: undefined, nearest: variable(block) };
  }

  kernel(name: string): Kernel {
    if (this.#plan.directive.by === "wgmma") return this.#streamed(name);
    const { left, right, threads } = this.#plan;
    const sums = accumulatorsOf(this.#plan, this.#thread);
    const shared = [left, right].map((s) => sharedBuffer(this.#plan, s));
    const buffers: readonly Buffer[] = [...shared, ...sums.buffers];
    const role = { name: "main", copies: 1, threads, threadVariable: this.#thread };
    return this.#whole(name, {
      buffers,
      counters: [],
      roles: [{ ...role, body: this.#body(sums) }],
    });
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
    const how = { names, isWeight, picks: picks.statements };
    const stream = new StreamedProduct(this.#plan, this.#place, how);
    this.#ranges.set(stream.copy, { min: 0, max: stream.copies - 1 });
    const body = new Block(names);
    if (this.#plan.directive.ahead) this.#loadAhead(body, stream.pieces());
    body.push(...stream.multiply());
    if (this.#plan.directive.results > 0) this.#gather(body, stream);
    else {
      body.push(...stream.exchange());
      this.#epilogue(body, stream.pieces());
    }
    return this.#whole(name, stream.parts(stream.perTile(body.statements)));
  }

  /** Loads what the epilogue reads for each piece of the results: where it asks again, they are there. */
  #loadAhead(block: Block, pieces: readonly ResultPiece[]): void {
    const { rows, columns } = this.#plan.form;
    const own = this.#finishReads.filter((r) => isOfResult(r, rows, columns));
    for (const { row, column, lanes } of pieces) {
      const at = [add(this.#place.left, row), add(this.#place.right, column)] as const;
      const site = this.#site(block, at, lanes);
      for (const access of own) this.#operand(access, site, this.#inside(at, lanes));
    }
  }

  /** What an epilogue reads, and only inside. */
  #operand(access: Access, site: Site, inside: readonly Condition[]): Expr {
    return loadAccess({ ...access, guard: [...access.guard, ...inside] }, site);
  }

  #gather(body: Block, stream: StreamedProduct): void {
    const [{ statement }] = this.#region.statements as [ScheduledRegion["statements"][number]];
    const { tensor, index } = statement.writes[0]!;
    const [row] = this.#plan.form.rows.loops;
    const line = (at: IndexExpr): IndexExpr =>
      substitute(index.at(-2)!, new Map([[row!.name, at]]));
    const before = index.slice(0, -2).map((e) => substitute(e, this.#place.batch));
    const { dtype } = this.#region.region.tensors.get(tensor)!;
    const value = (block: Block, { row, column, ...piece }: ResultPiece): Expr => {
      const at = [add(this.#place.left, row), add(this.#place.right, column)] as const;
      const site = this.#site(block, at, piece.lanes);
      return this.#finished(site, piece.value, this.#inside(at, piece.lanes))[0]!;
    };
    stream.gather(body, { tensor, dtype, before, line, value });
  }

  /** What of a tile lies in the result: copies to memory drop the rest, loads must not reach it. */
  #inside([row, column]: readonly [IndexExpr, IndexExpr], lanes: number): readonly Condition[] {
    const { form, rows, columns } = this.#plan;
    return [
      ...(form.rows.extent % rows === 0 ? [] : [less(row, constant(form.rows.extent))]),
      ...(form.columns.extent % columns === 0
        ? []
        : [atMost(add(column, lanes), constant(form.columns.extent))]),
    ];
  }

  #body(sums: Accumulators): readonly Statement[] {
    const { names } = this.#context;
    const { stages, steps } = this.#plan;
    const copies = new StageCopies(this.#plan, this.#place);
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
    block.loop(step, constant(steps), { kind: "serial" }, (body) => {
      const now = variable(step);
      body.push(
        { kind: "waitGroup", group: copyGroup, pending: stages - 2 },
        { kind: "barrier", scope: "instance" },
      );
      const next = add(now, stages - 1);
      body.branch([less(next, constant(steps))], (inside) =>
        copies.issueAsync(inside, next, new Map([[step, { min: 0, max: steps - stages }]])),
      );
      body.push({ kind: "commitGroup", group: copyGroup });
      const later = add(now, 1);
      const inRange = reduceConditions([less(later, constant(steps))], range);
      const stores: Statement[] = [];
      if (copies.sides.every((s) => s.isAsync)) sums.multiply(body, mod(now, stages));
      else {
        body.branch(
          inRange,
          (inside) => {
            stores.push(...copies.load(inside, later, range));
            sums.multiply(inside, mod(now, stages));
            inside.push(...stores);
          },
          (last) => sums.multiply(last, mod(now, stages)),
        );
      }
    });
    this.#epilogue(block, sums.pieces());
    return block.statements;
  }

  /** Pieces of one row stand together under the row's condition. */
  #epilogue(block: Block, pieces: readonly ResultPiece[]): void {
    const { form } = this.#plan;
    const { left, right } = this.#place;
    const rows = new Map<string, ResultPiece[]>();
    for (const piece of pieces) {
      const row = rows.get(piece.row.key);
      if (row) row.push(piece);
      else rows.set(piece.row.key, [piece]);
    }
    for (const inRow of rows.values()) {
      const row = simplify(add(left, inRow[0]!.row), this.#ranges);
      const isRagged = form.rows.extent % this.#plan.rows !== 0;
      block.branch(isRagged ? [less(row, constant(form.rows.extent))] : [], (body) => {
        for (const piece of inRow) {
          const column = simplify(add(right, piece.column), this.#ranges);
          this.#piece(body, row, column, piece);
        }
      });
    }
  }

  #piece(block: Block, row: IndexExpr, column: IndexExpr, { lanes, value }: ResultPiece): void {
    const { form } = this.#plan;
    const { columns } = form;
    // One condition for all pieces, also where some would not need it: so that they tile the result.
    const isRagged = columns.extent % this.#plan.columns !== 0;
    const isFlat = this.#writes.every((w) => this.#context.views.has(w.tensor));
    const last = constantValue(columns.loops.at(-1)?.extent ?? constant(1))!;
    const nearest = isFlat ? columns.extent : last;
    if (!form.isSwapped && nearest % lanes === 0) {
      const whole = [atMost(add(column, lanes), constant(columns.extent))];
      block.branch(isRagged ? whole : [], (body) =>
        this.#finish(body, row, column, { lanes, value }),
      );
      return;
    }
    const sums = block.bind(value);
    for (let lane = 0; lane < lanes; lane++) {
      const at = add(column, lane);
      const one: Expr = { kind: "extract", dtype: form.sum, lanes: 1, operand: sums, lane };
      const isThere = [less(at, constant(columns.extent))];
      block.branch(isRagged ? isThere : [], (body) =>
        this.#finish(body, row, at, { lanes: 1, value: one }),
      );
    }
  }

  /** The statement's epilogue on neighbouring results, and their store. */
  #finish(
    block: Block,
    row: IndexExpr,
    column: IndexExpr,
    { lanes, value }: Pick<ResultPiece, "lanes" | "value">,
  ): void {
    const site = this.#site(block, [row, column], lanes);
    const results = this.#finished(site, value);
    this.#writes.forEach((write, i) => {
      storeWrite(write, results[i]!, [], site);
    });
  }

  /** What the epilogue makes of sums, one value a write. */
  #finished(site: Site, value: Expr, inside: readonly Condition[] = []): readonly Expr[] {
    const [{ statement }] = this.#region.statements as [ScheduledRegion["statements"][number]];
    const sums = site.block.bind(value);
    const operands = this.#finishReads.map((access) => this.#operand(access, site, inside));
    if (!statement.finish) return [sums];
    return statement.finish.map((e) => lowerScalar(e, [sums, ...operands], site));
  }

  #site(block: Block, [row, column]: readonly [IndexExpr, IndexExpr], lanes: number): Site {
    const { form } = this.#plan;
    const laneName = "lane";
    const lane = lanes > 1 ? { name: laneName, lanes } : undefined;
    const laneIndex = lane && variable(laneName);
    const bindings = new Map([
      ...this.#place.batch,
      ...digitsOf(form.rows, row),
      ...digitsOf(form.columns, column, laneIndex && { index: laneIndex, lanes }),
      [flatRow, row] as const,
      [flatColumn, laneIndex ? add(column, laneIndex) : column] as const,
    ]);
    const ranges = lane
      ? new Map(this.#ranges).set(laneName, { min: 0, max: lanes - 1 })
      : this.#ranges;
    const operand = (tensor: string): Operand => {
      const view = this.#context.views.get(tensor);
      if (!view) return this.#context.operand(tensor);
      const { dtype } = this.#region.region.tensors.get(view.of)!;
      return { buffer: tensor, dtype, position: (index) => index };
    };
    const nothing = { loops: new Map(), assumed: new Set<string>(), unguarded: false };
    return { ...nothing, bindings, ranges, lane, operand, block };
  }
}
