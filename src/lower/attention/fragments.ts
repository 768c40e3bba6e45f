/**
 * Registers of the warps of attention: results and scores as a matrix instruction leaves them, and the
 * products of a step (PTX ISA, "Matrix Fragments for mma.m16n8k16"). A thread holds pairs of neighbouring
 * columns of rows 8 apart; two neighbouring blocks of eight columns of scores, as pairs of narrow floats, are
 * just what the next product takes for sixteen of its depth, so that weights never leave their thread.
 */
import { issue, literalExpr, storeTo, tileAt } from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import { keepsQueries } from "../../schedule/attention/attention-limits.ts";
import type { DType } from "../../semantics/dtype.ts";
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
import { type AttentionPlan, type Staged, sharedIndex } from "./plan.ts";

/** Register buffers: results, scores of a step, weights of a step, and what is multiplied. */
export const [resultName, scoreName, weightName] = ["results", "scores", "weights"];
const [leftName, rightName] = ["lefts", "rights"];

export function registers(name: string, dtype: DType, shape: readonly number[]): Buffer {
  const extents = shape.map((n) => constant(n));
  return { name, kind: "scratch", scope: "register", dtype, lanes: 1, shape: extents };
}

export class WarpFragments {
  readonly #plan: AttentionPlan;
  readonly #thread: IndexExpr;
  /** Blocks of 16 rows of a warp. */
  readonly down: number;

  constructor(plan: AttentionPlan, thread: string) {
    this.#plan = plan;
    this.#thread = variable(thread);
    this.down = plan.warpRows / 16;
  }

  get buffers(): readonly Buffer[] {
    const { form, columns } = this.#plan;
    const { dtype, depth, width } = form;
    const kept = keepsQueries(form) ? depth / 16 : 1;
    return [
      registers(resultName!, "f32", [this.down, width / 8, 4]),
      registers(scoreName!, "f32", [this.down, columns / 8, 4]),
      registers(weightName!, dtype, [this.down, columns / 16, 8]),
      registers(leftName!, dtype, [this.down, kept, 8]),
      registers(rightName!, dtype, [Math.max(columns, width) / 16, 8]),
    ];
  }

  clear(block: Block): void {
    this.#zero(block, resultName!, this.#plan.form.width);
  }

  #zero(block: Block, buffer: string, columns: number): void {
    for (let i = 0; i < this.down; i++) {
      for (let j = 0; j < columns / 8; j++) {
        block.push(storeTo(buffer, [i, j, 0], literalExpr(0, "f32", 4)));
      }
    }
  }

  /** First row of the warp in the tile. */
  get #warpRow(): IndexExpr {
    return mul(this.#plan.warpRows, floorDiv(this.#thread, 32));
  }

  /** Queries from shared memory, all that the thread keeps. */
  loadQueries(block: Block): void {
    const { depth } = this.#plan.form;
    if (!keepsQueries(this.#plan.form)) return;
    for (let k = 0; k < depth; k += 16) this.#queries(block, k, k / 16);
  }

  #queries(block: Block, k: number, kept: number): void {
    const { query } = this.#plan;
    for (let i = 0; i < this.down; i++) {
      const at = sharedIndex(query, constant(0), add(this.#warpRow, 16 * i), constant(k));
      this.#fetch(block, query, [leftName!, i, kept], at, query.isAlong ? "" : "trans.");
    }
  }

  /** Scores of a step from its keys. */
  multiplyKeys(block: Block, slot: IndexExpr): void {
    const { key, columns, form } = this.#plan;
    const keeps = keepsQueries(form);
    this.#zero(block, scoreName!, columns);
    for (let k = 0; k < form.depth; k += 16) {
      const kept = keeps ? k / 16 : 0;
      if (!keeps) this.#queries(block, k, 0);
      for (let j = 0; j < columns / 16; j++) {
        const at = sharedIndex(key, slot, constant(16 * j), constant(k));
        this.#fetch(block, key, [rightName!, j], at, key.isAlong ? "right." : "trans.right.");
      }
      for (let i = 0; i < this.down; i++) {
        for (let j = 0; j < columns / 8; j++) {
          this.#multiply(block, [scoreName!, i, j], [leftName!, i, kept]);
        }
      }
    }
  }

  /** Adds to the results the products of the step's weights and values. */
  multiplyValues(block: Block, slot: IndexExpr): void {
    const { value, columns, form } = this.#plan;
    for (let k = 0; k < columns; k += 16) {
      for (let j = 0; j < form.width / 16; j++) {
        const at = sharedIndex(value, slot, constant(k), constant(16 * j));
        // Columns of the results are elements of a value, its lines the depth.
        this.#fetch(block, value, [rightName!, j], at, value.isAlong ? "trans.right." : "right.");
      }
      for (let i = 0; i < this.down; i++) {
        for (let j = 0; j < form.width / 8; j++) {
          this.#multiply(block, [resultName!, i, j], [weightName!, i, k / 16]);
        }
      }
    }
  }

  #multiply(
    block: Block,
    [sums, i, j]: readonly [string, number, number],
    [left, row, k]: readonly [string, number, number],
  ): void {
    const operands = [
      tileAt(sums, [i, j, 0], [4]),
      tileAt(left, [row, k, 0], [8]),
      tileAt(rightName!, [j >> 1, 4 * (j & 1)], [4]),
    ];
    block.push(issue(`mma.m16n8k16.f32.${this.#plan.form.dtype}`, operands));
  }

  #fetch(
    block: Block,
    staged: Staged,
    [buffer, ...number]: readonly [string, ...number[]],
    at: readonly IndexExpr[],
    way: string,
  ): void {
    const name = `ldmatrix.x4.${way}${this.#plan.form.dtype}`;
    const to = tileAt(buffer, [...number, 0], [8]);
    block.push(issue(name, [to, tileAt(staged.buffer, at, [16, 16])]));
  }

  /** Row in the tile of a thread's results of a block of 16 rows. */
  row(i: number, half: number): IndexExpr {
    const inRow = floorDiv(mod(this.#thread, 32), 4);
    return add(this.#warpRow, inRow, 16 * i + 8 * half);
  }

  /** The first of a thread's two neighbouring columns of a block of eight. */
  column(j: number): IndexExpr {
    return add(mul(2, mod(this.#thread, 4)), 8 * j);
  }
}
