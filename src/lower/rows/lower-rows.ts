/**
 * All statements of a region over rows as one kernel of blocks. The threads of a row take its elements in
 * vectors, thread after thread, so that a warp touches whole lines; a thread has the same elements in every
 * statement.
 *
 *   load what several statements read          kept in registers, the last `shared` vectors in shared memory
 *   for each statement in order
 *     fold   own elements · halves of the warp · [warps through shared memory · barrier] · every thread has it
 *     scan   vector after vector: own lanes · threads before in the warp · warps before · what is carried
 *     map    own elements, kept for later statements, stored where others want them
 *     once   every thread for itself
 *
 * With `keep operands` elements that a map made are computed again for later statements; with `keep memory`
 * nothing is kept but values a row: the vectors are a loop, and operands are read again too (from the nearest
 * cache that has the row). Numbers are the schedule's; the validator proves that what threads tell each other
 * has arrived.
 */
import { loadExpr, storeTo } from "../../program/expr.ts";
import { findValueIntrinsic } from "../../program/intrinsic-table.ts";
import type { Buffer, GridAxis, Kernel } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import type { Access, Write } from "../../region/nest.ts";
import { accessKey } from "../../region/statement.ts";
import type { RowsDirective } from "../../schedule/directive.ts";
import {
  chunksOf,
  combinedInWarp,
  elementLanes,
  elementLoop,
  inOrderOf,
  movesAlong,
  type RowStatement,
  type RowsForm,
  rowLanes,
  rowLoop,
  sentLanes,
  sharedReads,
  turnsOf,
  vectorLanes,
} from "../../schedule/rows/rows-form.ts";
import {
  type ScheduledRegion,
  type ScheduledRows,
  symbolRanges,
} from "../../schedule/scheduled-region.ts";
import { type Condition, less } from "../../semantics/condition.ts";
import { type DType, zeroOf } from "../../semantics/dtype.ts";
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
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRange, loopRange, simplify } from "../../semantics/index-range.ts";
import type { Monoid } from "../../semantics/monoids.ts";
import { invariant } from "../../support/invariant.ts";
import { Block, type Names } from "../block.ts";
import { exchangeCounter, receivedBuffer } from "../cluster-exchange.ts";
import { reduceConditions } from "../conditions.ts";
import { combineInOrder, freeze, lanesOf } from "../exchange.ts";
import { accumulatedAs, asFolded } from "../narrow-extremes.ts";
import {
  loadAccess,
  lowerScalar,
  multiplyOperands,
  type Operand,
  type Site,
  splatOf,
  storeWrite,
} from "../operands.ts";
import { type KeptVectors, loadKept, makeKept, stagedVectors, storeKept } from "./kept-vectors.ts";
import { byLanes, conditionsInside } from "./row-ends.ts";
import { RowScan } from "./row-scan.ts";
import { type TotalPlace, totalOfRow } from "./row-totals.ts";
import { laneName, type RowPlace } from "./row-warps.ts";

export interface RowsContext {
  readonly names: Names;
  readonly operand: (tensor: string) => Operand;
  /** Multiply-add may be fused. */
  readonly fused: boolean;
  /** Pairs of floats of 16 bits are compared in one instruction. */
  readonly comparesPairs: boolean;
}

export function lowerRows(
  region: ScheduledRegion,
  rows: ScheduledRows,
  name: string,
  context: RowsContext,
): Kernel {
  return new RowsLowering(region, rows, context).kernel(name);
}

/** One vector of a thread: its elements, and what holds where they are in the row. */
interface Chunk {
  /** Number among the vectors of the thread, where each has registers of its own. */
  readonly at: number;
  /** How many vectors of the thread came before in its statement. */
  readonly turn: IndexExpr;
  readonly block: Block;
  /** The first element. */
  readonly from: IndexExpr;
  /** Not known to hold: the elements are inside. */
  readonly inside: readonly Condition[];
  readonly ranges: ReadonlyMap<string, IndexRange>;
}

class RowsLowering {
  readonly #region: ScheduledRegion;
  readonly #form: RowsForm;
  readonly #directive: RowsDirective;
  readonly #context: RowsContext;
  readonly #buffers: Buffer[] = [];
  readonly #axes: GridAxis[] = [];
  readonly #ranges = new Map<string, IndexRange>();
  readonly #bindings = new Map<string, IndexExpr>();
  readonly #thread: string;
  /** Number of the thread among those of its row, and of the row, or vector of rows, among those of its block. */
  readonly #inRow: IndexExpr;
  readonly #row: IndexExpr;
  /** Number of the block among those that share its rows, and of exchanges of theirs so far. */
  readonly #rank: IndexExpr;
  #exchanges = 0;
  /** Not known to hold: the row is one. */
  readonly #isRow: readonly Condition[];
  /** Vectors of operands and elements by access key or tensor, and values a row. */
  readonly #kept = new Map<string, KeptVectors>();
  readonly #values = new Map<string, Expr>();

  constructor(region: ScheduledRegion, { form, directive }: ScheduledRows, context: RowsContext) {
    this.#region = region;
    this.#form = form;
    this.#directive = directive;
    this.#context = context;
    for (const [name, range] of symbolRanges(region.region)) this.#ranges.set(name, range);
    const { threads, rows, across, parts } = directive;
    this.#thread = context.names.fresh("thread");
    this.#ranges.set(this.#thread, { min: 0, max: threads * rows - 1 });
    const thread = variable(this.#thread);
    // Across rows those beside each other in memory are neighbouring threads.
    const [inner, outer] = across ? [rows, threads] : [threads, rows];
    const [low, high] =
      outer === 1 ? [thread, constant(0)] : [mod(thread, inner), floorDiv(thread, inner)];
    [this.#row, this.#inRow] = across ? [low, high] : [high, low];
    this.#isRow = this.#bindRows();
    this.#rank = parts > 1 ? this.#axis("part", constant(parts)) : constant(0);
  }

  #axis(stem: string, extent: IndexExpr): IndexExpr {
    const name = this.#context.names.fresh(stem);
    this.#axes.push({ name, extent });
    this.#ranges.set(name, loopRange(extent, this.#ranges));
    return variable(name);
  }

  /** Axes of the grid for the loops over rows; the last one is dealt out in groups. */
  #bindRows(): readonly Condition[] {
    const { rows } = this.#directive;
    const vector = rowLanes(this.#directive);
    const isRow: Condition[] = [];
    this.#form.rows.forEach((extent, n) => {
      const isLast = n === this.#form.rows.length - 1;
      const together = isLast ? rows * vector : 1;
      const axis = this.#axis("row", simplify(ceilDiv(extent, together), this.#ranges));
      const row = isLast ? add(mul(together, axis), mul(vector, this.#row)) : axis;
      this.#bindings.set(rowLoop(n), row);
      if (together > 1) isRow.push(less(row, extent));
    });
    return reduceConditions(isRow, this.#ranges);
  }

  kernel(name: string): Kernel {
    const block = new Block(this.#context.names);
    if (this.#directive.keep !== "memory") this.#keepOperands(block);
    for (const s of this.#form.statements) {
      if (s.work === "fold") this.#fold(s, block);
      else if (s.work === "scan") this.#scan(s, block);
      else if (s.work === "map") this.#map(s, block);
      else this.#once(s, block);
    }
    const one = [{ name: this.#context.names.fresh("block"), extent: constant(1) }];
    const axes = this.#axes.length > 0 ? this.#axes : one;
    const { threads, rows, parts } = this.#directive;
    const isShared = this.#exchanges > 0;
    if (isShared) this.#buffers.push(this.#received());
    const role = { name: "main", copies: 1, threads: threads * rows, threadVariable: this.#thread };
    return {
      name,
      grid: { unit: parts > 1 ? "clusters" : "blocks", axes, clusterSize: parts, resident: false },
      buffers: this.#buffers,
      counters: isShared ? [exchangeCounter(this.#exchanges)] : [],
      roles: [{ ...role, body: block.statements }],
      region: this.#region.region.name,
    };
  }

  /** Places for what blocks of a cluster send each other, for each fold its own. */
  #received(): Buffer {
    const { parts, across, rows, lanes } = this.#directive;
    const components = this.#form.statements.map(
      (s) => s.statement.reduction?.monoid.components.length ?? 0,
    );
    const threads = across ? (rows * lanes) / sentLanes : 1;
    return receivedBuffer(Math.max(...components), { parts, copies: this.#exchanges, threads });
  }

  /** Elements that are read more than once come once, all of a thread's on the way together. */
  #keepOperands(block: Block): void {
    const turns = turnsOf(this.#form, this.#directive.keep, (tensor) => this.#isWanted(tensor));
    for (const access of sharedReads(this.#form, turns)) {
      const { shared } = this.#directive;
      const kept = this.#keep(access.tensor, shared);
      const last = chunksOf(this.#form, this.#directive) - 1;
      let staged: readonly (readonly [number, Expr])[] = [];
      this.#eachChunk(block, (chunk) => {
        const loaded = this.#load(access, chunk);
        if (chunk.at < kept.inRegisters) {
          chunk.block.push(storeKept(kept, chunk.at, loaded));
          return;
        }
        staged = [...staged, [chunk.at, freeze(loaded, this.#context.names, chunk.block)]];
        if (staged.length < stagedVectors(kept) && chunk.at < last) return;
        chunk.block.push(...staged.map(([at, value]) => storeKept(kept, at, value)));
        staged = [];
      });
      this.#kept.set(accessKey(access), kept);
    }
  }

  /** Places for a vector of each chunk. */
  #keep(tensor: string, inShared: number): KeptVectors {
    const { threads, rows } = this.#directive;
    return makeKept(`${tensor}.row`, {
      ...{ dtype: this.#dtypeOf(tensor), lanes: vectorLanes(this.#directive) },
      ...{ count: chunksOf(this.#form, this.#directive), inShared, threads: threads * rows },
      ...{ thread: this.#thread, names: this.#context.names, buffers: this.#buffers },
    });
  }

  #makeBuffer(stem: string, parts: Pick<Buffer, "scope" | "dtype" | "lanes" | "shape">): string {
    const name = this.#context.names.freshBuffer(stem);
    this.#buffers.push({ name, kind: "scratch", ...parts });
    return name;
  }

  /**
   * Each vector of the thread: copied out where they have registers, else a loop, beside which the first one is
   * copied out where it is `apart`, and the one that the row ends in.
   */
  #eachChunk(
    block: Block,
    fill: (chunk: Chunk) => void,
    { reversed = false, apart = false }: { reversed?: boolean; apart?: boolean } = {},
  ): void {
    const { threads, parts, keep } = this.#directive;
    const lanes = elementLanes(this.#directive);
    const width = lanes * threads * parts;
    const first = mul(lanes, add(mul(threads, this.#rank), this.#inRow));
    const chunk = (parts: Omit<Chunk, "inside">): void => {
      const rows = { form: this.#form, directive: this.#directive, isRow: this.#isRow };
      fill({ ...parts, inside: conditionsInside({ ...rows, bindings: this.#bindings }, parts) });
    };
    if (keep !== "memory") {
      const chunks = chunksOf(this.#form, this.#directive);
      for (let turn = 0; turn < chunks; turn++) {
        const at = reversed ? chunks - 1 - turn : turn;
        const from = simplify(add(first, width * at), this.#ranges);
        // What is computed for one statement is no other's.
        const own = block.inner();
        chunk({ at, turn: constant(turn), block: own, from, ranges: this.#ranges });
        block.push(...own.statements);
      }
      return;
    }
    const extent = simplify(ceilDiv(this.#form.length, width), this.#ranges);
    const partOf = (turn: IndexExpr): IndexExpr => (reversed ? sub(sub(extent, 1), turn) : turn);
    const placeOf = (turn: IndexExpr, ranges: Chunk["ranges"]): IndexExpr =>
      simplify(add(first, mul(width, partOf(turn))), ranges);
    const alone = (turn: IndexExpr): void => {
      const own = block.inner();
      chunk({ at: 0, turn, block: own, from: placeOf(turn, this.#ranges), ranges: this.#ranges });
      block.push(...own.statements);
    };
    // Where a row ends within a turn of its threads, the others need no guards: their loads are on the way together.
    const turns = constantValue(extent);
    const isCut = turns !== undefined && turns > 1 && constantValue(this.#form.length)! % width > 0;
    const before = apart || (isCut && reversed) ? 1 : 0;
    const behind = isCut && !reversed ? 1 : 0;
    if (before > 0) alone(constant(0));
    const rest = sub(extent, before + behind);
    if (constantValue(rest) !== 0) {
      const trip = this.#context.names.fresh("part");
      const ranges = new Map(this.#ranges).set(trip, loopRange(rest, this.#ranges));
      block.loop(trip, rest, { kind: "serial" }, (inside) => {
        const turn = add(variable(trip), before);
        chunk({ at: 0, turn, block: inside, from: placeOf(turn, ranges), ranges });
      });
    }
    if (behind > 0) alone(sub(extent, 1));
  }

  #site({ block, from, ranges }: Pick<Chunk, "block" | "from" | "ranges">): Site {
    const lanes = vectorLanes(this.#directive);
    const lane = lanes > 1 ? { name: laneName, lanes } : undefined;
    const bindings = new Map(this.#bindings).set(elementLoop, from);
    if (lane) {
      const isBeside = rowLanes(this.#directive) > 1;
      const along = isBeside ? rowLoop(this.#form.rows.length - 1) : elementLoop;
      bindings.set(along, add(bindings.get(along)!, variable(lane.name)));
    }
    return {
      bindings,
      loops: new Map(),
      ranges: lane ? new Map(ranges).set(lane.name, { min: 0, max: lanes - 1 }) : ranges,
      lane,
      operand: this.#context.operand,
      assumed: new Set(),
      unguarded: false,
      block,
    };
  }

  /** The site of values a row, where no element is meant: of a vector of rows, or of one. */
  #rowSite(block: Block): Site {
    const site = this.#site({ block, from: constant(0), ranges: this.#ranges });
    return rowLanes(this.#directive) > 1
      ? site
      : { ...site, lane: undefined, bindings: this.#bindings };
  }

  #load(access: Access, chunk: Chunk): Expr {
    const { inside } = chunk;
    return loadAccess({ ...access, guard: [...access.guard, ...inside] }, this.#site(chunk));
  }

  /** The value of a read for a vector of the row, made, kept or loaded. */
  #read(access: Access, chunk: Chunk): Expr {
    const lanes = vectorLanes(this.#directive);
    const { made, statements } = this.#form;
    const isElement = movesAlong(access);
    const known = made.get(access.tensor);
    if (known === "row") return splatOf(this.#values.get(access.tensor)!, lanes, chunk.block);
    const kept = this.#kept.get(known ? access.tensor : accessKey(access));
    if (kept) return chunk.block.bind(loadKept(kept, chunk.at));
    if (!known && isElement) return this.#load(access, chunk);
    if (!known) return splatOf(this.#rowValue(access, chunk.block), lanes, chunk.block);
    const maker = statements.find(({ statement }) =>
      statement.writes.some((w) => w.tensor === access.tensor),
    );
    invariant(maker, () => `nothing makes ${access.tensor}`);
    const values = this.#elements(maker, chunk);
    const at = maker.statement.writes.findIndex((w) => w.tensor === access.tensor);
    return chunk.block.bind(values[at]!);
  }

  /** A value that is one for the whole row. */
  #rowValue(access: Access, block: Block): Expr {
    const made = this.#values.get(access.tensor);
    if (made) return made;
    return loadAccess(
      { ...access, guard: [...access.guard, ...this.#isRow] },
      this.#rowSite(block),
    );
  }

  /** What a map makes of the elements of a vector, one value a write. */
  #elements({ statement }: RowStatement, chunk: Chunk): readonly Expr[] {
    const site = this.#site(chunk);
    const args = statement.reads.map((access) => this.#read(access, chunk));
    const values = statement.body.map((e) => chunk.block.bind(lowerScalar(e, args, site)));
    if (!statement.finish) return values;
    const operands = statement.finishReads.map((access) => this.#read(access, chunk));
    return statement.finish.map((e) => lowerScalar(e, [...values, ...operands], site));
  }

  #map(s: RowStatement, block: Block): void {
    const { writes } = s.statement;
    if (!writes.some((w) => this.#isKept(w) || this.#isWanted(w.tensor))) return;
    this.#keepResults(s);
    // In the order of scans before it: what is scanned then need not wait in a register for its turn.
    const scans = this.#form.statements.filter(({ work }) => work === "scan");
    const reversed = scans.length > 0 && scans.every((scan) => scan.reversed);
    const each = (chunk: Chunk): void => this.#leave(s, this.#elements(s, chunk), chunk);
    this.#eachChunk(block, each, { reversed });
  }

  #isKept({ tensor }: Write): boolean {
    return this.#form.made.has(tensor) && this.#directive.keep === "registers";
  }

  #keepResults({ statement }: RowStatement): void {
    for (const { tensor } of statement.writes.filter((w) => this.#isKept(w))) {
      this.#kept.set(tensor, this.#keep(tensor, 0));
    }
  }

  /** What a statement makes of a vector goes where others find it. */
  #leave({ statement }: RowStatement, made: readonly Expr[], chunk: Chunk): void {
    const values = made.map((v) => chunk.block.bind(v));
    statement.writes.forEach((write, i) => {
      if (this.#isKept(write)) {
        chunk.block.push(storeKept(this.#kept.get(write.tensor)!, chunk.at, values[i]!));
      }
      if (this.#isWanted(write.tensor)) {
        const { ofLanes, whole } = byLanes(chunk.inside);
        chunk.block.branch(whole, (block) => {
          storeWrite(write, values[i]!, ofLanes, this.#site({ ...chunk, block }));
        });
      }
    });
  }

  #placeOf(at: string): RowPlace {
    const { threads, rows, across } = this.#directive;
    return {
      ...{ threads, rows, across, thread: variable(this.#thread), inRow: this.#inRow },
      ...{ row: this.#row, ranges: this.#ranges, buffers: this.#buffers },
      ...{ names: this.#context.names, at },
    };
  }

  /** Where the threads of a row are to what they fold for the statement. */
  #totalPlace(at: string): TotalPlace {
    const { parts } = this.#directive;
    const exchange = parts > 1 ? { parts, rank: this.#rank, copy: this.#exchanges++ } : undefined;
    return {
      ...this.#placeOf(at),
      ...{ lanes: rowLanes(this.#directive), threadName: this.#thread },
      ...{ inWarp: combinedInWarp(this.#directive), ...(exchange && { exchange }) },
    };
  }

  #scan(s: RowStatement, block: Block): void {
    const { statement, reversed = false } = s;
    const { reduction, finish } = statement;
    invariant(reduction && finish, () => `${statement.name} scans nothing`);
    const place = { ...this.#placeOf(statement.name), lanes: elementLanes(this.#directive) };
    const scan = new RowScan(reduction.monoid, reversed, place, block);
    this.#keepResults(s);
    const each = (chunk: Chunk): void => {
      const site = this.#site(chunk);
      const args = statement.reads.map((access) => this.#read(access, chunk));
      const elements = (inner: Block): readonly Expr[] =>
        statement.body.map((e) => lowerScalar(e, args, { ...site, block: inner }));
      const { ofLanes, whole } = byLanes(this.#partial(chunk));
      const vectors =
        whole.length > 0 ? scan.inside(whole, elements, chunk.block) : elements(chunk.block);
      const found = scan.upTo(vectors, { turn: chunk.turn, ofLanes }, chunk.block);
      const values = finish.map((e) => lowerScalar(e, found, site));
      this.#leave(s, values, chunk);
    };
    this.#eachChunk(block, each, { reversed });
  }

  /** Whether someone outside the region reads what is written. */
  #isWanted(tensor: string): boolean {
    return this.#region.region.tensors.get(tensor)!.role !== "local";
  }

  #once({ statement }: RowStatement, block: Block): void {
    const site = this.#rowSite(block);
    const args = statement.reads.map((access) => this.#rowValue(access, block));
    const values = statement.body.map((e) => block.bind(lowerScalar(e, args, site)));
    this.#finishRow({ statement }, values, block);
  }

  #fold(s: RowStatement, block: Block): void {
    const { statement } = s;
    const { reduction } = statement;
    invariant(reduction, () => `${statement.name} folds nothing`);
    const inOrder = inOrderOf(s, this.#form, this.#directive);
    const kept = inOrder ? rowLanes(this.#directive) : vectorLanes(this.#directive);
    const { comparesPairs } = this.#context;
    const own = accumulatedAs(statement, reduction.monoid, { lanes: kept, comparesPairs });
    const { monoid } = own;
    const sums = monoid.components.map(({ dtype }) =>
      this.#makeBuffer("acc", { scope: "register", dtype, lanes: kept, shape: [constant(1)] }),
    );
    const start = (at: Block): void => {
      monoid.identity.forEach((identity, i) => {
        invariant(identity.kind === "literal", () => "a monoid's identity is a literal");
        const { dtype, value } = identity;
        at.push(storeTo(sums[i]!, [0], { kind: "literal", dtype, lanes: kept, value }));
      });
    };
    if (!inOrder) start(block);
    const each = (chunk: Chunk): void => {
      const site = this.#site(chunk);
      const args = statement.reads.map((access) => this.#read(access, chunk));
      const partial = this.#partial(chunk);
      const isFirst = inOrder !== undefined && constantValue(chunk.turn) === 0;
      if (isFirst && partial.length > 0) start(chunk.block);
      chunk.block.branch(partial, (inner) => {
        const values = own.body.map((e) => lowerScalar(e, args, { ...site, block: inner }));
        if (inOrder) this.#append(sums, values, { inOrder, isFirst }, inner);
        else this.#combineInto(sums, values, monoid, { ...site, block: inner });
      });
    };
    this.#eachChunk(block, each, { apart: inOrder !== undefined });
    const ofThread = sums.map((name, i) => {
      const { dtype } = monoid.components[i]!;
      const sum = loadExpr(name, [0], { dtype, lanes: kept }, { guard: [], fill: zeroOf(dtype) });
      return freeze(sum, this.#context.names, block);
    });
    const wide = asFolded(ofThread, reduction.monoid).map((v) => block.bind(v));
    const place = this.#totalPlace(statement.name);
    this.#finishRow(s, totalOfRow(wide, reduction.monoid, place, block), block);
  }

  /** Rows that are none fold what their loads were filled with; only their elements matter here. */
  #partial({ inside }: Chunk): readonly Condition[] {
    const isRow = new Set(this.#isRow.map((c) => c.expr.key));
    return inside.filter((c) => !isRow.has(c.expr.key));
  }

  /** What a thread has, and behind it the elements of a vector; the first ones are what it has. */
  #append(
    sums: readonly string[],
    values: readonly Expr[],
    { inOrder, isFirst }: { readonly inOrder: Monoid["combine"]; readonly isFirst: boolean },
    block: Block,
  ): void {
    const { names } = this.#context;
    const vectors = values.map((v) => block.bind(v));
    const isBeside = rowLanes(this.#directive) > 1;
    const elements = isBeside ? [vectors] : lanesOf(vectors, elementLanes(this.#directive));
    const own = combineInOrder(inOrder, elements, block);
    const before = (): readonly Expr[] =>
      sums.map((name, i) => freeze(loadExpr(name, [0], own[i]!), names, block));
    const of = own[0]!.lanes;
    const all = isFirst ? own : combineInOrder(inOrder, [before(), own], block, of);
    const ready = all.map((v) => freeze(v, names, block));
    ready.forEach((value, i) => {
      block.push(storeTo(sums[i]!, [0], value));
    });
  }

  #combineInto(sums: readonly string[], values: readonly Expr[], monoid: Monoid, site: Site): void {
    const { block } = site;
    const { names, fused } = this.#context;
    const lanes = site.lane?.lanes ?? 1;
    const old = sums.map((name, i) => this.#sum(name, monoid.components[i]!.dtype));
    const product = monoid.name === "sum" ? multiplyOperands(values[0]!) : undefined;
    const intrinsic = lanes === 1 ? "fma.f32" : `fma.f32x${lanes}`;
    if (product && fused && findValueIntrinsic(intrinsic)) {
      const operands = [...product.map((o) => block.bind(o)), old[0]!];
      const value: Expr = { kind: "call", dtype: "f32", lanes, intrinsic, operands };
      block.push(storeTo(sums[0]!, [0], value));
      return;
    }
    const left = old.map((o) => freeze(o, names, block));
    const right = values.map((v) => block.bind(v));
    const next = monoid.combine.map((e) => lowerScalar(e, [...left, ...right], site));
    const ready = next.length === 1 ? next : next.map((v) => freeze(v, names, block));
    ready.forEach((value, i) => {
      block.push(storeTo(sums[i]!, [0], value));
    });
  }

  #sum(name: string, dtype: DType): Expr {
    const lanes = vectorLanes(this.#directive);
    return loadExpr(name, [0], { dtype, lanes }, { guard: [], fill: zeroOf(dtype) });
  }

  /** The values of a row, in every thread of it; its first thread stores what others want. */
  #finishRow(
    { statement }: Pick<RowStatement, "statement">,
    components: readonly Expr[],
    block: Block,
  ): void {
    const site = this.#rowSite(block);
    const bound = components.map((c) => block.bind(c));
    const operands = statement.finishReads.map((access) => this.#rowValue(access, block));
    const values = statement.finish
      ? statement.finish.map((e) => block.bind(lowerScalar(e, [...bound, ...operands], site)))
      : bound;
    statement.writes.forEach((write, i) => {
      const value = values[i]!;
      this.#values.set(write.tensor, value);
      if (!this.#isWanted(write.tensor)) return;
      const isFirst = [this.#inRow, this.#rank].map((expr): Condition => ({ kind: "zero", expr }));
      storeWrite(write, value, [...isFirst, ...this.#isRow], site);
    });
  }

  #dtypeOf(tensor: string): DType {
    return this.#region.region.tensors.get(tensor)!.dtype;
  }
}
