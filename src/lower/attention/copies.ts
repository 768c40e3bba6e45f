/**
 * Asynchronous copies of tiles of queries, keys and values into shared memory by all threads of a block.
 * What lies outside the operands is zero.
 */
import { issue, literalExpr, storeTo, tileAt } from "../../program/expr.ts";
import {
  columnName,
  depthName,
  rowName,
  widthName,
} from "../../schedule/attention/attention-form.ts";
import { atMost, less } from "../../semantics/condition.ts";
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
import { reduceConditions } from "../conditions.ts";
import { copyGroup } from "../tiles.ts";
import { type AttentionPlace, type AttentionPlan, type Staged, sharedPlace } from "./plan.ts";

export class TileCopies {
  readonly #plan: AttentionPlan;
  readonly #place: AttentionPlace;

  constructor(plan: AttentionPlan, place: AttentionPlace) {
    this.#plan = plan;
    this.#place = place;
  }

  queries(block: Block): void {
    const { query, form } = this.#plan;
    const names = { line: rowName!, element: depthName!, limit: form.rowCount };
    this.#tile(block, query, { ...names, start: this.#place.firstRow, slot: constant(0) });
  }

  /** Keys and values of the columns from `start` on; past the last trip of a triangle's tile there are none. */
  step(block: Block, start: IndexExpr, slot: IndexExpr, ranges: IndexRanges): void {
    const { key, value, form } = this.#plan;
    const mayPrecede = this.#plan.isTriangular || form.reach !== undefined;
    const names = { line: columnName!, limit: form.columnCount, start, slot, mayPrecede };
    this.#tile(block, key, { ...names, element: depthName! }, ranges);
    this.#tile(block, value, { ...names, element: widthName! }, ranges);
  }

  /** One copy after another of this thread; a ragged last one only where it is in the tile. */
  #tile(
    block: Block,
    staged: Staged,
    to: {
      readonly line: string;
      readonly element: string;
      /** Lines of the operand, and the tile's first one. */
      readonly limit: IndexExpr;
      readonly start: IndexExpr;
      readonly slot: IndexExpr;
      /** Whether the tile may stand before the first line. */
      readonly mayPrecede?: boolean;
    },
    own: IndexRanges = new Map(),
  ): void {
    const { operand, lines, elements, isAlong } = staged;
    const { lanes, access } = operand;
    const { threads, form } = this.#plan;
    const ranges = new Map([...this.#place.ranges, ...own]);
    const total = (lines * elements) / lanes;
    const inLine = (isAlong ? elements : lines) / lanes;
    const source = this.#place.operand(access.tensor);
    for (let first = 0; first < total; first += threads) {
      const number = add(first, variable(this.#place.thread));
      const [far, near] = [floorDiv(number, inLine), mul(lanes, mod(number, inLine))];
      const [line, element] = isAlong ? [far, near] : [near, far];
      const whole = simplify(add(to.start, line), ranges);
      const bindings = new Map([
        ...this.#place.batch,
        [to.line, whole] as const,
        [to.element, element] as const,
      ]);
      const index = access.index.map((e) => simplify(substitute(e, bindings), ranges));
      const from = source.position(index).map((e) => simplify(e, ranges));
      const { buffer, index: place } = sharedPlace(staged, to.slot, line, element);
      const at = place.map((e) => simplify(e, ranges));
      const zero = literalExpr(0, form.dtype, lanes);
      const copied = issue(
        "cp.async",
        [tileAt(buffer, at, [lanes]), tileAt(source.buffer, from, [lanes])],
        { kind: "group", group: copyGroup },
      );
      const ends = [less(whole, to.limit)];
      const isThere = reduceConditions(to.mayPrecede ? [atMost(0, whole), ...ends] : ends, ranges);
      const isOwn = first + threads <= total ? [] : [less(number, constant(total))];
      block.branch(isOwn, (body) =>
        body.branch(
          isThere,
          (inside) => inside.push(copied),
          (outside) => outside.push(storeTo(buffer, at, zero)),
        ),
      );
    }
  }
}
