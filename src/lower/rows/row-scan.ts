/**
 * A scan along a row, whose vectors the threads of the row take one after another: each thread combines the
 * lanes of its vector, the threads of a warp tell each other what is before them (in halves), the warps through
 * shared memory and a barrier, and what all of them have together is carried to the next vectors. Two places
 * in shared memory take turns, so that one barrier a turn is enough: who writes a place again has passed the
 * barrier that comes after all reads of it.
 */
import { loadExpr, storeTo } from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import type { Condition } from "../../semantics/condition.ts";
import { type DType, dtypes, zeroOf } from "../../semantics/dtype.ts";
import { constant, floorDiv, type IndexExpr, mod } from "../../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../../semantics/index-range.ts";
import type { Monoid } from "../../semantics/monoids.ts";
import type { Block, Names } from "../block.ts";
import { combinePairwise, freeze, prefixInHalves, selectOf } from "../exchange.ts";
import { lowerScalar, splatOf } from "../operands.ts";

const warpThreads = 32;
/** Bytes of what warps have together that a thread reads at once. */
const vectorBytes = 16;
/** Places in shared memory that take turns. */
const places = 2;

/** Where the threads of a row are, and what a scan along it makes names and buffers in. */
export interface RowPlace {
  /** Threads of a row, and rows of a block. */
  readonly threads: number;
  readonly rows: number;
  readonly lanes: number;
  /** Number of the thread in the block and in its row, and of the row in the block. */
  readonly thread: IndexExpr;
  readonly inRow: IndexExpr;
  readonly row: IndexExpr;
  readonly ranges: IndexRanges;
  readonly names: Names;
  readonly buffers: Buffer[];
  /** The statement, for refusals. */
  readonly at: string;
}

export class RowScan {
  readonly #monoid: Monoid;
  readonly #reversed: boolean;
  readonly #place: RowPlace;
  /** What is before the next vectors, a cell a component. */
  readonly #carried: readonly string[];
  /** What warps have together, a buffer a component. */
  readonly #parts: readonly string[];

  constructor(monoid: Monoid, reversed: boolean, place: RowPlace, block: Block) {
    this.#monoid = monoid;
    this.#reversed = reversed;
    this.#place = place;
    const warps = place.threads / warpThreads;
    const types = monoid.components.map((c) => c.dtype);
    this.#carried = types.map((dtype) => this.#make("carried", "register", dtype, [1]));
    this.#parts =
      warps > 1
        ? types.map((dtype) => this.#make("warps", "shared", dtype, [places, place.rows, warps]))
        : [];
    this.#identity(block).forEach((value, i) => {
      block.push(storeTo(this.#carried[i]!, [0], value));
    });
  }

  /** Vectors of the elements up to each one, from vectors of the elements. `turn` counts those of a thread. */
  upTo(vectors: readonly Expr[], turn: IndexExpr, block: Block): readonly Expr[] {
    const { threads, lanes, inRow, names, buffers, ranges, at } = this.#place;
    const own = this.#ofLanes(vectors, block);
    const last = own[this.#reversed ? 0 : lanes - 1]!;
    const together = Math.min(threads, warpThreads);
    const thread = simplify(mod(inRow, together), ranges);
    const order = { threads: together, thread, reversed: this.#reversed };
    const warp = prefixInHalves(this.#monoid, last, order, { names, buffers, block, at });
    const carried = this.#carried.map((name, i) => {
      const { dtype } = this.#monoid.components[i]!;
      return freeze(loadExpr(name, [0], { dtype, lanes: 1 }), names, block);
    });
    const others = threads > warpThreads ? this.#ofWarps(warp.total, turn, block) : undefined;
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
  #ofLanes(vectors: readonly Expr[], block: Block): readonly (readonly Expr[])[] {
    const { lanes } = this.#place;
    const whole = vectors.map((v) => block.bind(v));
    const elements = Array.from({ length: lanes }, (_, lane) =>
      whole.map((operand): Expr => {
        if (lanes === 1) return operand;
        return block.bind({ kind: "extract", dtype: operand.dtype, lanes: 1, operand, lane });
      }),
    );
    const ordered = this.#reversed ? elements.toReversed() : elements;
    const found: (readonly Expr[])[] = [];
    for (const lane of ordered) {
      const before = found.at(-1);
      found.push(before ? this.#combine(before, lane, block) : lane);
    }
    return this.#reversed ? found.toReversed() : found;
  }

  /** What the warps before have together, and all of the row. */
  #ofWarps(
    own: readonly Expr[],
    turn: IndexExpr,
    block: Block,
  ): { readonly before: readonly Expr[]; readonly total: readonly Expr[] } {
    const { threads, thread, inRow, row, names, ranges } = this.#place;
    const warps = threads / warpThreads;
    const place = simplify(mod(turn, places), ranges);
    const warp = simplify(floorDiv(inRow, warpThreads), ranges);
    const isFirst: Condition = { kind: "zero", expr: mod(thread, warpThreads) };
    block.branch([isFirst], (inside) => {
      own.forEach((value, i) => {
        inside.push(storeTo(this.#parts[i]!, [place, row, warp], value));
      });
    });
    block.push({ kind: "barrier", scope: "instance" });
    const read = own.map(({ dtype }, i) => {
      const atOnce = Math.min(warps, (8 * vectorBytes) / dtypes[dtype].bits);
      return Array.from({ length: warps / atOnce }, (_, n) => {
        const from = [place, row, constant(n * atOnce)];
        const type = { dtype, lanes: atOnce };
        const guarded = { guard: [], fill: zeroOf(dtype) };
        const vector = freeze(loadExpr(this.#parts[i]!, from, type, guarded), names, block);
        return Array.from({ length: atOnce }, (_, lane): Expr => {
          return { kind: "extract", dtype, lanes: 1, operand: vector, lane };
        });
      }).flat();
    });
    const parts = Array.from({ length: warps }, (_, n) => read.map((r) => block.bind(r[n]!)));
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
      const name = this.#make("element", "register", this.#monoid.components[i]!.dtype, [1], lanes);
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

  #make(
    stem: string,
    scope: "register" | "shared",
    dtype: DType,
    extents: readonly number[],
    lanes = 1,
  ): string {
    const name = this.#place.names.freshBuffer(stem);
    const shape = extents.map((e) => constant(e));
    this.#place.buffers.push({ name, kind: "scratch", scope, dtype, lanes, shape });
    return name;
  }
}
