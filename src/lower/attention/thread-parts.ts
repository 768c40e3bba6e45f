/**
 * What a thread holds of results, scores and weights, as matrix instructions leave it in registers (PTX ISA,
 * "Matrix Fragments for mma.m16n8k16" and "wgmma.mma_async.m64nNk16"): pairs of neighbouring columns of rows
 * 8 apart, of blocks of 16 rows and 8 columns. Two neighbouring blocks of scores, as pairs of narrow floats,
 * are just what the next product takes for sixteen of its depth, so that weights never leave their thread.
 */
import { literalExpr, storeTo } from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import {
  add,
  floorDiv,
  type IndexExpr,
  type IndexLike,
  mod,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import type { Block } from "../block.ts";
import { ownName } from "../own-names.ts";
import { registerTile } from "../tiles.ts";
import type { AttentionPlan } from "./plan.ts";

/** Register buffers: results, scores of a step, weights of a step. */
export const [resultName, scoreName] = [ownName("results"), ownName("scores")] as const;
export const weightName = ownName("weights");

export class ThreadParts {
  readonly #plan: AttentionPlan;
  readonly #thread: IndexExpr;
  readonly #group: IndexLike;
  /** Blocks of 16 rows of a warp. */
  readonly down: number;

  /** `group`: the number of the thread's copy of the role. */
  constructor(plan: AttentionPlan, thread: string, group: IndexLike) {
    this.#plan = plan;
    this.#thread = variable(thread);
    this.#group = group;
    this.down = plan.warpRows / 16;
  }

  get buffers(): readonly Buffer[] {
    const { form, columns } = this.#plan;
    return [
      registerTile(resultName, "f32", [this.down, form.width / 2]),
      registerTile(scoreName, "f32", [this.down, columns / 2]),
      registerTile(weightName, form.dtype, [this.down, columns / 16, 8]),
    ];
  }

  /** Sets results or scores of so many columns to zero. */
  clear(block: Block, buffer: string, columns: number): void {
    for (let i = 0; i < this.down; i++) {
      for (let j = 0; j < columns / 8; j++) {
        block.push(storeTo(buffer, [i, 4 * j], literalExpr(0, "f32", 4)));
      }
    }
  }

  /** First row of the warp in the tile. */
  get warpRow(): IndexExpr {
    const { groups, threads, warpRows } = this.#plan;
    const own = mul(warpRows, floorDiv(this.#thread, 32));
    return groups === 1 ? own : add(own, mul((warpRows * threads) / 32, this.#group));
  }

  /** Row in the tile of a half of a block of 16 rows. */
  row(i: number, half: number): IndexExpr {
    const inRow = floorDiv(mod(this.#thread, 32), 4);
    return add(this.warpRow, inRow, 16 * i + 8 * half);
  }

  /** The first of a thread's two neighbouring columns of a block of eight. */
  column(j: number): IndexExpr {
    return add(mul(2, mod(this.#thread, 4)), 8 * j);
  }

  /** Place in results or scores of a pair. */
  pair(i: number, j: number, half: number): readonly [number, number] {
    return [i, 4 * j + 2 * half];
  }
}
