/**
 * What becomes of the sums of a tile: the statement's epilogue on registers, guarded where the tile sticks out
 * of the results, and stores by the threads that hold them, or by way of shared memory (streamed.ts, `gather`).
 */
import type { Expr } from "../../program/statement.ts";
import type { Access, Statement as NestStatement, Write } from "../../region/nest.ts";
import { isOfResult, isWhole } from "../../schedule/products/product-form.ts";
import type { ResultFold } from "../../schedule/products/result-folds.ts";
import { placeInRun } from "../../schedule/products/result-runs.ts";
import type { ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { atMost, type Condition, less } from "../../semantics/condition.ts";
import { add, constant, type IndexExpr, substitute, variable } from "../../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../../semantics/index-range.ts";
import type { Block, Names } from "../block.ts";
import { loadAccess, lowerScalar, type Operand, type Site, storeWrite } from "../operands.ts";
import type { ResultPiece } from "./accumulators.ts";
import type { ProductPlace } from "./copies.ts";
import { type FlatView, flatColumn, flatRow, operandsThrough } from "./flat-access.ts";
import { type FoldContext, foldRow, siteOfFold } from "./folded.ts";
import { digitsOf, type ProductPlan } from "./plan.ts";
import type { StreamedProduct } from "./streamed.ts";

export interface ProductContext {
  readonly names: Names;
  readonly operand: (tensor: string) => Operand;
}

export type Flatten = <T extends Access | Write>(access: T) => T;

export interface FlatContext extends ProductContext {
  /** The access through a view where there is one. */
  readonly flat: Flatten;
  readonly views: ReadonlyMap<string, FlatView>;
}

export class ProductResults {
  readonly #region: ScheduledRegion;
  readonly #plan: ProductPlan;
  readonly #context: FlatContext;
  readonly #place: ProductPlace;
  readonly #writes: NestStatement["writes"];
  readonly #finishReads: NestStatement["finishReads"];

  constructor(
    region: ScheduledRegion,
    plan: ProductPlan,
    place: ProductPlace,
    context: FlatContext,
  ) {
    this.#region = region;
    this.#plan = plan;
    this.#place = place;
    this.#context = context;
    const [{ statement }] = region.statements as [ScheduledRegion["statements"][number]];
    this.#writes = statement.writes.map(context.flat);
    this.#finishReads = statement.finishReads.map(context.flat);
  }

  /** Loads what the epilogue reads for each piece of the results: where it asks again, they are there. */
  loadAhead(block: Block, pieces: readonly ResultPiece[]): void {
    const { rows, columns } = this.#plan.form;
    const own = this.#finishReads.filter((r) => isOfResult(r, rows, columns));
    for (const { row, column, lanes } of pieces) {
      const at = [add(this.#place.left, row), add(this.#place.right, column)] as const;
      const site = this.#site(block, at, lanes);
      for (const access of own) this.#operand(access, site, this.#inside(at, lanes));
    }
  }

  /** What an epilogue reads, and only inside. */
  #operand(access: Access, site: Site, inside: readonly Condition[]): Expr {
    return loadAccess({ ...access, guard: [...access.guard, ...inside] }, site);
  }

  gather(body: Block, stream: StreamedProduct): void {
    const [{ statement }] = this.#region.statements as [ScheduledRegion["statements"][number]];
    const { tensor, index } = statement.writes[0]!;
    const { rows, columns } = this.#plan.form;
    const [[row], [column]] = [rows.loops, columns.loops];
    const placeOf = (at: IndexExpr, from: IndexExpr): readonly IndexExpr[] => {
      const bindings = new Map(this.#place.batch).set(row!.name, at).set(column!.name, from);
      return index.map((e) => this.#inRun(substitute(e, bindings)));
    };
    const { dtype } = this.#region.region.tensors.get(tensor)!;
    const value = (block: Block, { row, column, ...piece }: ResultPiece): Expr => {
      const at = [add(this.#place.left, row), add(this.#place.right, column)] as const;
      const site = this.#site(block, at, piece.lanes);
      return this.#finished(site, piece.value, this.#inside(at, piece.lanes))[0]!;
    };
    stream.gather(body, { tensor, dtype, placeOf, value });
  }

  /** A place whose divisions are those of the column, where results are in runs. */
  #inRun(e: IndexExpr, ranges: IndexRanges = this.#place.ranges): IndexExpr {
    return this.#plan.form.run === undefined ? e : placeInRun(e, ranges);
  }

  /** What of a tile lies in the result: copies to memory drop the rest, loads must not reach it. */
  #inside([row, column]: readonly [IndexExpr, IndexExpr], lanes: number): readonly Condition[] {
    const { form, rows, columns } = this.#plan;
    return [
      ...(isWhole(form.rows, rows) ? [] : [less(row, form.rows.size)]),
      ...(isWhole(form.columns, columns) ? [] : [atMost(add(column, lanes), form.columns.size)]),
    ];
  }

  /** Folds each row of the tile (folded.ts). */
  fold(block: Block, pieces: readonly ResultPiece[], fold: ResultFold, context: FoldContext): void {
    const { ranges, left, right } = this.#place;
    const { size } = this.#plan.form.rows;
    for (const inRow of piecesByRow(pieces)) {
      const row = simplify(add(left, inRow[0]!.row), ranges);
      const folded = inRow.map(({ column, lanes, value }) => {
        const at = [row, simplify(add(right, column), ranges)] as const;
        const inside = this.#inside(at, lanes);
        const site = this.#site(block, at, lanes);
        const [made] = this.#finished(site, value, inside);
        return { site: siteOfFold(fold, site), value: made!, inside };
      });
      const isRagged = !isWhole(this.#plan.form.rows, this.#plan.rows);
      foldRow(fold, folded, isRagged ? [less(row, size)] : [], context);
    }
  }

  /** Pieces of one row stand together under the row's condition. */
  store(block: Block, pieces: readonly ResultPiece[]): void {
    const { form } = this.#plan;
    const { left, right } = this.#place;
    for (const inRow of piecesByRow(pieces)) {
      const row = simplify(add(left, inRow[0]!.row), this.#place.ranges);
      const isRagged = !isWhole(form.rows, this.#plan.rows);
      block.branch(isRagged ? [less(row, form.rows.size)] : [], (body) => {
        for (const piece of inRow) {
          const column = simplify(add(right, piece.column), this.#place.ranges);
          this.#piece(body, row, column, piece);
        }
      });
    }
  }

  #piece(block: Block, row: IndexExpr, column: IndexExpr, { lanes, value }: ResultPiece): void {
    const { form } = this.#plan;
    const { columns } = form;
    // One condition for all pieces, also where some would not need it: so that they tile the result.
    const isRagged = !isWhole(columns, this.#plan.columns);
    const isFlat = this.#writes.every((w) => this.#context.views.has(w.tensor));
    const last = columns.loops.at(-1)?.extent ?? constant(1);
    const nearest = { size: isFlat ? columns.size : last };
    if (!form.isSwapped && isWhole(nearest, lanes) && (form.run ?? 0) % lanes === 0) {
      const whole = [atMost(add(column, lanes), columns.size)];
      block.branch(isRagged ? whole : [], (body) =>
        this.#finish(body, row, column, { lanes, value }),
      );
      return;
    }
    const sums = block.bind(value);
    for (let lane = 0; lane < lanes; lane++) {
      const at = add(column, lane);
      const one: Expr = { kind: "extract", dtype: form.sum, lanes: 1, operand: sums, lane };
      const isThere = [less(at, columns.size)];
      block.branch(isRagged ? isThere : [], (body) =>
        this.#finish(body, row, at, { lanes: 1, value: one }),
      );
    }
  }

  /** The statement's epilogue on neighbouring results, and their store. */
  #finish(
    block: Block,
    row: IndexExpr,
    column: IndexExpr,
    { lanes, value }: Pick<ResultPiece, "lanes" | "value">,
  ): void {
    const site = this.#site(block, [row, column], lanes);
    const results = this.#finished(site, value);
    this.#writes.forEach((write, i) => {
      storeWrite(this.#placed(write, site), results[i]!, [], site);
    });
  }

  /** The write with its place in a run spelled by the digits of the tile and the thread. */
  #placed(write: Write, { bindings, ranges }: Site): Write {
    if (this.#plan.form.run === undefined) return write;
    return {
      ...write,
      index: write.index.map((e) => this.#inRun(substitute(e, bindings), ranges)),
    };
  }

  /** What the epilogue makes of sums, one value a write. */
  #finished(site: Site, value: Expr, inside: readonly Condition[] = []): readonly Expr[] {
    const [{ statement }] = this.#region.statements as [ScheduledRegion["statements"][number]];
    const sums = site.block.bind(value);
    const operands = this.#finishReads.map((access) => this.#operand(access, site, inside));
    if (!statement.finish) return [sums];
    return statement.finish.map((e) => lowerScalar(e, [sums, ...operands], site));
  }

  #site(block: Block, [row, column]: readonly [IndexExpr, IndexExpr], lanes: number): Site {
    const { form } = this.#plan;
    const laneName = "lane";
    const lane = lanes > 1 ? { name: laneName, lanes } : undefined;
    const laneIndex = lane && variable(laneName);
    const bindings = new Map([
      ...this.#place.batch,
      ...digitsOf(form.rows, row),
      ...digitsOf(form.columns, column, laneIndex && { index: laneIndex, lanes }),
      [flatRow, row] as const,
      [flatColumn, laneIndex ? add(column, laneIndex) : column] as const,
    ]);
    const ranges = lane
      ? new Map(this.#place.ranges).set(laneName, { min: 0, max: lanes - 1 })
      : this.#place.ranges;
    const { views } = this.#context;
    const operand = operandsThrough(views, this.#region.region, this.#context.operand);
    const nothing = { loops: new Map(), assumed: new Set<string>(), unguarded: false };
    return { ...nothing, bindings, ranges, lane, operand, block };
  }
}

function piecesByRow(pieces: readonly ResultPiece[]): Iterable<readonly ResultPiece[]> {
  const rows = new Map<string, ResultPiece[]>();
  for (const piece of pieces) {
    const row = rows.get(piece.row.key);
    if (row) row.push(piece);
    else rows.set(piece.row.key, [piece]);
  }
  return rows.values();
}
