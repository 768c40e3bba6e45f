/**
 * Copies of one stage's tiles into shared memory by all threads of a block: asynchronous ones where a copy
 * moves at least four bytes, through registers else (loads before the work on another stage, stores after
 * it). What lies outside the operands, or where its guard fails, is zero.
 */
import { issue, literalExpr, loadExpr, storeTo, tileAt } from "../../program/expr.ts";
import type { Expr, Statement } from "../../program/statement.ts";
import { type Condition, less } from "../../semantics/condition.ts";
import {
  add,
  constant,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  substitute,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../../semantics/index-range.ts";
import type { Block } from "../block.ts";
import { reduceConditions, substituteConditions } from "../conditions.ts";
import { type BlockPlace, copyGroup } from "../tiles.ts";
import { flatColumn, flatDepth, flatRow } from "./flat-access.ts";
import { digitsOf, type ProductPlan, type StagedSide, sharedIndex } from "./plan.ts";

/** The first row and column of a block's tile. */
export interface ProductPlace extends BlockPlace {
  readonly left: IndexExpr;
  readonly right: IndexExpr;
  /** Of blocks that go on from tile to tile. */
  readonly turns: Turns | undefined;
  /** Which part of the depth is the block's, of clusters that have several. */
  readonly part: IndexExpr | undefined;
  /** Of the blocks that take tiles here at all, and how many tiles they have shared with others before. */
  readonly given: readonly Condition[];
  readonly sharedBefore: IndexExpr;
  /** Of blocks that bring a tile together. */
  readonly cluster: Cluster | undefined;
}

/** Blocks that share a side's tile: how many, and which of them this one is. */
export interface Cluster {
  readonly size: number;
  readonly rank: IndexExpr;
  readonly shares: "left" | "right";
}

/** The tiles of one block in order: the loop's variable, and how many there are. */
export interface Turns {
  readonly variable: string;
  readonly count: IndexExpr;
}

interface Copy {
  readonly source: readonly IndexExpr[];
  readonly target: readonly IndexExpr[];
  readonly conditions: readonly Condition[];
}

export class StageCopies {
  readonly #plan: ProductPlan;
  readonly #place: ProductPlace;

  constructor(plan: ProductPlan, place: ProductPlace) {
    this.#plan = plan;
    this.#place = place;
  }

  get sides(): readonly StagedSide[] {
    return [this.#plan.left, this.#plan.right];
  }

  /** Asynchronous copies of the stage `step` into its slot. */
  issueAsync(block: Block, step: IndexExpr, ranges: IndexRanges): void {
    for (const staged of this.sides.filter((s) => s.isAsync)) {
      this.#each(block, staged, step, ranges, (body, copy) => {
        const zero = literalExpr(0, staged.side.dtype, staged.lanes);
        const copied = issue(
          "cp.async",
          [
            tileAt(staged.buffer, copy.target, [staged.lanes]),
            tileAt(staged.side.access.tensor, copy.source, [staged.lanes]),
          ],
          { kind: "group", group: copyGroup },
        );
        body.branch(
          copy.conditions,
          (inside) => inside.push(copied),
          (outside) => outside.push(storeTo(staged.buffer, copy.target, zero)),
        );
      });
    }
  }

  /** Loads of what passes through registers; gives the stores, for later. */
  load(block: Block, step: IndexExpr, ranges: IndexRanges): readonly Statement[] {
    const stores: Statement[] = [];
    for (const staged of this.sides.filter((s) => !s.isAsync)) {
      this.#each(block, staged, step, ranges, (body, copy, isWhole) => {
        const { dtype } = staged.side;
        const type = { dtype, lanes: staged.lanes };
        const guarded = { guard: copy.conditions, fill: 0 };
        const value: Expr = loadExpr(staged.side.access.tensor, copy.source, type, guarded);
        if (isWhole) stores.push(storeTo(staged.buffer, copy.target, body.bind(value)));
        else body.push(storeTo(staged.buffer, copy.target, value));
      });
    }
    return stores;
  }

  /** One copy after another of this thread; a ragged last one only where it is in the tile. */
  #each(
    block: Block,
    staged: StagedSide,
    step: IndexExpr,
    ranges: IndexRanges,
    fill: (body: Block, copy: Copy, isWhole: boolean) => void,
  ): void {
    const { depth, threads } = this.#plan;
    const total = (staged.extent * depth) / staged.lanes;
    const thread = variable(this.#place.thread);
    for (let first = 0; first < total; first += threads) {
      const number = add(first, thread);
      const isWhole = first + threads <= total;
      const copy = this.#copy(staged, number, step, ranges);
      if (isWhole) fill(block, copy, true);
      else block.branch([less(number, constant(total))], (body) => fill(body, copy, false));
    }
  }

  #copy(staged: StagedSide, number: IndexExpr, step: IndexExpr, ranges: IndexRanges): Copy {
    const { form, depth, stages } = this.#plan;
    const { side, along, lanes, extent } = staged;
    const inLine = (along === "depth" ? depth : extent) / lanes;
    const [line, offset] = [floorDiv(number, inLine), mul(lanes, mod(number, inLine))];
    const [row, column] = along === "depth" ? [line, offset] : [offset, line];
    const all = new Map([...this.#place.ranges, ...ranges]);
    const start = staged === this.#plan.left ? this.#place.left : this.#place.right;
    const [whole, deep] = [
      simplify(add(start, row), all),
      simplify(add(mul(depth, step), column), all),
    ];
    const bindings = new Map([
      ...this.#place.batch,
      ...digitsOf(side, whole),
      ...digitsOf(form.depth, deep),
      [staged === this.#plan.left ? flatRow : flatColumn, whole] as const,
      [flatDepth, deep] as const,
    ]);
    const conditions = reduceConditions(
      [
        less(whole, constant(side.extent)),
        less(deep, constant(form.depth.extent)),
        ...substituteConditions(side.access.guard, bindings),
      ],
      all,
    );
    const slot = mod(step, stages);
    return {
      source: side.access.index.map((e) => simplify(substitute(e, bindings), all)),
      target: sharedIndex(staged, slot, row, column).map((e) => simplify(e, all)),
      conditions,
    };
  }
}
