/**
 * The sums of a block's tile in the registers of its threads: set to zero, one stage's products added, and
 * the results handed out piece by piece for the epilogue. Two kinds:
 *
 *   warps     mma.sync on fragments that ldmatrix reads (PTX ISA, "Matrix Fragments for mma.m16n8k16", .m16n8k32):
 *             a thread holds pairs of neighbouring columns, rows 8 apart; where the unit's own sums are not exact
 *             enough, those of a step are made by themselves, some columns at a time, and added by the threads
 *   threads   a rectangle of results a thread, each operand read as vectors of four
 */
import {
  callExpr,
  extractExpr,
  issue,
  literalExpr,
  loadExpr,
  storeTo,
  tileAt,
} from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import type { Expr, IntrinsicOperand, Statement } from "../../program/statement.ts";
import { apartPiece, type Piece, sumsApart } from "../../schedule/products/apart-sums.ts";
import {
  add,
  constant,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import type { Block } from "../block.ts";
import { ownName } from "../own-names.ts";
import {
  inRegister,
  type ProductPlan,
  type StagedSide,
  sharedIndex,
  spelledTypes,
} from "./plan.ts";

/** Registers of the tile's sums, of those of a step by themselves, and of fragments of both operands. */
const [summed, partial] = [ownName("sums"), ownName("partial")] as const;
const [lefts, rights] = [ownName("lefts"), ownName("rights")] as const;

/** Neighbouring results of one row in registers, at a place of the block's tile. */
export interface ResultPiece {
  readonly row: IndexExpr;
  readonly column: IndexExpr;
  readonly lanes: number;
  readonly value: Expr;
}

export interface Accumulators {
  readonly buffers: readonly Buffer[];
  clear(block: Block): void;
  /** Adds the products of the stage in `slot`. */
  multiply(block: Block, slot: IndexExpr): void;
  pieces(): readonly ResultPiece[];
}

export function accumulatorsOf(plan: ProductPlan, thread: string): Accumulators {
  return plan.directive.by === "fma"
    ? new ThreadAccumulators(plan, variable(thread))
    : new WarpAccumulators(plan, variable(thread));
}

function registers(name: string, dtype: Buffer["dtype"], shape: readonly number[]): Buffer {
  const extents = shape.map((n) => constant(n));
  return { name, kind: "scratch", scope: "register", dtype, lanes: 1, shape: extents };
}

/** First row and column of the thread's warp in the tile. */
function warpPlace(plan: ProductPlan, thread: IndexExpr): readonly [IndexExpr, IndexExpr] {
  const [down, across] = plan.directive.warps;
  const warp = floorDiv(thread, 32);
  const row = down === 1 ? constant(0) : floorDiv(thread, 32 * across);
  const column = across === 1 ? constant(0) : down === 1 ? warp : mod(warp, across);
  return [mul(plan.warpRows, row), mul(plan.warpColumns, column)];
}

class WarpAccumulators implements Accumulators {
  readonly #plan: ProductPlan;
  readonly #thread: IndexExpr;
  readonly #down: number;
  readonly #across: number;
  /** Elements of a register. */
  readonly #each: number;

  constructor(plan: ProductPlan, thread: IndexExpr) {
    this.#plan = plan;
    this.#thread = thread;
    this.#down = plan.warpRows / 16;
    this.#across = plan.warpColumns / 16;
    this.#each = inRegister(plan);
  }

  get buffers(): readonly Buffer[] {
    const { form } = this.#plan;
    const { sum, rows, columns } = form;
    const isApart = sumsApart(form);
    const { tall, wide } = this.#piece;
    const [down, across] = isApart
      ? [this.#instructions * tall, this.#instructions * wide]
      : [this.#down, this.#across];
    return [
      registers(summed, sum, [this.#down, 2 * this.#across, 4]),
      ...(isApart ? [registers(partial, sum, [tall, 2 * wide, 4])] : []),
      registers(lefts, rows.dtype, [down, 4 * this.#each]),
      registers(rights, columns.dtype, [across, 4 * this.#each]),
    ];
  }

  /** Instructions along the depth of a step. */
  get #instructions(): number {
    return this.#plan.depth / (8 * this.#each);
  }

  /** Of what sums of a step are made at once, in units of 16 rows and columns. */
  get #piece(): Piece {
    return apartPiece(this.#plan.warpRows, this.#plan.warpColumns);
  }

  clear(block: Block): void {
    for (let i = 0; i < this.#down; i++) {
      for (let j = 0; j < 2 * this.#across; j++) {
        block.push(storeTo(summed, [i, j, 0], literalExpr(0, this.#plan.form.sum, 4)));
      }
    }
  }

  multiply(block: Block, slot: IndexExpr): void {
    if (sumsApart(this.#plan.form)) this.#multiplyApart(block, slot);
    else this.#multiplyTogether(block, slot);
  }

  #multiplyTogether(block: Block, slot: IndexExpr): void {
    const { left, right, depth } = this.#plan;
    const each = this.#each;
    const [row, column] = warpPlace(this.#plan, this.#thread);
    for (let k = 0; k < depth; k += 8 * each) {
      for (let i = 0; i < this.#down; i++) {
        this.#fetch(
          block,
          left,
          [lefts, i],
          sharedIndex(left, slot, add(row, 16 * i), constant(k)),
        );
      }
      for (let j = 0; j < this.#across; j++) {
        const at = sharedIndex(right, slot, add(column, 16 * j), constant(k));
        this.#fetch(block, right, [rights, j], at);
      }
      for (let i = 0; i < this.#down; i++) {
        for (let j = 0; j < 2 * this.#across; j++) {
          this.#issue(block, tileAt(summed, [i, j, 0], [4]), [i, j >> 1, j & 1]);
        }
      }
    }
  }

  /** @param at numbers of the fragments, and which half of the right one */
  #issue(
    block: Block,
    sums: IntrinsicOperand,
    [left, right, half]: readonly [number, number, number],
    forgets = false,
  ): void {
    const each = this.#each;
    const operands = [
      sums,
      tileAt(lefts, [left, 0], [4 * each]),
      tileAt(rights, [right, 2 * each * half], [2 * each]),
    ];
    const name = `m16n8k${8 * each}.${spelledTypes(this.#plan)}`;
    block.push(issue(`mma.${forgets ? "set." : ""}${name}`, operands));
  }

  /** Sums of a step by themselves, added to the thread's: one side is held, the other one comes 16 lines at a time. */
  #multiplyApart(block: Block, slot: IndexExpr): void {
    const { left, right } = this.#plan;
    const [row, column] = warpPlace(this.#plan, this.#thread);
    const { tall, wide } = this.#piece;
    const bring = (side: StagedSide, start: IndexExpr, lines: number): void => {
      const name = side === left ? lefts : rights;
      for (let k = 0; k < this.#instructions; k++) {
        for (let i = 0; i < lines; i++) {
          const at = sharedIndex(side, slot, add(start, 16 * i), constant(8 * this.#each * k));
          this.#fetch(block, side, [name, k * lines + i], at);
        }
      }
    };
    const holdsRight = wide === this.#across;
    if (holdsRight) bring(right, column, wide);
    else bring(left, row, tall);
    const turns = holdsRight ? this.#down / tall : this.#across / wide;
    for (let turn = 0; turn < turns; turn++) {
      if (holdsRight) bring(left, add(row, 16 * tall * turn), tall);
      else bring(right, add(column, 16 * wide * turn), wide);
      const first = holdsRight ? ([tall * turn, 0] as const) : ([0, 2 * wide * turn] as const);
      this.#multiplyPiece(block, first);
    }
  }

  /** @param first 16 rows and 8 columns of the warp's sums from which on the piece stands */
  #multiplyPiece(block: Block, [down, across]: readonly [number, number]): void {
    const { tall, wide } = this.#piece;
    const each = (body: (i: number, j: number) => void): void => {
      for (let i = 0; i < tall; i++) for (let j = 0; j < 2 * wide; j++) body(i, j);
    };
    for (let k = 0; k < this.#instructions; k++) {
      each((i, j) => {
        const fragments = [k * tall + i, k * wide + (j >> 1), j & 1] as const;
        this.#issue(block, tileAt(partial, [i, j, 0], [4]), fragments, k === 0);
      });
    }
    each((i, j) => block.push(addedTo([down + i, across + j, 0], [i, j, 0])));
  }

  #fetch(
    block: Block,
    staged: StagedSide,
    [buffer, number]: readonly [string, number],
    at: readonly IndexExpr[],
  ): void {
    const across = staged.along === "space" ? "trans." : "";
    const side = staged === this.#plan.right ? "right." : "";
    const name = `ldmatrix.x4.${across}${side}${staged.side.dtype}`;
    const each = this.#each;
    const from = tileAt(staged.buffer, at, [16, 8 * each]);
    block.push(issue(name, [tileAt(buffer, [number, 0], [4 * each]), from]));
  }

  pieces(): readonly ResultPiece[] {
    const [row, column] = warpPlace(this.#plan, this.#thread);
    const inRow = floorDiv(mod(this.#thread, 32), 4);
    const inColumn = mul(2, mod(this.#thread, 4));
    const { form } = this.#plan;
    const found: ResultPiece[] = [];
    for (let i = 0; i < this.#down; i++) {
      for (const half of [0, 1]) {
        for (let j = 0; j < 2 * this.#across; j++) {
          found.push({
            row: add(row, inRow, 16 * i + 8 * half),
            column: add(column, inColumn, 8 * j),
            lanes: 2,
            value: loadExpr(summed, [i, j, 2 * half], { dtype: form.sum, lanes: 2 }),
          });
        }
      }
    }
    return found;
  }
}

/** Four sums of a step, added to those of all steps. */
function addedTo(sums: readonly number[], part: readonly number[]): Statement {
  const type = { dtype: "f32", lanes: 4 } as const;
  const operands = [loadExpr(summed, sums, type), loadExpr(partial, part, type)];
  return storeTo(summed, sums, { kind: "apply", op: "add", ...type, operands });
}

/** Threads of a warp that hold the columns of one row of a matrix instruction's sums. */
export const quadThreads = 4;

/** Threads of a warp down the rows, and across the columns. */
export const threadRows = 4;
export const threadColumns = 8;
const vector = 4;

class ThreadAccumulators implements Accumulators {
  readonly #plan: ProductPlan;
  readonly #thread: IndexExpr;
  readonly #rows: number;
  readonly #columns: number;

  constructor(plan: ProductPlan, thread: IndexExpr) {
    this.#plan = plan;
    this.#thread = thread;
    this.#rows = plan.warpRows / threadRows;
    this.#columns = plan.warpColumns / threadColumns;
  }

  get buffers(): readonly Buffer[] {
    return [registers(summed, "f32", [this.#rows, this.#columns])];
  }

  clear(block: Block): void {
    for (let i = 0; i < this.#rows; i++) {
      for (let j = 0; j < this.#columns; j++) {
        block.push(storeTo(summed, [i, j], literalExpr(0, "f32")));
      }
    }
  }

  multiply(block: Block, slot: IndexExpr): void {
    const { left, right, depth } = this.#plan;
    block.loop("kk", constant(depth / vector), { kind: "serial" }, (body) => {
      const first = mul(vector, variable("kk"));
      const [a, b] = [
        this.#operand(body, left, { slot, first, count: this.#rows }),
        this.#operand(body, right, { slot, first, count: this.#columns }),
      ];
      for (let k = 0; k < vector; k++) {
        for (let i = 0; i < this.#rows; i++) {
          for (let j = 0; j < this.#columns; j++) {
            const old = loadExpr(summed, [i, j], { dtype: "f32", lanes: 1 });
            body.push(storeTo(summed, [i, j], callExpr("fma.f32", a(i, k), b(j, k), old)));
          }
        }
      }
    });
  }

  /** Vectors of `vector` steps along the depth: the element of row (or column) i at step k. */
  #operand(
    block: Block,
    staged: StagedSide,
    at: { readonly slot: IndexExpr; readonly first: IndexExpr; readonly count: number },
  ): (i: number, k: number) => Expr {
    const { slot, first, count } = at;
    const type = { dtype: "f32", lanes: vector } as const;
    const load = (row: IndexExpr, depth: IndexExpr): Expr =>
      block.bind(loadExpr(staged.buffer, sharedIndex(staged, slot, row, depth), type));
    if (staged.along === "depth") {
      const vectors = Array.from({ length: count }, (_, i) => load(this.#line(staged, i), first));
      return (i, k) => extractExpr(vectors[i]!, k);
    }
    const vectors = Array.from({ length: vector }, (_, k) =>
      Array.from({ length: count / vector }, (_, i) =>
        load(this.#line(staged, vector * i), add(first, k)),
      ),
    );
    return (i, k) => extractExpr(vectors[k]![Math.floor(i / vector)]!, i % vector);
  }

  /** The tile's row (or column) of a thread's i-th one: four together where vectors lie along them. */
  #line(staged: StagedSide, i: number): IndexExpr {
    const isLeft = staged === this.#plan.left;
    const [row, column] = warpPlace(this.#plan, this.#thread);
    const lane = mod(this.#thread, 32);
    const own = isLeft ? floorDiv(lane, threadColumns) : mod(this.#thread, threadColumns);
    const [start, threads] = isLeft ? [row, threadRows] : [column, threadColumns];
    if (staged.along === "depth") return add(start, own, threads * i);
    const [group, rest] = [Math.floor(i / vector), i % vector];
    return add(start, mul(vector, own), threads * vector * group + rest);
  }

  pieces(): readonly ResultPiece[] {
    const { left, right } = this.#plan;
    const lanes = right.along === "space" ? vector : 1;
    const found: ResultPiece[] = [];
    for (let i = 0; i < this.#rows; i++) {
      for (let j = 0; j < this.#columns; j += lanes) {
        found.push({
          row: this.#line(left, i),
          column: this.#line(right, j),
          lanes,
          value: loadExpr(summed, [i, j], { dtype: "f32", lanes }),
        });
      }
    }
    return found;
  }
}
