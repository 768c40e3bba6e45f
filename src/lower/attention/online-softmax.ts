/**
 * The running softmax of a thread's rows (Milakov and Gimelshein 2018): of each row the largest score so far,
 * the sum of its weights by that and, in the results, the weighted values. A step with a larger score scales
 * both. Weights are powers of two, so that a score that is a multiple of its sum costs one multiply-add:
 *
 *   weight = 2^(sum * scale * log2(e) - most * scale * log2(e))
 *
 * Rows lie across four neighbouring threads; each sums its own weights, and they add up at the end. As long
 * as a row has met minus infinity alone its weights are zero; where that is all, zero by zero gives NaN, as
 * the softmax itself does.
 */
import {
  applyExpr,
  callExpr,
  castExpr,
  extractExpr,
  indexValue,
  issue,
  literalExpr,
  loadExpr,
  packExpr,
  splatExpr,
  storeTo,
  tileAt,
} from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import { isMultiple, plainScale } from "../../schedule/attention/attention-form.ts";
import { atMost, type Condition, less } from "../../semantics/condition.ts";
import { add, constant, type IndexExpr, sub } from "../../semantics/index-expr.ts";
import type { Block, Names } from "../block.ts";
import { freeze } from "../exchange.ts";
import { ownName } from "../own-names.ts";
import { registerTile } from "../tiles.ts";
import type { AttentionPlan } from "./plan.ts";
import { numberIn, type ReachBounds } from "./reach.ts";
import { resultName, scoreName, type ThreadParts, weightName } from "./thread-parts.ts";

/** Largest scores, sums of weights, by what both change, and what threads tell each other. */
export const [mostName, totalName] = [ownName("most"), ownName("totals")] as const;
const changeName = ownName("changes");
const [mineName, otherName] = [ownName("own"), ownName("other")] as const;

/** What a score is made of beside its sum: a pair of them at a row and columns, from the sums. */
export type ScorePair = (block: Block, at: PairPlace, sums: Expr) => Expr;

export interface PairPlace {
  readonly row: IndexExpr;
  readonly column: IndexExpr;
  readonly ranges: ReadonlyMap<string, { readonly min: number; readonly max: number }>;
}

export interface StepPlace {
  /** First row of the tile and first column of the step. */
  readonly firstRow: IndexExpr;
  readonly firstColumn: IndexExpr;
  /** Number of the step. */
  readonly trip: IndexExpr;
  readonly ranges: PairPlace["ranges"];
  /** What data says of the columns. */
  readonly bounds: ReachBounds | undefined;
}

/** Scores from here on would be infinite by a power of two. */
const farScore = 2 ** 120;
const farScale = 2 ** -110;

export class OnlineSoftmax {
  readonly #plan: AttentionPlan;
  readonly #parts: ThreadParts;
  readonly #names: Names;
  /** By what a stored score is multiplied for the power of two. */
  readonly #scale: number;
  readonly #isPlain: boolean;

  constructor(plan: AttentionPlan, parts: ThreadParts, names: Names) {
    this.#plan = plan;
    this.#parts = parts;
    this.#names = names;
    const scale = plainScale(plan.form.score);
    this.#isPlain = scale !== undefined;
    this.#scale = Math.LOG2E * (scale ?? 1);
  }

  get buffers(): readonly Buffer[] {
    const { down } = this.#parts;
    return [
      registerTile(mostName, "f32", [down, 2]),
      registerTile(totalName, "f32", [down, 2]),
      registerTile(changeName, "f32", [down, 2]),
      registerTile(mineName, "f32", [1]),
      registerTile(otherName, "f32", [1]),
    ];
  }

  clear(block: Block): void {
    this.#eachRow((i, half) => {
      block.push(storeTo(mostName, [i, half], literalExpr(-Infinity, "f32")));
      block.push(storeTo(totalName, [i, half], literalExpr(0, "f32")));
    });
  }

  /** From the scores of a step its weights, in their place, and sums by the new largest scores. */
  weigh(block: Block, place: StepPlace, score: ScorePair): void {
    if (!this.#isPlain) this.#finishScores(block, place, score);
    this.#mask(block, place);
    this.#eachRow((i, half) => this.#row(block.inner(), block, i, half));
  }

  /** Results so far by the new largest scores. */
  scale(block: Block): void {
    this.#eachRow((i, half) => {
      const own = block.inner();
      const change = loadExpr(changeName, [i, half], { dtype: "f32", lanes: 1 });
      const factor = splatExpr(freeze(change, this.#names, own), 2);
      for (let j = 0; j < this.#plan.form.width / 8; j++) {
        const at = this.#parts.pair(i, j, half);
        const old = loadExpr(resultName, at, { dtype: "f32", lanes: 2 });
        own.push(storeTo(resultName, at, applyExpr("mul", old, factor)));
      }
      block.push(...own.statements);
    });
  }

  /** Weights as the next product takes them. */
  narrow(block: Block): void {
    this.#eachPair((i, j, half) => {
      const wide = loadExpr(scoreName, this.#parts.pair(i, j, half), { dtype: "f32", lanes: 2 });
      const narrow = castExpr(wide, this.#plan.form.dtype, false);
      block.push(storeTo(weightName, [i, j >> 1, 4 * (j & 1) + 2 * half], narrow));
    });
  }

  #eachRow(visit: (i: number, half: number) => void): void {
    for (let i = 0; i < this.#parts.down; i++) for (const half of [0, 1]) visit(i, half);
  }

  #eachPair(visit: (i: number, j: number, half: number) => void): void {
    this.#eachRow((i, half) => {
      for (let j = 0; j < this.#plan.columns / 8; j++) visit(i, j, half);
    });
  }

  #pair(block: Block, i: number, j: number, half: number): Expr {
    const value = loadExpr(scoreName, this.#parts.pair(i, j, half), { dtype: "f32", lanes: 2 });
    return freeze(value, this.#names, block);
  }

  #placeOf({ firstRow, firstColumn, ranges }: StepPlace, [i, j, half]: readonly number[]) {
    const row = add(firstRow, this.#parts.row(i!, half!));
    return { row, column: add(firstColumn, this.#parts.column(j!)), ranges };
  }

  /** Scores from the sums of products. */
  #finishScores(block: Block, place: StepPlace, score: ScorePair): void {
    this.#eachPair((i, j, half) => {
      const own = block.inner();
      const value = score(own, this.#placeOf(place, [i, j, half]), this.#pair(own, i, j, half));
      block.push(...own.statements, storeTo(scoreName, this.#parts.pair(i, j, half), value));
    });
  }

  /** Minus infinity where a row does not meet a column, in the trips that have such. */
  #mask(block: Block, place: StepPlace): void {
    const { maskedTrips, maskedFrom, windowTrips, form, isTriangular } = this.#plan;
    const { ahead, behind, columnCount } = form;
    const splat = (own: Block, limit: IndexExpr): Expr =>
      splatExpr(own.bind(indexValue(limit, "i32")), 2);
    const first = [less(place.trip, constant(maskedTrips))];
    if (place.bounds) {
      this.#maskReach(block, place, place.bounds);
      return;
    }
    this.#keep(block, place, maskedTrips === 0 ? undefined : first, (own, row, at) => {
      const upTo = (last: IndexExpr): Expr => applyExpr("lessEqual", at, splat(own, last));
      return [
        ...(ahead === undefined ? [] : [upTo(add(row, ahead))]),
        ...(isTriangular ? [] : [upTo(sub(columnCount, 1))]),
      ];
    });
    if (behind === undefined) return;
    this.#keep(block, place, [atMost(maskedFrom, place.trip)], (own, row, at) => [
      applyExpr("lessEqual", splat(own, sub(row, behind)), at),
    ]);
    if (windowTrips === undefined) return;
    const before = [less(place.firstColumn, constant(0))];
    this.#keep(block, place, before, (own, _, at) => [
      applyExpr("lessEqual", splat(own, constant(0)), at),
    ]);
  }

  /** The same where data says it. */
  #maskReach(block: Block, place: StepPlace, { ends, starts, early, late }: ReachBounds): void {
    const { form, columns } = this.#plan;
    const limitOf = (own: Block, bound: ReachBounds["ends"][number], row: IndexExpr): Expr =>
      splatExpr(own.bind(bound(row, own)), 2);
    const isEven = isMultiple(form.columnCount, columns);
    const lastOf = (own: Block): Expr => splatExpr(numberIn(own, sub(form.columnCount, 1)), 2);
    this.#keep(block, place, [less(place.trip, early)], (own, row, at) => [
      ...ends.map((end) => applyExpr("lessEqual", at, limitOf(own, end, row))),
      ...(isEven ? [] : [applyExpr("lessEqual", at, lastOf(own))]),
    ]);
    if (!late) return;
    this.#keep(block, place, [atMost(late, place.trip)], (own, row, at) =>
      starts.map((start) => applyExpr("lessEqual", limitOf(own, start, row), at)),
    );
  }

  /** Scores that pass all tests, where the conditions hold; none: nowhere. */
  #keep(
    block: Block,
    place: StepPlace,
    conditions: readonly Condition[] | undefined,
    testsOf: (own: Block, row: IndexExpr, at: Expr) => readonly Expr[],
  ): void {
    if (!conditions) return;
    const never = literalExpr(-Infinity, "f32", 2);
    block.branch(conditions, (inside) => {
      this.#eachPair((i, j, half) => {
        const { row, column } = this.#placeOf(place, [i, j, half]);
        const own = inside.inner();
        const at = own.bind(indexValue(column, "i32", 2, 1));
        const kept = testsOf(own, row, at).reduce(
          (value, test) => applyExpr("select", test, value, never),
          this.#pair(own, i, j, half),
        );
        inside.push(...own.statements, storeTo(scoreName, this.#parts.pair(i, j, half), kept));
      });
    });
  }

  /** The weights of one row. */
  #row(own: Block, block: Block, i: number, half: number): void {
    const { columns } = this.#plan;
    const f32 = { dtype: "f32", lanes: 1 } as const;
    const bind = (e: Expr): Expr => freeze(e, this.#names, own);
    const pairs = Array.from({ length: columns / 8 }, (_, j) => this.#pair(own, i, j, half));
    const before = bind(loadExpr(mostName, [i, half], f32));
    let most = pairs[0]!;
    for (const pair of pairs.slice(1)) most = bind(applyExpr("max", most, pair));
    const mine = bind(applyExpr("max", extractExpr(most, 0), extractExpr(most, 1)));
    const ofRow = bind(applyExpr("max", before, this.#acrossThreads(own, "max", mine)));
    own.push(storeTo(mostName, [i, half], ofRow));
    const power = this.#powers(own, ofRow);
    const change = power(before);
    const sums: Expr[] = [];
    pairs.forEach((pair, j) => {
      const weights = [0, 1].map((lane) => power(extractExpr(pair, lane)));
      weights.forEach((w, lane) => {
        sums[lane] = sums[lane] ? bind(applyExpr("add", sums[lane], w)) : w;
      });
      own.push(storeTo(scoreName, this.#parts.pair(i, j, half), packExpr(weights)));
    });
    const total = loadExpr(totalName, [i, half], f32);
    const sum = callExpr("fma.f32", total, change, applyExpr("add", sums[0]!, sums[1]!));
    own.push(storeTo(totalName, [i, half], sum), storeTo(changeName, [i, half], change));
    block.push(...own.statements);
  }

  /** Weights of scores of a row by its largest one. */
  #powers(block: Block, ofRow: Expr): (score: Expr) => Expr {
    const bind = (e: Expr): Expr => freeze(e, this.#names, block);
    const isNone = applyExpr("equal", ofRow, literalExpr(-Infinity, "f32"));
    const base = bind(applyExpr("select", isNone, literalExpr(0, "f32"), ofRow));
    const scale = this.#scaleOf(ofRow, bind);
    const shift = bind(applyExpr("neg", applyExpr("mul", base, scale)));
    return (score) => bind(callExpr("exp2.f32", callExpr("fma.f32", score, scale, shift)));
  }

  /**
   * Scores that a model adds a mask to may be the least floats there are (what marks padding), whose product by log2 e
   * is infinite. Their powers are of a smaller multiple: as far apart as such floats are, it is still all or nothing.
   */
  #scaleOf(ofRow: Expr, bind: (e: Expr) => Expr): Expr {
    const scale = literalExpr(this.#scale, "f32");
    if (this.#isPlain) return scale;
    const isFar = applyExpr("lessEqual", literalExpr(farScore, "f32"), applyExpr("abs", ofRow));
    return bind(applyExpr("select", isFar, literalExpr(farScale, "f32"), scale));
  }

  /** By what a row's sums by some score change for those by its largest one. */
  factor(block: Block, [i, half]: readonly [number, number], score: Expr): Expr {
    const most = loadExpr(mostName, [i, half], { dtype: "f32", lanes: 1 });
    return this.#powers(block, freeze(most, this.#names, block))(score);
  }

  /** Sums of rows by one thread become those of all that share them. */
  sumRows(block: Block): void {
    this.#eachRow((i, half) => {
      const own = loadExpr(totalName, [i, half], { dtype: "f32", lanes: 1 });
      const total = this.#acrossThreads(block, "add", freeze(own, this.#names, block));
      block.push(storeTo(totalName, [i, half], total));
    });
  }

  /** One value of the four threads that share a row. */
  #acrossThreads(block: Block, op: "max" | "add", value: Expr): Expr {
    let mine = value;
    for (const distance of [1, 2]) {
      block.push(storeTo(mineName, [0], mine));
      const [other, own] = [tileAt(otherName, [0], [1]), tileAt(mineName, [0], [1])];
      block.push(issue(`shuffle.xor${distance}.f32`, [other, own]));
      const theirs = loadExpr(otherName, [0], { dtype: "f32", lanes: 1 });
      mine = freeze(applyExpr(op, mine, theirs), this.#names, block);
    }
    return mine;
  }

  /** By what the results of each row are multiplied at the end, by block of 16 rows and half of it. */
  shares(block: Block): readonly (readonly Expr[])[] {
    return Array.from({ length: this.#parts.down }, (_, i) =>
      [0, 1].map((half) => {
        const total = loadExpr(totalName, [i, half], { dtype: "f32", lanes: 1 });
        return freeze(applyExpr("reciprocal", total), this.#names, block);
      }),
    );
  }
}
