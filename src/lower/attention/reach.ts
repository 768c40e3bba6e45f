/**
 * Where data says which columns the rows of a problem meet (attention-bounds.ts): the steps of a tile as index
 * variables, bound from what is read. All threads of a block read the same, so that they walk the same steps,
 * whoever copies and whoever multiplies. Where each row has its own columns (tokens of several sequences behind
 * each other) they read those of all rows of the tile, in whatever order the rows come.
 *
 *   last     the step of the last column that a row of the tile may meet, 0 where there is none
 *   further  steps before it, down to that of the first column that one may meet
 *   early    trips at the start in which a row may not meet all columns because it ends before
 *   late     the first trip in which a row may not because it begins behind
 */
import { applyExpr, castExpr, extractExpr, indexValue, literalExpr } from "../../program/expr.ts";
import type { Expr } from "../../program/statement.ts";
import { type Bound, isOfRows, mostPlaces } from "../../schedule/attention/attention-bounds.ts";
import { isMultiple } from "../../schedule/attention/attention-form.ts";
import { dtypes } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  type IndexLike,
  min,
  sub,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRange, simplify } from "../../semantics/index-range.ts";
import type { ScalarExpr } from "../../semantics/scalar-expr.ts";
import type { Block, Names } from "../block.ts";
import { type AttentionPlace, type AttentionPlan, maskedBehind, stepsOfAll } from "./plan.ts";

/** A bound of a row of the thread, in i32, as a value of a block. */
type BoundOf = (row: IndexExpr, block: Block) => Expr;

/** Bounds as values of a role, and the trips in which they have to be asked: before some trip, from one on. */
export interface ReachBounds {
  readonly ends: readonly BoundOf[];
  readonly starts: readonly BoundOf[];
  readonly early: IndexExpr;
  readonly late: IndexExpr | undefined;
}

/** Rows whose values are lowered: one that holds for all, or neighbours as lanes. */
export interface RowsAt {
  readonly row: IndexExpr;
  readonly lanes: number;
  /** Whether they may be past the last row. */
  readonly isOpen: boolean;
}

/** Bytes of the vectors in which rows are read. */
const vectorBytes = 8;

/** A bound's value, of a problem or of such rows. */
type LowerBound = (value: ScalarExpr, block: Block, at?: RowsAt) => Expr;

/** Names of the steps; `further` is `last` where every row begins at the first column. */
export function reachOf(
  plan: AttentionPlan,
  names: Names,
  ranges: Map<string, IndexRange>,
): AttentionPlace["reach"] {
  const { reach } = plan.form;
  if (!reach) return undefined;
  const steps = stepsOfAll(plan);
  const fresh = (stem: string, max: number): IndexExpr => {
    const name = names.fresh(stem);
    ranges.set(name, { min: 0, max });
    return variable(name);
  };
  const last = fresh("last", steps - 1);
  const further = reach.starts.length > 0 ? fresh("further", steps - 1) : last;
  if (!isOfRows(reach)) return { last, further };
  const late = reach.starts.length > 0 ? { late: fresh("late", steps) } : {};
  return { last, further, early: fresh("early", steps), ...late };
}

/** Binds the steps of a tile for what follows in the block, and those that have to ask where it masks. */
export function bindReach(
  plan: AttentionPlan,
  place: AttentionPlace,
  { lower, isMasking }: { readonly lower: LowerBound; readonly isMasking: boolean },
  block: Block,
): ReachBounds {
  const { reach } = plan.form;
  const values = new TileBounds(plan, place, lower, block);
  const [ends, starts] = [reach!.ends, reach!.starts].map((of) => of.map((b) => values.of(b)));
  const steps = place.reach!;
  const i32 = (n: number): Expr => literalExpr(n, "i32");
  const columnsBut = (more: number): Expr => numberIn(block, add(plan.form.columnCount, more));
  const all = columnsBut(-1);
  const end = ends!.reduce((e, b) => applyExpr("min", e, b.most()), all);
  const last = block.bind(applyExpr("max", end, i32(0)));
  const step = (column: Expr): Expr => applyExpr("div", column, i32(plan.columns));
  const bind = (index: IndexExpr, value: Expr, extent: number): void => {
    const bound = { wraps: false, range: "proved", extent: constant(extent) } as const;
    block.push({ kind: "letIndex", name: index.key, value: block.bind(value), ...bound });
  };
  const count = stepsOfAll(plan);
  bind(steps.last, step(last), count);
  if (starts!.length > 0) {
    const start = starts!.reduce((e, b) => applyExpr("max", e, b.least()), i32(0));
    const first = step(applyExpr("min", start, last));
    bind(steps.further, applyExpr("sub", step(last), first), count);
  }
  const behind = applyExpr("add", step(last), i32(1));
  const atLeastNone = (e: Expr): Expr => applyExpr("max", e, i32(0));
  if (isMasking && steps.early) {
    const least = ends!.reduce((e, b) => applyExpr("min", e, b.least()), all);
    const whole = step(atLeastNone(applyExpr("add", least, i32(1))));
    bind(steps.early, atLeastNone(applyExpr("sub", behind, whole)), count + 1);
  }
  if (isMasking && steps.late) {
    const most = starts!.reduce((e, b) => applyExpr("max", e, b.most()), i32(0));
    const begun = applyExpr("min", most, columnsBut(0));
    const first = step(applyExpr("add", begun, i32(plan.columns - 1)));
    bind(steps.late, atLeastNone(applyExpr("sub", behind, first)), count + 1);
  }
  return {
    ends: ends!.map((b) => b.ofThread),
    starts: starts!.map((b) => b.ofThread),
    early: steps.early ?? constant(plan.maskedTrips),
    late: steps.late ?? maskedBehind(plan, steps),
  };
}

/** A number of the launch in i32. */
export function numberIn(block: Block, e: IndexExpr): Expr {
  const known = constantValue(e);
  return known === undefined ? block.bind(indexValue(e, "i32")) : literalExpr(known, "i32");
}

/** A bound over the rows of a tile. */
interface TileBound {
  readonly ofThread: BoundOf;
  readonly least: () => Expr;
  readonly most: () => Expr;
}

class TileBounds {
  readonly #plan: AttentionPlan;
  readonly #place: AttentionPlace;
  readonly #lower: LowerBound;
  readonly #block: Block;

  constructor(plan: AttentionPlan, place: AttentionPlace, lower: LowerBound, block: Block) {
    this.#plan = plan;
    this.#place = place;
    this.#lower = lower;
    this.#block = block;
  }

  of(bound: Bound): TileBound {
    return bound.ofRow ? this.#ofRows(bound) : this.#ofProblem(bound);
  }

  #ofProblem(bound: Bound): TileBound {
    const { form, rows } = this.#plan;
    const { firstRow, ranges } = this.#place;
    const data = bound.value && inPlaces(bound, this.#lower(bound.value, this.#block));
    const value = this.#block.bind(data ?? literalExpr(bound.constant, "i32"));
    const at = (row: IndexLike): Expr =>
      bound.moves ? applyExpr("add", value, indexValue(row, "i32")) : value;
    const lastRow = simplify(min(add(firstRow, rows - 1), sub(form.rowCount, 1)), ranges);
    return { ofThread: at, least: () => at(firstRow), most: () => at(lastRow) };
  }

  #ofRows(bound: Bound): TileBound {
    const { form, rows } = this.#plan;
    const { firstRow, ranges } = this.#place;
    const isEven = isMultiple(form.rowCount, rows);
    const lanes = isEven ? vectorBytes / (dtypes[bound.value!.dtype].bits / 8) : 1;
    const folds = (["min", "max"] as const).map((op): Fold => ({ op }));
    for (let first = 0; first < rows; first += lanes) {
      // Rows past the last one are it again.
      const row = simplify(min(add(firstRow, first), sub(form.rowCount, lanes)), ranges);
      const at = this.#block.bind(
        this.#rowValue(bound, { row, lanes, isOpen: false }, this.#block),
      );
      // Each with those before it at once, so that few are in registers.
      for (const f of folds) f.so = f.so ? this.#block.bind(applyExpr(f.op, f.so, at)) : at;
    }
    const [least, most] = folds.map((f) => this.#across(f));
    return {
      // Read where it is asked: few trips ask, and registers are scarce.
      ofThread: (row, block) => {
        const value = this.#rowValue(bound, { row, lanes: 1, isOpen: !isEven }, block);
        return inPlaces(bound, value);
      },
      least: () => inPlaces(bound, least!),
      most: () => inPlaces(bound, most!),
    };
  }

  /** The value at rows, with their numbers where it moves with them; without its constant. */
  #rowValue(bound: Bound, at: RowsAt, block: Block): Expr {
    const value = this.#lower(bound.value!, block, at);
    if (!bound.moves) return value;
    return applyExpr("add", near(value), indexValue(at.row, value.dtype, at.lanes, 1));
  }

  /** Of the lanes of a vector one number. */
  #across({ op, so }: Fold): Expr {
    const vector = so!;
    const lanes = Array.from({ length: vector.lanes }, (_, lane) =>
      vector.lanes === 1 ? vector : extractExpr(vector, lane),
    );
    return lanes.reduce((a, b) => this.#block.bind(applyExpr(op, a, b)));
  }
}

/** Values of rows folded so far, lane by lane. */
interface Fold {
  readonly op: "min" | "max";
  so?: Expr;
}

/** A bound with its constant, in i32. */
function inPlaces({ constant: fixed }: Bound, data: Expr): Expr {
  const sum = fixed === 0 ? data : applyExpr("add", data, literalExpr(fixed, data.dtype));
  const value = near(sum);
  return value.dtype === "i32" ? value : castExpr(value, "i32", false);
}

/** A number far from all places where it is beyond them. */
function near(value: Expr): Expr {
  const number = (n: number): Expr => literalExpr(n, value.dtype, value.lanes);
  return applyExpr("max", applyExpr("min", value, number(mostPlaces)), number(-mostPlaces));
}
