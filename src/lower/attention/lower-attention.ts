/**
 * Attention as a kernel of blocks: each block computes a tile of rows of one problem, walks the columns of its
 * scores in steps with a ring of keys and values in shared memory, and hands the results to the epilogue.
 *
 *   copies of queries and of the first stages - 1 steps
 *   for each step: wait for its copies · barrier · copies of step + stages - 1
 *                  scores = queries x keys · weights and running sums · results += weights x values
 *   results by their sums, epilogue, guarded where the tile sticks out
 *
 * The barrier does two things at once: it makes all threads' copies of this step visible, and it comes after
 * everyone's reads of the slot that is overwritten next.
 */
import { applyExpr, loadExpr, splatExpr } from "../../program/expr.ts";
import type { GridAxis, Kernel } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import { argumentsOf } from "../../schedule/attention/attention-bounds.ts";
import {
  columnName,
  isMultiple,
  rowName,
  widthName,
} from "../../schedule/attention/attention-form.ts";
import { sharesOf } from "../../schedule/attention/attention-limits.ts";
import type { ScheduledAttention, ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { atMost, type Condition, less } from "../../semantics/condition.ts";
import {
  add,
  constant,
  type IndexExpr,
  mod,
  mul,
  sub,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRange, rangeOf, simplify } from "../../semantics/index-range.ts";
import type { ScalarExpr } from "../../semantics/scalar-expr.ts";
import { Block, type Names } from "../block.ts";
import { exchangeCounter } from "../cluster-exchange.ts";
import { reduceConditions } from "../conditions.ts";
import { loadAccess, lowerScalar, type Operand, type Site, storeWrite } from "../operands.ts";
import { copyGroup } from "../tiles.ts";
import { TileCopies } from "./copies.ts";
import { DealtResults, type ResultPlace } from "./dealt.ts";
import { ExchangedResults, shareName } from "./exchanged.ts";
import { OnlineSoftmax, type PairPlace, type StepPlace } from "./online-softmax.ts";
import {
  type AttentionPlace,
  type AttentionPlan,
  firstColumn,
  mostTrips,
  planAttention,
  sharedBuffers,
  tripOfAll,
  tripsOf,
} from "./plan.ts";
import { bindReach, type RowsAt, reachOf } from "./reach.ts";
import { type LineView, lineAccess, StreamedAttention } from "./streamed.ts";
import { resultName, ThreadParts } from "./thread-parts.ts";
import { WarpProducts } from "./warp-products.ts";

export interface AttentionContext {
  readonly names: Names;
  readonly operand: (tensor: string) => Operand;
}

export function lowerAttention(
  region: ScheduledRegion,
  { form, directive }: ScheduledAttention,
  name: string,
  context: AttentionContext,
): readonly Kernel[] {
  return new AttentionLowering(region, planAttention(form, directive), context).kernels(name);
}

/** Views through which the tensor copies of a region's attention access memory. */
export function attentionViews({ region, attention }: ScheduledRegion): readonly LineView[] {
  if (attention?.directive.by !== "wgmma") return [];
  const shapeOf = (tensor: string) => region.tensors.get(tensor)!.shape;
  const { query, key, value, writes, result } = attention.form;
  const results = attention.directive.gathered ? [{ access: writes[0]!, box: result! }] : [];
  return [query, key, value, ...results].flatMap(
    ({ access, box }) => lineAccess({ access, ...(box && { box }) }, shapeOf).view ?? [],
  );
}

const laneName = "@lane";

type KernelParts = Pick<Kernel, "buffers" | "counters" | "roles">;

class AttentionLowering {
  readonly #region: ScheduledRegion;
  readonly #plan: AttentionPlan;
  readonly #context: AttentionContext;
  readonly #axes: readonly GridAxis[];
  readonly #ranges = new Map<string, IndexRange>();
  readonly #place: AttentionPlace;
  /** Number of the copy of the role that multiplies. */
  readonly #group: string;
  /** Where parts of the columns meet in memory. */
  readonly #dealt: DealtResults | undefined;

  constructor(region: ScheduledRegion, plan: AttentionPlan, context: AttentionContext) {
    this.#region = region;
    this.#plan = plan;
    this.#context = context;
    const isDealt = plan.directive.splits > 1;
    this.#dealt = isDealt ? new DealtResults(region.region.name, plan, context.names) : undefined;
    const axes: GridAxis[] = [];
    for (const { name, range } of region.region.symbols) this.#ranges.set(name, range);
    const axis = (stem: string, extent: IndexExpr): IndexExpr => {
      const most = rangeOf(extent, this.#ranges).max;
      if (most === 1) return constant(0);
      const own = context.names.fresh(stem);
      axes.push({ name: own, extent });
      this.#ranges.set(own, { min: 0, max: most - 1 });
      return variable(own);
    };
    const batch = plan.form.batch.map((l) => [l.name, axis("problem", l.extent)] as const);
    // The last axis moves fastest: blocks that run at once share the keys and values of a problem.
    const below = axis("down", plan.tileCount);
    // Blocks of a cluster are neighbours along the last axis.
    const part = axis("part", constant(sharesOf(plan.directive)));
    // Those of a triangle with the most steps first: the last ones to end are short.
    const tile = plan.growsDown
      ? simplify(sub(sub(plan.tileCount, 1), below), this.#ranges)
      : below;
    const one = [{ name: context.names.fresh("block"), extent: constant(1) }];
    this.#axes = axes.length > 0 ? axes : one;
    const thread = context.names.fresh("thread");
    this.#group = context.names.fresh("group");
    this.#ranges.set(this.#group, { min: 0, max: plan.groups - 1 });
    this.#ranges.set(thread, { min: 0, max: plan.threads - 1 });
    const reach = reachOf(plan, context.names, this.#ranges);
    this.#place = {
      ...(reach && { reach }),
      tile,
      part,
      firstRow: mul(plan.rows, tile),
      batch: new Map(batch),
      thread,
      ranges: this.#ranges,
      operand: context.operand,
    };
  }

  /** The kernel that meets the columns, and where their parts meet in memory the one that finishes results. */
  kernels(name: string): readonly Kernel[] {
    if (!this.#dealt) return [this.#kernel(name)];
    const merged = this.#dealt.merge(`${name}.1`, (block, at, value) =>
      this.#finishVector(block, at, value),
    );
    return [this.#kernel(`${name}.0`), merged];
  }

  #kernel(name: string): Kernel {
    const plan = this.#plan;
    const group = plan.groups === 1 ? 0 : variable(this.#group);
    const parts = new ThreadParts(plan, this.#place.thread, group);
    const softmax = new OnlineSoftmax(plan, parts, this.#context.names);
    const how =
      plan.directive.by === "wgmma"
        ? this.#byGroups(parts, softmax)
        : this.#byWarps(parts, softmax);
    const shared = [plan.query, plan.key, plan.value].flatMap((s) => sharedBuffers(plan, s));
    return {
      name,
      grid: this.#grid,
      ...how,
      buffers: [...shared, ...parts.buffers, ...how.buffers, ...softmax.buffers],
      region: this.#region.region.name,
    };
  }

  get #grid(): Kernel["grid"] {
    const { parts: clusterSize } = this.#plan.directive;
    const unit = clusterSize > 1 ? "clusters" : "blocks";
    return { unit, axes: this.#axes, clusterSize, resident: false };
  }

  #byGroups(parts: ThreadParts, softmax: OnlineSoftmax): KernelParts {
    const { tensors } = this.#region.region;
    const shapeOf = (tensor: string) => tensors.get(tensor)!.shape;
    const { names } = this.#context;
    const stream = new StreamedAttention(this.#plan, this.#place, {
      ...{ names, shapeOf, group: this.#group },
      bind: (body) => this.#bindReach(body, false),
    });
    const block = new Block(names);
    const bounds = this.#bindReach(block);
    parts.clear(block, resultName, this.#plan.form.width);
    softmax.clear(block);
    stream.consume(block, {
      weigh: (body, step, ranges) => this.#weigh(body, softmax, step, { ranges, bounds }),
      scale: (body) => softmax.scale(body),
      narrow: (body) => softmax.narrow(body),
    });
    softmax.sumRows(block);
    if (this.#plan.directive.gathered) this.#gather(block, stream, parts, softmax);
    else this.#epilogue(block, parts, softmax);
    return stream.parts(block.statements);
  }

  /** What data says of the columns that a tile's rows meet: steps are the same for all threads of a block. */
  #bindReach(block: Block, isMasking = true): StepPlace["bounds"] {
    const { reach } = this.#plan.form;
    if (!reach) return undefined;
    const { batch, ranges } = this.#place;
    const { operand } = this.#context;
    const nothing = { loops: new Map(), assumed: new Set<string>(), unguarded: false };
    const given = { ...nothing, bindings: batch, ranges, lane: undefined, operand };
    const lower = (value: ScalarExpr, block: Block, at?: RowsAt): Expr => {
      const site = { ...given, ...(at && this.#rowSite(at)), block };
      const guard = at?.isOpen ? this.#isRow(at.row) : [];
      const reads: Expr[] = [];
      for (const n of new Set(argumentsOf(value))) {
        const access = reach.reads[n]!;
        reads[n] = loadAccess({ ...access, guard: [...access.guard, ...guard] }, site);
      }
      return lowerScalar(value, reads, site);
    };
    return bindReach(this.#plan, this.#place, { lower, isMasking }, block);
  }

  /** Neighbouring rows as lanes. */
  #rowSite({ row, lanes }: RowsAt): Pick<Site, "bindings" | "ranges" | "lane"> {
    const { batch, ranges } = this.#place;
    const at = lanes === 1 ? row : add(row, variable(laneName));
    return {
      bindings: new Map([...batch, [rowName!, at] as const]),
      ranges: new Map(ranges).set(laneName, { min: 0, max: lanes - 1 }),
      lane: lanes === 1 ? undefined : { name: laneName, lanes },
    };
  }

  /** Weights and sums of a step. */
  #weigh(
    block: Block,
    softmax: OnlineSoftmax,
    step: IndexExpr,
    where: Pick<StepPlace, "ranges" | "bounds">,
  ): void {
    const { firstRow } = this.#place;
    const column = firstColumn(this.#plan, this.#place, step);
    const at = { firstRow, firstColumn: column, trip: step, ...where };
    softmax.weigh(block, at, (own, place, sums) => this.#score(own, place, sums));
  }

  #byWarps(parts: ThreadParts, softmax: OnlineSoftmax): KernelParts {
    const products = new WarpProducts(this.#plan, parts);
    const { threads } = this.#plan;
    const { thread: threadVariable } = this.#place;
    const { parts: count } = this.#plan.directive;
    const { names } = this.#context;
    const dealt = this.#dealt;
    const exchanged =
      count > 1
        ? new ExchangedResults(this.#plan, parts, {
            ...{ names, rank: this.#place.part, thread: threadVariable },
          })
        : undefined;
    const block = this.#walk(parts, products, softmax);
    if (exchanged) exchanged.combine(block, softmax);
    else softmax.sumRows(block);
    if (dealt) dealt.store(block, parts, this.#place, (row) => this.#isRow(row));
    else this.#epilogue(block, parts, softmax);
    const body = block.statements;
    const role = { name: "main", copies: 1, threads, threadVariable, body };
    const buffers = [...products.buffers, ...(exchanged?.buffers ?? [])];
    return { buffers, counters: exchanged ? [exchangeCounter(1)] : [], roles: [role] };
  }

  /** The steps of a block, with its results so far at the end. */
  #walk(parts: ThreadParts, products: WarpProducts, softmax: OnlineSoftmax): Block {
    const { names } = this.#context;
    const { stages, form } = this.#plan;
    // One stage is for one step, whose copies come with the queries.
    const ahead = Math.max(1, stages - 1);
    const copies = new TileCopies(this.#plan, this.#place);
    const block = new Block(names);
    parts.clear(block, resultName, this.#plan.form.width);
    softmax.clear(block);
    const bounds = this.#bindReach(block);
    const trips = simplify(tripsOf(this.#plan, this.#place), this.#ranges);
    const most = mostTrips(this.#plan);
    // Trips end elsewhere in each block: copies are guarded by column alone.
    const isOpen =
      form.reach !== undefined ||
      (this.#plan.isTriangular &&
        this.#plan.windowTrips === undefined &&
        sharesOf(this.#plan.directive) === 1);
    const copy = (into: Block, trip: IndexExpr, ranges: Map<string, IndexRange>): void => {
      const ends = isOpen ? [] : [less(trip, trips)];
      const isTrip = reduceConditions(ends, new Map([...this.#ranges, ...ranges]));
      into.branch(isTrip, (inside) => {
        const start = firstColumn(
          this.#plan,
          this.#place,
          tripOfAll(this.#plan, this.#place, trip),
        );
        copies.step(inside, start, mod(trip, stages), ranges);
      });
      into.push({ kind: "commitGroup", group: copyGroup });
    };
    const await_ = (into: Block): void =>
      into.push(
        { kind: "waitGroup", group: copyGroup, pending: ahead - 1 },
        { kind: "barrier", scope: "instance" },
      );
    copies.queries(block);
    const first = names.fresh("first");
    const begun = new Map([[first, { min: 0, max: ahead - 1 }]]);
    block.loop(first, constant(ahead), { kind: "unrolled" }, (body) =>
      copy(body, variable(first), begun),
    );
    await_(block);
    products.loadQueries(block);
    const trip = names.fresh("trip");
    const ranges = new Map([[trip, { min: 0, max: most - 1 }]]);
    block.loop(trip, trips, { kind: "serial" }, (body) => {
      const now = variable(trip);
      if (stages > 1) {
        await_(body);
        copy(body, add(now, ahead), ranges);
      }
      const slot = mod(now, stages);
      products.multiplyKeys(body, slot);
      const within = new Map([...this.#ranges, ...ranges]);
      this.#weigh(body, softmax, tripOfAll(this.#plan, this.#place, now), {
        ranges: within,
        bounds,
      });
      softmax.scale(body);
      softmax.narrow(body);
      products.multiplyValues(body, slot);
    });
    // Zeros for what is past the last trip are still on their way.
    if (isOpen) block.push({ kind: "waitGroup", group: copyGroup, pending: 0 });
    return block;
  }

  /** A pair of neighbouring scores from their sums. */
  #score(block: Block, place: PairPlace, sums: Expr): Expr {
    const { form } = this.#plan;
    const site = this.#site(block, place);
    const operands = form.scoreReads.map((access) =>
      loadAccess({ ...access, guard: [...access.guard, ...this.#inside(place)] }, site),
    );
    return lowerScalar(form.score, [sums, ...operands], site);
  }

  /** Where a pair of scores is there: of columns both, unless they are odd. */
  #inside({ row, column, ranges }: PairPlace): readonly Condition[] {
    const { form, rows, columns } = this.#plan;
    const isEven = isMultiple(form.columnCount, 2);
    const last = isEven ? add(column, 1) : add(column, variable(laneName));
    return reduceConditions(
      [
        ...(isMultiple(form.rowCount, rows) ? [] : [less(row, form.rowCount)]),
        ...(isMultiple(form.columnCount, columns) ? [] : [less(last, form.columnCount)]),
      ],
      ranges,
    );
  }

  #site(block: Block, place: PairPlace): Site {
    return this.#siteOf(block, { ...place, batch: this.#place.batch, lanes: 2 });
  }

  #siteOf(block: Block, { row, column, ranges, batch, lanes }: ResultPlace): Site {
    const lane = { name: laneName, lanes };
    const bindings = new Map([
      ...batch,
      [rowName!, row] as const,
      [columnName!, add(column, variable(laneName))] as const,
      [widthName!, add(column, variable(laneName))] as const,
    ]);
    const nothing = { loops: new Map(), assumed: new Set<string>(), unguarded: false };
    const within = new Map(ranges).set(laneName, { min: 0, max: lanes - 1 });
    return {
      ...nothing,
      bindings,
      ranges: within,
      lane,
      operand: this.#context.operand,
      block,
    };
  }

  #epilogue(block: Block, parts: ThreadParts, softmax: OnlineSoftmax): void {
    const { form, rows, directive } = this.#plan;
    const shares = softmax.shares(block);
    const width = form.width / directive.parts;
    const results = directive.parts > 1 ? shareName : resultName;
    shares.forEach((halves, i) => {
      halves.forEach((share, half) => {
        const row = simplify(add(this.#place.firstRow, parts.row(i, half)), this.#ranges);
        const isRagged = !isMultiple(form.rowCount, rows);
        const isRow = isRagged ? [atMost(add(row, 1), form.rowCount)] : [];
        block.branch(isRow, (body) => {
          for (let j = 0; j < width / 8; j++) {
            const sums = loadExpr(results, parts.pair(i, j, half), { dtype: "f32", lanes: 2 });
            const value = applyExpr("mul", sums, splatExpr(share, 2));
            const column = add(parts.column(j), mul(width, this.#place.part));
            this.#finish(body, { row, column, ranges: this.#ranges }, value);
          }
        });
      });
    });
  }

  #gather(
    block: Block,
    stream: StreamedAttention,
    parts: ThreadParts,
    softmax: OnlineSoftmax,
  ): void {
    const { form } = this.#plan;
    const [shares] = softmax.shares(block);
    stream.gather(block, parts.warpRow, (body, half, j) => {
      const sums = loadExpr(resultName, parts.pair(0, j, half), { dtype: "f32", lanes: 2 });
      const value = applyExpr("mul", sums, splatExpr(shares![half]!, 2));
      const row = simplify(add(this.#place.firstRow, parts.row(0, half)), this.#ranges);
      const site = this.#site(body, { row, column: parts.column(j), ranges: this.#ranges });
      const guarded = form.finishReads.map((access) =>
        loadAccess({ ...access, guard: [...access.guard, ...this.#isRow(row)] }, site),
      );
      return lowerScalar(form.finish[0]!, [body.bind(value), ...guarded], site);
    });
  }

  /** Where a row of the tile is one of the operand. */
  #isRow(row: IndexExpr): readonly Condition[] {
    const { form, rows } = this.#plan;
    return isMultiple(form.rowCount, rows) ? [] : [less(row, form.rowCount)];
  }

  /** The statement's epilogue on two neighbouring results, and their store. */
  #finish(block: Block, place: PairPlace, value: Expr): void {
    this.#finishVector(block, { ...place, batch: this.#place.batch, lanes: 2 }, value);
  }

  /** The same on some neighbouring results of any kernel. */
  #finishVector(block: Block, place: ResultPlace, value: Expr): void {
    const { form } = this.#plan;
    const site = this.#siteOf(block, place);
    const result = block.bind(value);
    const operands = form.finishReads.map((access) => loadAccess(access, site));
    form.writes.forEach((write, n) => {
      const made = lowerScalar(form.finish[n]!, [result, ...operands], site);
      storeWrite(write, made, [], site);
    });
  }
}
