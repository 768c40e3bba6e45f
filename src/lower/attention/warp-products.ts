/**
 * What the warps of attention multiply, and the products of a step (PTX ISA, "Matrix Fragments for
 * mma.m16n8k16"). Sums and weights stand as thread-parts.ts says.
 */
import { issue, tileAt } from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import { keepsQueries } from "../../schedule/attention/attention-limits.ts";
import { add, constant, type IndexExpr } from "../../semantics/index-expr.ts";
import type { Block } from "../block.ts";
import { ownName } from "../own-names.ts";
import { registerTile } from "../tiles.ts";
import { type AttentionPlan, sharedPlace } from "./plan.ts";
import { resultName, scoreName, type ThreadParts, weightName } from "./thread-parts.ts";

/** Register buffers of what is multiplied. */
const [leftName, rightName] = [ownName("lefts"), ownName("rights")] as const;

export class WarpProducts {
  readonly #plan: AttentionPlan;
  readonly #parts: ThreadParts;

  constructor(plan: AttentionPlan, parts: ThreadParts) {
    this.#plan = plan;
    this.#parts = parts;
  }

  get buffers(): readonly Buffer[] {
    const { form, columns } = this.#plan;
    const { dtype, depth, width } = form;
    const kept = keepsQueries(form) ? depth / 16 : 1;
    return [
      registerTile(leftName, dtype, [this.#parts.down, kept, 8]),
      registerTile(rightName, dtype, [Math.max(columns, width) / 16, 8]),
    ];
  }

  /** Queries from shared memory, all that the thread keeps. */
  loadQueries(block: Block): void {
    const { depth } = this.#plan.form;
    if (!keepsQueries(this.#plan.form)) return;
    for (let k = 0; k < depth; k += 16) this.#queries(block, k, k / 16);
  }

  #queries(block: Block, k: number, kept: number): void {
    const { query } = this.#plan;
    for (let i = 0; i < this.#parts.down; i++) {
      const at = sharedPlace(query, constant(0), add(this.#parts.warpRow, 16 * i), constant(k));
      this.#fetch(block, [leftName, i, kept], at, query.isAlong ? "" : "trans.");
    }
  }

  /** Scores of a step from its keys. */
  multiplyKeys(block: Block, slot: IndexExpr): void {
    const { key, columns, form } = this.#plan;
    const keeps = keepsQueries(form);
    this.#parts.clear(block, scoreName, columns);
    for (let k = 0; k < form.depth; k += 16) {
      const kept = keeps ? k / 16 : 0;
      if (!keeps) this.#queries(block, k, 0);
      for (let j = 0; j < columns / 16; j++) {
        const at = sharedPlace(key, slot, constant(16 * j), constant(k));
        this.#fetch(block, [rightName, j], at, key.isAlong ? "right." : "trans.right.");
      }
      for (let i = 0; i < this.#parts.down; i++) {
        for (let j = 0; j < columns / 8; j++) {
          this.#multiply(block, [scoreName, i, j], [leftName, i, kept]);
        }
      }
    }
  }

  /** Adds to the results the products of the step's weights and values. */
  multiplyValues(block: Block, slot: IndexExpr): void {
    const { value, columns, form } = this.#plan;
    for (let k = 0; k < columns; k += 16) {
      for (let j = 0; j < form.width / 16; j++) {
        const at = sharedPlace(value, slot, constant(k), constant(16 * j));
        // Columns of the results are elements of a value, its lines the depth.
        this.#fetch(block, [rightName, j], at, value.isAlong ? "trans.right." : "right.");
      }
      for (let i = 0; i < this.#parts.down; i++) {
        for (let j = 0; j < form.width / 8; j++) {
          this.#multiply(block, [resultName, i, j], [weightName, i, k / 16]);
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
      tileAt(sums, [i, 4 * j], [4]),
      tileAt(left, [row, k, 0], [8]),
      tileAt(rightName, [j >> 1, 4 * (j & 1)], [4]),
    ];
    block.push(issue(`mma.m16n8k16.f32.${this.#plan.form.dtype}`, operands));
  }

  #fetch(
    block: Block,
    [registers, ...number]: readonly [string, ...number[]],
    { buffer, index }: ReturnType<typeof sharedPlace>,
    way: string,
  ): void {
    const name = `ldmatrix.x4.${way}${this.#plan.form.dtype}`;
    const to = tileAt(registers, [...number, 0], [8]);
    block.push(issue(name, [to, tileAt(buffer, index, [16, 16])]));
  }
}
