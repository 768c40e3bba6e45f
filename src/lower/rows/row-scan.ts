/**
 * A scan along a row, whose vectors the threads of the row take one after another: each thread combines the
 * lanes of its vector, the threads of a warp tell each other what is before them (in halves), the warps through
 * shared memory and a barrier, and what all of them have together is carried to the next vectors. Two places
 * in shared memory take turns, so that one barrier a turn is enough: who writes a place again has passed the
 * barrier that comes after all reads of it.
 */
import { loadExpr, storeTo } from "../../program/expr.ts";
import type { Expr } from "../../program/statement.ts";
import { dealingOf } from "../../schedule/rows/rows-form.ts";
import type { Condition } from "../../semantics/condition.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constant, type IndexExpr, mod } from "../../semantics/index-expr.ts";
import { simplify } from "../../semantics/index-range.ts";
import type { Monoid } from "../../semantics/monoids.ts";
import { invariant } from "../../support/invariant.ts";
import type { Block } from "../block.ts";
import { reduceConditions, substituteConditions } from "../conditions.ts";
import { combinePairwise, freeze, prefixInHalves, selectOf } from "../exchange.ts";
import { lowerScalar, splatOf } from "../operands.ts";
import { laneName, makeParts, meetWarps, type RowPlace, warpOfRow } from "./row-warps.ts";

/** Places in shared memory that take turns. */
const places = 2;

export interface ScanPlace extends RowPlace {
  /** Elements of the row in a vector of a thread. */
  readonly lanes: number;
}

export interface ScanTurn {
  /** How many vectors of the thread came before. */
  readonly turn: IndexExpr;
  /** What holds of an element, by its number in the vector, where not all of a vector are in the row. */
  readonly ofLanes: readonly Condition[];
}

export class RowScan {
  readonly #monoid: Monoid;
  readonly #reversed: boolean;
  readonly #place: ScanPlace;
  /** What is before the next vectors, a cell a component. */
  readonly #carried: readonly string[];
  /** What warps have together, a buffer a component. */
  readonly #parts: readonly string[];

  constructor(monoid: Monoid, reversed: boolean, place: ScanPlace, block: Block) {
    this.#monoid = monoid;
    this.#reversed = reversed;
    this.#place = place;
    const types = monoid.components.map((c) => c.dtype);
    this.#carried = types.map((dtype) => this.#make("carried", dtype));
    this.#parts =
      dealingOf(place).warps > 1 ? makeParts(types, { stem: "warps", turns: places }, place) : [];
    this.#identity(block).forEach((value, i) => {
      block.push(storeTo(this.#carried[i]!, [0], value));
    });
  }

  /** Vectors of the elements up to each one, from vectors of the elements. */
  upTo(vectors: readonly Expr[], { turn, ofLanes }: ScanTurn, block: Block): readonly Expr[] {
    const { lanes, inRow, names, buffers, ranges, at } = this.#place;
    const { inWarp, stride, warps } = dealingOf(this.#place);
    const own = this.#ofLanes(vectors, ofLanes, block);
    const last = own[this.#reversed ? 0 : lanes - 1]!;
    const thread = simplify(mod(inRow, inWarp), ranges);
    const order = { threads: inWarp, thread, stride, reversed: this.#reversed };
    const warp = prefixInHalves(this.#monoid, last, order, { names, buffers, block, at });
    const carried = this.#carried.map((name, i) => {
      const { dtype } = this.#monoid.components[i]!;
      return freeze(loadExpr(name, [0], { dtype, lanes: 1 }), names, block);
    });
    const others = warps > 1 ? this.#ofWarps(warp.total, turn, block) : undefined;
    const outside = others ? this.#combine(carried, others.before, block) : carried;
    const before = this.#combine(outside, warp.before, block);
    const all = this.#combine(carried, others?.total ?? warp.total, block);
    all.forEach((value, i) => {
      block.push(storeTo(this.#carried[i]!, [0], value));
    });
    const results = own.map((lane) => this.#combine(before, lane, block));
    if (lanes === 1) return results[0]!;
    return before.map(({ dtype }, i): Expr => {
      return { kind: "pack", dtype, lanes, operands: results.map((lane) => lane[i]!) };
    });
  }

  /** For each lane, the tuple of the lanes of its thread up to it. */
  #ofLanes(
    vectors: readonly Expr[],
    conditions: readonly Condition[],
    block: Block,
  ): readonly (readonly Expr[])[] {
    const { lanes } = this.#place;
    const whole = vectors.map((v) => block.bind(v));
    const elements = Array.from({ length: lanes }, (_, lane) =>
      whole.map((operand): Expr => {
        if (lanes === 1) return operand;
        return block.bind({ kind: "extract", dtype: operand.dtype, lanes: 1, operand, lane });
      }),
    );
    const there = elements.map((element, lane) => this.#where(conditions, lane, element, block));
    const ordered = this.#reversed ? there.toReversed() : there;
    const found: (readonly Expr[])[] = [];
    for (const lane of ordered) {
      const before = found.at(-1);
      found.push(before ? this.#combine(before, lane, block) : lane);
    }
    return this.#reversed ? found.toReversed() : found;
  }

  /** An element of a vector where its conditions hold, else the identity. */
  #where(
    conditions: readonly Condition[],
    lane: number,
    element: readonly Expr[],
    block: Block,
  ): readonly Expr[] {
    const { ranges } = this.#place;
    const own = substituteConditions(conditions, new Map([[laneName, lane]]));
    return reduceConditions(own, ranges).reduce<readonly Expr[]>((values, { kind, expr }) => {
      invariant(kind === "nonNegative", () => `${this.#place.at} has elements at one place`);
      const least: Expr = { kind: "literal", dtype: "i32", lanes: 1, value: -1 };
      const index: Expr = { kind: "index", dtype: "i32", lanes: 1, expr, laneStep: 0 };
      const operands = [least, index];
      const is: Expr = { kind: "apply", dtype: "bool", lanes: 1, op: "less", operands };
      const [isThere, nothing] = [block.bind(is), this.#identity(block)];
      return values.map((v, i) => block.bind(selectOf(isThere, v, nothing[i]!)));
    }, element);
  }

  /** What the warps before have together, and all of the row. */
  #ofWarps(
    own: readonly Expr[],
    turn: IndexExpr,
    block: Block,
  ): { readonly before: readonly Expr[]; readonly total: readonly Expr[] } {
    const place = simplify(mod(turn, places), this.#place.ranges);
    const warp = warpOfRow(this.#place);
    const read = meetWarps(own, this.#parts, this.#place, block, [place]);
    const parts = read.map((part) => part.map((v) => block.bind(v)));
    const identity = this.#identity(block);
    const number: Expr = { kind: "index", dtype: "i32", lanes: 1, expr: warp, laneStep: 0 };
    const earlier = parts.map((part, n) => {
      const other: Expr = { kind: "literal", dtype: "i32", lanes: 1, value: n };
      const operands = this.#reversed ? [number, other] : [other, number];
      const isBefore: Expr = { kind: "apply", dtype: "bool", lanes: 1, op: "less", operands };
      return part.map((v, i) => block.bind(selectOf(block.bind(isBefore), v, identity[i]!)));
    });
    return {
      before: combinePairwise(this.#monoid, earlier, block),
      total: combinePairwise(this.#monoid, parts, block),
    };
  }

  #combine(a: readonly Expr[], b: readonly Expr[], block: Block): readonly Expr[] {
    const scalar = { lane: undefined, block, bindings: new Map(), ranges: new Map() };
    const args = [...a, ...b].map((e) => block.bind(e));
    return this.#monoid.combine.map((e) => block.bind(lowerScalar(e, args, scalar)));
  }

  #identity(block: Block): readonly Expr[] {
    const scalar = { lane: undefined, block, bindings: new Map(), ranges: new Map() };
    return this.#monoid.identity.map((e) => lowerScalar(e, [], scalar));
  }

  /** Vectors of elements where conditions hold, elsewhere the identity. */
  inside(
    conditions: readonly Condition[],
    elements: (inside: Block) => readonly Expr[],
    block: Block,
  ): readonly Expr[] {
    const { lanes, names } = this.#place;
    const cells = this.#identity(block).map((value, i) => {
      const name = this.#make("element", this.#monoid.components[i]!.dtype, lanes);
      block.push(storeTo(name, [0], splatOf(value, lanes, block)));
      return name;
    });
    block.branch(conditions, (inner) => {
      elements(inner).forEach((value, i) => {
        inner.push(storeTo(cells[i]!, [0], value));
      });
    });
    return cells.map((name, i) => {
      const { dtype } = this.#monoid.components[i]!;
      return freeze(loadExpr(name, [0], { dtype, lanes }), names, block);
    });
  }

  /** A cell of registers. */
  #make(stem: string, dtype: DType, lanes = 1): string {
    const name = this.#place.names.freshBuffer(stem);
    const shape = [constant(1)];
    this.#place.buffers.push({ name, kind: "scratch", scope: "register", dtype, lanes, shape });
    return name;
  }
}
