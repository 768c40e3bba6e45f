/**
 * Copies of one stage's tiles into shared memory by all threads of a block: asynchronous ones where a copy
 * moves at least four bytes, through registers else, and where something becomes of the elements on their way (loads
 * before the work on another stage, what becomes of them and stores after it). What lies outside the operands, or
 * where its guard fails, is zero.
 */
import { issue, literalExpr, loadExpr, storeTo, tileAt } from "../../program/expr.ts";
import type { Statement } from "../../program/statement.ts";
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
import { loadAccess, lowerScalar, type Operand, type Site } from "../operands.ts";
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

/** Where a vector of an operand is: its row (or column) and depth, and the statement's loops there. */
interface CopyPlace {
  readonly ranges: IndexRanges;
  readonly bindings: ReadonlyMap<string, IndexExpr>;
  /** What of the tile is in the operand. */
  readonly inside: readonly Condition[];
  /** In shared memory. */
  readonly target: readonly IndexExpr[];
}

/** The variable that stands for a lane of a vector. */
const laneName = "lane";

export class StageCopies {
  readonly #plan: ProductPlan;
  readonly #place: ProductPlace;
  readonly #operand: (tensor: string) => Operand;

  /** @param operand where tensors are found of which operands are made */
  constructor(plan: ProductPlan, place: ProductPlace, operand: (tensor: string) => Operand) {
    this.#plan = plan;
    this.#place = place;
    this.#operand = operand;
  }

  get sides(): readonly StagedSide[] {
    return [this.#plan.left, this.#plan.right];
  }

  /** Asynchronous copies of the stage `step` into its slot. */
  issueAsync(block: Block, step: IndexExpr, ranges: IndexRanges): void {
    for (const staged of this.sides.filter((s) => s.isAsync)) {
      this.#each(block, staged, (body, number) => {
        const copy = this.#copy(staged, number, step, ranges);
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

  /** Loads of what passes through registers; gives what becomes of it and the stores, for later. */
  load(block: Block, step: IndexExpr, ranges: IndexRanges): readonly Statement[] {
    const later = block.inner();
    for (const staged of this.sides.filter((s) => !s.isAsync)) {
      this.#each(block, staged, (body, number, isWhole) => {
        const behind = isWhole ? later : body;
        if (staged.side.prologue) {
          this.#make(staged, this.#placeOf(staged, number, step, ranges, true), { body, behind });
          return;
        }
        const copy = this.#copy(staged, number, step, ranges);
        const type = { dtype: staged.side.dtype, lanes: staged.lanes };
        const guarded = { guard: copy.conditions, fill: 0 };
        const value = loadExpr(staged.side.access.tensor, copy.source, type, guarded);
        behind.push(storeTo(staged.buffer, copy.target, isWhole ? body.bind(value) : value));
      });
    }
    return later.statements;
  }

  /** A vector of an operand that is made of what is read in `body`, made and stored in `behind`. */
  #make(
    { side, lanes, buffer }: StagedSide,
    { bindings, inside, ranges, target }: CopyPlace,
    { body, behind }: { readonly body: Block; readonly behind: Block },
  ): void {
    const { reads, value } = side.prologue!;
    const lane = lanes > 1 ? { name: laneName, lanes } : undefined;
    const nothing = { loops: new Map(), assumed: new Set<string>(), unguarded: false };
    const site: Site = { ...nothing, bindings, ranges, lane, operand: this.#operand, block: body };
    const read = reads.map((access) =>
      loadAccess({ ...access, guard: [...access.guard, ...inside] }, site),
    );
    behind.push(storeTo(buffer, target, lowerScalar(value, read, { ...site, block: behind })));
  }

  /** One copy after another of this thread; a ragged last one only where it is in the tile. */
  #each(
    block: Block,
    staged: StagedSide,
    fill: (body: Block, number: IndexExpr, isWhole: boolean) => void,
  ): void {
    const { depth, threads } = this.#plan;
    const total = (staged.extent * depth) / staged.lanes;
    const thread = variable(this.#place.thread);
    for (let first = 0; first < total; first += threads) {
      const number = add(first, thread);
      if (first + threads <= total) fill(block, number, true);
      else block.branch([less(number, constant(total))], (body) => fill(body, number, false));
    }
  }

  #copy(staged: StagedSide, number: IndexExpr, step: IndexExpr, ranges: IndexRanges): Copy {
    const { side } = staged;
    const at = this.#placeOf(staged, number, step, ranges);
    const guard = substituteConditions(side.access.guard, at.bindings);
    return {
      source: side.access.index.map((e) => simplify(substitute(e, at.bindings), at.ranges)),
      target: at.target,
      conditions: reduceConditions([...at.inside, ...guard], at.ranges),
    };
  }

  /** @param hasLanes whether the loops are those of a lane, not of the first one */
  #placeOf(
    staged: StagedSide,
    number: IndexExpr,
    step: IndexExpr,
    given: IndexRanges,
    hasLanes = false,
  ): CopyPlace {
    const { form, depth, stages } = this.#plan;
    const { side, along, lanes, extent } = staged;
    const inLine = (along === "depth" ? depth : extent) / lanes;
    const [line, offset] = [floorDiv(number, inLine), mul(lanes, mod(number, inLine))];
    const [row, column] = along === "depth" ? [line, offset] : [offset, line];
    const ranges = new Map([...this.#place.ranges, ...given]);
    const start = staged === this.#plan.left ? this.#place.left : this.#place.right;
    const whole = simplify(add(start, row), ranges);
    const deep = simplify(add(mul(depth, step), column), ranges);
    const lane = hasLanes && lanes > 1 ? { index: variable(laneName), lanes } : undefined;
    if (lane) ranges.set(laneName, { min: 0, max: lanes - 1 });
    const laneOf = (part: "depth" | "space") => (part === along ? lane : undefined);
    const inLane = (at: IndexExpr, part: "depth" | "space"): IndexExpr =>
      laneOf(part) ? add(at, variable(laneName)) : at;
    const bindings = new Map([
      ...this.#place.batch,
      ...digitsOf(side, whole, laneOf("space")),
      ...digitsOf(form.depth, deep, laneOf("depth")),
      [staged === this.#plan.left ? flatRow : flatColumn, inLane(whole, "space")] as const,
      [flatDepth, inLane(deep, "depth")] as const,
    ]);
    const inside = reduceConditions([less(whole, side.size), less(deep, form.depth.size)], ranges);
    const slot = mod(step, stages);
    const target = sharedIndex(staged, slot, row, column).map((e) => simplify(e, ranges));
    return { ranges, bindings, inside, target };
  }
}
