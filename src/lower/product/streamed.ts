/**
 * The parts of a product whose tiles one thread streams by tensor copies to warpgroups that multiply (PTX
 * ISA, "wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier"). A ring of stages with two counters each:
 *
 *   producer   wait until the stage is empty · announce its bytes · copy both tiles into it
 *   consumer   wait until it is full · multiply · once the step before is done, give its stage back
 *
 * Blocks may go on from tile to tile: the producer then runs ahead into the next one while results are stored.
 * Teams of warpgroups may take turns, so that one multiplies while another stores; they hand on the turn by a
 * third counter, `order`.
 * One group of multiplications stays in flight over the turn of the loop; where the unit's own sums are not
 * exact enough, those of a step are awaited and added by the threads. Registers go from the warpgroup that
 * only copies to those that hold sums (setmaxnreg). Copies bring zeros for what lies outside the operands.
 * Results are stored by the threads that hold them, or gathered and copied to memory like operands.
 */
import { issue, literalExpr, loadExpr, storeTo, tileAt } from "../../program/expr.ts";
import type { Expr, IntrinsicOperand, Statement } from "../../program/statement.ts";
import { sumsApart } from "../../schedule/products/apart-sums.ts";
import { resultColumns, resultParts } from "../../schedule/products/product-form.ts";
import { atMost, equal } from "../../semantics/condition.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  floorDiv,
  type IndexExpr,
  type IndexLike,
  mod,
  mul,
  substitute,
  variable,
} from "../../semantics/index-expr.ts";
import type { Block } from "../block.ts";
import { ownName } from "../own-names.ts";
import { arrive, groupThreads, onOne } from "../tiles.ts";
import type { ResultPiece } from "./accumulators.ts";
import type { ProductPlace } from "./copies.ts";
import { type ExchangedSums, exchangeSums } from "./exchanged.ts";
import { type ProductPlan, type StagedSide, sharedIndex, spelledTypes } from "./plan.ts";

/** Rows of one instruction, and bits of its depth. */
const groupRows = 64;
const groupBits = 256;

const multiplying = "mma";
export const copied = "copies";
export const [gathered, packed] = [ownName("gathered"), ownName("packed")] as const;
export const [summed, partial] = [ownName("sums"), ownName("partial")] as const;
export const shared = ownName("share");
/** Sums that are added at once. */
const together = 4;
/** Neighbouring blocks of eight columns, and rows eight apart. */
const corners = [
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1],
] as const;

/** Where gathered results go, and what becomes of a sum. */
export interface ResultTarget {
  readonly tensor: string;
  readonly dtype: DType;
  /** Where in the tensor a part stands that begins at a row and a column of the product. */
  readonly placeOf: (row: IndexExpr, column: IndexExpr) => readonly IndexExpr[];
  readonly value: (block: Block, piece: ResultPiece) => Expr;
}
export const [full, empty, order] = ["full", "empty", "order"] as const;

/** A step of a stream: its announcement, and the copies of both sides. */
export interface StreamedStage {
  readonly expect: Statement;
  readonly left: readonly Statement[];
  readonly right: readonly Statement[];
}

/** Until all multiplications are done. */
const noneLeft: Statement = { kind: "waitGroup", group: multiplying, pending: 0 };

/** Index variables of a step and of a warpgroup that multiplies. */
export interface StreamNames {
  readonly step: string;
  readonly copy: string;
}

/** The tiles of one walk of a block. */
export class StreamedProduct {
  readonly #plan: ProductPlan;
  readonly #place: ProductPlace;
  readonly #step: string;
  readonly #copy: string;
  readonly #copies: number;

  constructor(plan: ProductPlan, place: ProductPlace, { step, copy }: StreamNames) {
    this.#plan = plan;
    this.#place = place;
    this.#step = step;
    this.#copy = copy;
    this.#copies = copiesOf(plan);
  }

  get #instructions(): number {
    return instructionsOf(this.#plan);
  }

  /** The body for each tile of the block. */
  #turns(body: readonly Statement[]): readonly Statement[] {
    const { turns, given } = this.#place;
    if (given.length > 0) return [{ kind: "if", conditions: given, then: body, else: [] }];
    if (!turns) return body;
    const { variable: turn, count } = turns;
    return [{ kind: "for", variable: turn, extent: count, mode: { kind: "serial" }, body }];
  }

  /** What a warpgroup does with a tile, for each of its tiles. */
  perTile(body: readonly Statement[]): readonly Statement[] {
    const { teams, warps } = this.#plan.directive;
    const { turns } = this.#place;
    const own = floorDiv(variable(this.#copy), warps[0] / 4);
    const conditions = turns ? [equal(mod(variable(turns.variable), teams), own)] : [];
    const taken: readonly Statement[] =
      teams > 1 ? [{ kind: "if", conditions, then: body, else: [] }] : body;
    return this.#turns(taken);
  }

  /** The number of a step since the kernel began. */
  get #count(): IndexExpr {
    const { turns, sharedBefore } = this.#place;
    const { steps, directive } = this.#plan;
    const step = variable(this.#step);
    if (!turns) return step;
    const before = mul(steps / directive.parts, sharedBefore);
    return add(before, mul(steps, variable(turns.variable)), step);
  }

  /** The number of the warpgroup among those that share its tiles. */
  get #member(): IndexExpr {
    return mod(variable(this.#copy), this.#copies / this.#plan.directive.teams);
  }

  #loop(body: readonly Statement[]): Statement {
    const extent = this.#plan.trips;
    return { kind: "for", variable: this.#step, extent, mode: { kind: "serial" }, body };
  }

  /** Gives a stage back, to all blocks that copy into it. */
  #free(index: readonly IndexExpr[]): Statement {
    return arrive(empty, index, this.#place.cluster ? "cluster" : "instance");
  }

  /** The stage of a step some steps away. */
  #slot(away = 0): IndexExpr {
    return mod(add(this.#count, away), this.#plan.stages);
  }

  /** For each step of each tile: the wait until its stage is empty, and what follows. */
  bring(body: (stage: StreamedStage) => readonly Statement[]): readonly Statement[] {
    const { left, right, rows, columns, depth, stages, form } = this.#plan;
    const slot = this.#slot();
    const wait: Statement = {
      kind: "wait",
      counter: empty,
      index: [slot],
      value: add(floorDiv(this.#count, stages), 1),
    };
    const bytes = ((rows + columns) * depth * dtypes[form.dtype].bits) / 8;
    const expect: Statement = {
      kind: "expect",
      counter: full,
      index: [slot],
      bytes: constant(bytes),
    };
    const stage = {
      expect,
      left: this.#brought(left, this.#place.left),
      right: this.#brought(right, this.#place.right),
    };
    return this.#turns([this.#loop([wait, ...body(stage)])]);
  }

  /** The copies of a step's tile of one side: one, or one of each panel of neighbouring rows. */
  #brought(staged: StagedSide, start: IndexExpr): readonly Statement[] {
    const { form, depth, steps } = this.#plan;
    const { cluster, part, batch } = this.#place;
    const { panel, along } = staged;
    const step = add(variable(this.#step), mul(steps, part ?? 0));
    const slot = this.#slot();
    // Each block of a cluster brings a part of the tile that they share, to all of them.
    const isShared = cluster !== undefined && staged === this.#plan[cluster.shares];
    const extent = isShared ? staged.extent / cluster.size : staged.extent;
    const own = isShared ? mul(extent, cluster.rank) : constant(0);
    const isTurned = along === "space";
    const box = isTurned ? [depth, panel] : [extent, depth];
    const scope = isShared ? "cluster" : "instance";
    const completion = { kind: "signals", counter: full, index: [slot], scope } as const;
    const { tensor, index } = staged.side.access;
    return Array.from({ length: isTurned ? extent / panel : 1 }, (_, number) => {
      const first = add(own, number * panel);
      const at = new Map(batch)
        .set(form.depth.loops[0]!.name, mul(depth, step))
        .set(staged.side.loops[0]!.name, add(start, first));
      const from = index.map((e) => substitute(e, at));
      const to = tileAt(staged.buffer, sharedIndex(staged, slot, first, constant(0)), box);
      return issue("bulk.load.2d", [to, tileAt(tensor, from, box)], completion);
    });
  }

  /** All steps of a warpgroup, with the sums at the end. */
  multiply(): readonly Statement[] {
    const { stages, form } = this.#plan;
    const isApart = sumsApart(form);
    const steps: readonly Statement[] = [
      { kind: "wait", counter: full, index: [this.#slot()], value: floorDiv(this.#count, stages) },
      ...(isApart ? this.#stepApart() : this.#stepInFlight()),
    ];
    const { turns, thread } = this.#place;
    const { teams } = this.#plan.directive;
    const done: readonly Statement[] = isApart ? [] : [noneLeft];
    const before = isApart ? this.#cleared() : [];
    const isOnly = !turns && this.#place.given.length === 0;
    if (isOnly) return [...before, this.#loop(steps), ...done];
    const last = new Map([[this.#step, constant(this.#plan.steps - 1)]]);
    const freed = isApart ? [] : [this.#free([substitute(this.#slot(), last)])];
    if (teams === 1 || !turns)
      return [...before, this.#loop(steps), ...done, ...freed.flatMap((f) => onOne(thread, [f]))];
    // A team that did not wait for the phases of the other's tiles learns of them by being let go.
    const turn = variable(turns.variable);
    const value = floorDiv(add(turn, 2 * teams - 1), teams);
    return [
      ...before,
      { kind: "wait", counter: order, index: [mod(turn, teams)], value },
      this.#loop(steps),
      ...done,
      ...onOne(thread, [...freed, arrive(order, [mod(add(turn, 1), teams)])]),
    ];
  }

  get #groupDepth(): number {
    return groupBits / dtypes[this.#plan.form.dtype].bits;
  }

  /** The multiplications of a step, which stay in flight; the stage of the step before is given back. */
  #stepInFlight(): readonly Statement[] {
    const { depth, stages } = this.#plan;
    const steps: Statement[] = [];
    const conditions = [equal(variable(this.#step), constant(0))];
    for (let k = 0; k < depth; k += this.#groupDepth) {
      for (let i = 0; i < this.#instructions; i++) {
        const sums = tileAt(summed, [i, 0], [this.#plan.columns / 2]);
        const piece = { row: i, first: 0, width: this.#plan.columns };
        const next = this.#instruction(sums, piece, k, false);
        // The first step forgets what the registers held.
        const first = { kind: "if", conditions, else: [next] } as const;
        steps.push(k > 0 ? next : { ...first, then: [this.#instruction(sums, piece, k, true)] });
      }
    }
    steps.push({ kind: "commitGroup", group: multiplying });
    steps.push({
      kind: "if",
      conditions: [atMost(1, variable(this.#step))],
      then: [
        { kind: "waitGroup", group: multiplying, pending: 1 },
        ...onOne(this.#place.thread, [this.#free([this.#slot(stages - 1)])]),
      ],
      else: [],
    });
    return steps;
  }

  /**
   * Sums of a step by themselves, which threads add to theirs: where its columns come in two parts, the first
   * while the second is multiplied. (Sums that are on their way over the turn of the loop may not be read: C7514.)
   */
  #stepApart(): readonly Statement[] {
    const { depth } = this.#plan;
    const parts = partsOf(this.#plan);
    const steps: Statement[] = [];
    for (let row = 0; row < this.#instructions; row++) {
      const pieces = this.#pieces(row);
      pieces.forEach((piece, part) => {
        for (let k = 0; k < depth; k += this.#groupDepth)
          steps.push(this.#instruction(this.#partial(part), piece, k, k === 0));
        steps.push({ kind: "commitGroup", group: multiplying });
      });
      pieces.forEach((piece, part) => {
        steps.push({ kind: "waitGroup", group: multiplying, pending: parts - 1 - part });
        if (row + 1 === this.#instructions && part + 1 === parts)
          steps.push(...onOne(this.#place.thread, [this.#free([this.#slot()])]));
        steps.push(...this.#added(piece, part));
      });
    }
    return steps;
  }

  #pieces(row: number): readonly Piece[] {
    const parts = partsOf(this.#plan);
    const width = this.#plan.columns / parts;
    return Array.from({ length: parts }, (_, part) => ({ row, first: part * width, width }));
  }

  #partial(part: number): IntrinsicOperand {
    return tileAt(partial, [part, 0], [this.#plan.columns / 2 / partsOf(this.#plan)]);
  }

  #added({ row, first, width }: Piece, part: number): readonly Statement[] {
    const type = { dtype: "f32", lanes: together } as const;
    const found: Statement[] = [];
    for (let at = 0; at < width / 2; at += together) {
      const to = [row, first / 2 + at];
      const operands = [loadExpr(summed, to, type), loadExpr(partial, [part, at], type)];
      found.push(storeTo(summed, to, { kind: "apply", op: "add", ...type, operands }));
    }
    return found;
  }

  #cleared(): readonly Statement[] {
    const zero = literalExpr(0, "f32", together);
    const found: Statement[] = [];
    for (let row = 0; row < this.#instructions; row++)
      for (let at = 0; at < this.#plan.columns / 2; at += together)
        found.push(storeTo(summed, [row, at], zero));
    return found;
  }

  /** @param forgets what the registers held */
  #instruction(sums: IntrinsicOperand, piece: Piece, k: number, forgets: boolean): Statement {
    const { left, right } = this.#plan;
    const { first, width } = piece;
    const row = add(mul(groupRows * this.#instructions, this.#member), groupRows * piece.row);
    const deep = this.#groupDepth;
    const tile = (staged: StagedSide, start: IndexExpr, extent: number): IntrinsicOperand => {
      const { panel, along } = staged;
      const box = along === "space" ? [extent / panel, deep, panel] : [extent, deep];
      return tileAt(staged.buffer, sharedIndex(staged, this.#slot(), start, constant(k)), box);
    };
    const operands = [sums, tile(left, row, groupRows), tile(right, constant(first), width)];
    const name = `${turnedSides(left, right)}m64n${width}k${deep}.${spelledTypes(this.#plan)}`;
    const group = { kind: "group", group: multiplying } as const;
    return issue(`wgmma.${forgets ? "set." : ""}${name}`, operands, group);
  }

  /**
   * Results by way of shared memory: each warpgroup writes parts of 64 rows into buffers that take turns, and
   * one thread has them copied to memory, whole lines at a time, dropping what lies outside. Where there is
   * room for all parts of a tile, only the next tile waits for their copies.
   */
  gather(block: Block, to: ResultTarget): void {
    const { directive } = this.#plan;
    const { thread, turns, sharedBefore } = this.#place;
    const all = resultParts(directive, this.#plan.form);
    const parts = this.#place.part ? all / directive.parts : all;
    const slots = directive.results;
    const free = (pending: number): void => {
      const wait: Statement = { kind: "waitGroup", group: copied, pending };
      block.push(...onOne(thread, [wait]), { kind: "barrier", scope: "copy" });
    };
    const [fence, meet] = [
      { kind: "fence", scope: "shared" },
      { kind: "barrier", scope: "copy" },
    ] as const;
    const commit: Statement = { kind: "commitGroup", group: copied };
    if (slots >= all) {
      if (turns) free(0);
      const copies: Statement[] = [];
      for (let part = 0; part < parts; part++) copies.push(this.#part(block, part, part, to));
      block.push(fence, meet, ...onOne(thread, [...copies, commit]));
      return;
    }
    const before = turns
      ? add(mul(all / directive.parts, sharedBefore), mul(all, variable(turns.variable)))
      : constant(0);
    for (let part = 0; part < parts; part++) {
      if (turns || part >= slots) free(slots - 1);
      const copy = this.#part(block, part, mod(add(before, part), slots), to);
      block.push(fence, meet, ...onOne(thread, [copy, commit]));
    }
  }

  /** Writes one part of the results into a slot; gives its copy to memory. */
  #part(block: Block, part: number, slot: IndexLike, to: ResultTarget): Statement {
    const { directive } = this.#plan;
    const { left, right, thread, part: own } = this.#place;
    const wide = resultColumns(directive, this.#plan.form);
    const columns = own ? this.#plan.columns / directive.parts : this.#plan.columns;
    const before = own ? mul(columns, own) : constant(0);
    const [i, first] = [Math.floor((part * wide) / columns), (part * wide) % columns];
    const pieces = this.pieces();
    const warpRow = mul(16, floorDiv(variable(thread), 32));
    for (let column = 0; column < wide; column += 16) {
      // A thread's eight results of 16 columns, in the order of its registers.
      for (const [near, half] of corners) {
        const j = (first + column) / 8 + near;
        const piece = pieces[(2 * i + half) * (columns / 8) + j]!;
        block.push(storeTo(packed, [4 * near + 2 * half], to.value(block, piece)));
      }
      const tile = tileAt(gathered, [variable(this.#copy), slot, warpRow, column], [16, 16]);
      block.push(issue(`stmatrix.x4.${to.dtype}`, [tile, tileAt(packed, [0], [8])]));
    }
    const box = [groupRows, wide];
    const start = mul(groupRows * this.#instructions, this.#member);
    const place = to.placeOf(add(left, start, groupRows * i), add(right, before, first));
    const from = tileAt(gathered, [variable(this.#copy), slot, 0, 0], box);
    const group = { kind: "group", group: copied } as const;
    return issue("bulk.store.2d", [tileAt(to.tensor, place, box), from], group);
  }

  pieces(): readonly ResultPiece[] {
    const { part } = this.#place;
    return streamedPieces(this.#plan, variable(this.#place.thread), this.#member, part);
  }

  /** Sums of parts of the depth become those of the block's share of the columns. */
  exchange(): readonly Statement[] {
    const { part, thread } = this.#place;
    if (!part) return [];
    const { parts } = this.#plan.directive;
    const copy = variable(this.#copy);
    const at = { parts, rank: part, thread, threads: groupThreads, copy };
    return exchangeSums(this.#plan, exchangedSums(this.#plan), at);
  }
}

/** How instructions name operands whose neighbours are rows or columns. */
function turnedSides(left: StagedSide, right: StagedSide): string {
  const [a, b] = [left, right].map((s) => s.along === "space");
  return a && b ? "trans.both." : a ? "trans.left." : b ? "trans.right." : "";
}

/** What blocks that share a tile exchange. */
export function exchangedSums(plan: ProductPlan): ExchangedSums {
  const [sums, share] = [summed, shared];
  return { sums, share, instructions: instructionsOf(plan), copies: copiesOf(plan) };
}

/**
 * Sums as threads of a warpgroup hold them (PTX ISA, "wgmma.mma_async.m64nNk16", accumulator D): all of the
 * tile's, or the share of the columns that is the block's after an exchange.
 */
export function streamedPieces(
  plan: ProductPlan,
  thread: IndexExpr,
  copy: IndexExpr,
  part?: IndexExpr,
): readonly ResultPiece[] {
  const instructions = instructionsOf(plan);
  const columns = part ? plan.columns / plan.directive.parts : plan.columns;
  const before = part ? mul(columns, part) : constant(0);
  const buffer = part ? shared : summed;
  const warp = mul(16, floorDiv(thread, 32));
  const inRow = floorDiv(mod(thread, 32), 4);
  const inColumn = mul(2, mod(thread, 4));
  const start = mul(groupRows * instructions, copy);
  const found: ResultPiece[] = [];
  for (let i = 0; i < instructions; i++) {
    for (const half of [0, 1]) {
      for (let j = 0; j < columns / 8; j++) {
        found.push({
          row: add(start, warp, inRow, groupRows * i + 8 * half),
          column: add(before, inColumn, 8 * j),
          lanes: 2,
          value: loadExpr(buffer, [i, 4 * j + 2 * half], { dtype: plan.form.sum, lanes: 2 }),
        });
      }
    }
  }
  return found;
}

/** Warpgroups that multiply. */
export function copiesOf({ directive }: ProductPlan): number {
  return (directive.teams * directive.warps[0]) / 4;
}

/** What one instruction adds to: 64 rows of a warpgroup's, and columns. */
interface Piece {
  /** In units of 64. */
  readonly row: number;
  readonly first: number;
  readonly width: number;
}

/**
 * Parts of the columns in which sums of a step are made. Halves keep the unit busy while threads add; beside
 * several rows of instructions they would be read too often (two operands of 64 are all that shared memory gives).
 */
function partsOf(plan: ProductPlan): number {
  return instructionsOf(plan) === 1 && plan.columns % 16 === 0 ? 2 : 1;
}

export function partialShape(plan: ProductPlan): readonly number[] {
  const parts = partsOf(plan);
  return [parts, plan.columns / 2 / parts];
}

/** Instructions of 64 rows that one warpgroup issues for each 32 bytes of the depth. */
export function instructionsOf({ rows, directive }: ProductPlan): number {
  return rows / (16 * directive.warps[0]);
}
