/**
 * What the threads of a row have folded, as one value that all of them have. Along a row: lanes of a thread,
 * threads of a warp in halves, warps through shared memory. Across rows a thread has a vector of neighbouring
 * rows, and those of the same rows are in all warps:
 *
 *   threads of a warp that have the same rows    in halves, lane by lane
 *   warps                                        each leaves its rows; few threads combine four rows each
 *   blocks of a cluster (`parts`)                these send what they have to the others (../cluster-exchange.ts)
 *   all                                          read their rows behind a barrier
 *
 * Every combination is in an order of its own numbers, so that bytes are the same in every run.
 */
import { loadExpr, storeTo } from "../../program/expr.ts";
import type { Expr } from "../../program/statement.ts";
import { sentLanes } from "../../schedule/rows/rows-form.ts";
import { less } from "../../semantics/condition.ts";
import { type DType, zeroOf } from "../../semantics/dtype.ts";
import {
  constant,
  floorDiv,
  type IndexLike,
  mod,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import { simplify } from "../../semantics/index-range.ts";
import type { Monoid } from "../../semantics/monoids.ts";
import { invariant } from "../../support/invariant.ts";
import type { Block } from "../block.ts";
import {
  awaitVectors,
  type ExchangePlace,
  expectVectors,
  forEachRank,
  sendVector,
  slotVector,
} from "../cluster-exchange.ts";
import { reduceConditions } from "../conditions.ts";
import { combinePairwise, exchangeInHalves, freeze, lanesOf } from "../exchange.ts";
import { registerTile } from "../tiles.ts";
import { makeParts, meetWarps, type RowPlace } from "./row-warps.ts";

const warpThreads = 32;
/** Partial results of warps that a thread has at once. */
const mostAtOnce = 4;

/** Where the threads of rows are that fold them. */
export interface TotalPlace extends RowPlace {
  /** The thread's variable. */
  readonly threadName: string;
  /** Rows of a vector of a thread. */
  readonly lanes: number;
  /** Threads of a row that combine in their warp first. */
  readonly inWarp: number;
  /** Blocks of a cluster that share the row, the block's number among them, and which of the exchanges this is. */
  readonly exchange?: Pick<ExchangePlace, "parts" | "rank" | "copy">;
}

/**
 * One tuple a row from those of a thread's lanes, or a vector of tuples where those are rows.
 * @param own what the thread has, a value a component, of as many lanes as the thread's vectors or of one
 */
export function totalOfRow(
  own: readonly Expr[],
  monoid: Monoid,
  place: TotalPlace,
  block: Block,
): readonly Expr[] {
  const { threads, across, inWarp, exchange } = place;
  if (place.lanes > 1) return acrossRows(own, monoid, place, block);
  const ofThread = combinePairwise(monoid, lanesOf(own, own[0]!.lanes), block);
  if (across) return acrossRows(ofThread, monoid, place, block);
  const order = { threads: inWarp, stride: 1 };
  const ofWarp = exchangeInHalves(monoid, ofThread, order, { ...place, block });
  const ofBlock = threads > warpThreads ? ofWarps(ofWarp, monoid, place, block) : ofWarp;
  if (!exchange) return ofBlock;
  const spread = ofBlock.map((operand): Expr => {
    return block.bind({ kind: "splat", dtype: operand.dtype, lanes: sentLanes, operand });
  });
  const totals = totalBuffers(monoid, sentLanes, place);
  leaveOfCluster(() => spread, { monoid, place, totals, count: sentLanes }, block);
  return totals.map((name, i) => freeze(load(name, [0], own[i]!.dtype, 1), place.names, block));
}

/** One tuple from those of the warps of the row. */
function ofWarps(
  own: readonly Expr[],
  monoid: Monoid,
  place: TotalPlace,
  block: Block,
): readonly Expr[] {
  const types = own.map(({ dtype }) => dtype);
  const parts = makeParts(types, { stem: "parts" }, place);
  return combinePairwise(monoid, meetWarps(own, parts, place, block), block);
}

function load(buffer: string, at: readonly IndexLike[], dtype: DType, lanes: number): Expr {
  return loadExpr(buffer, at, { dtype, lanes }, { guard: [], fill: zeroOf(dtype) });
}

function sharedBuffer(
  dtype: DType,
  shape: readonly number[],
  { names, buffers, stem }: Pick<RowPlace, "names" | "buffers"> & { readonly stem: string },
): string {
  const name = names.freshBuffer(stem);
  const extents = shape.map((n) => constant(n));
  buffers.push({ name, kind: "scratch", scope: "shared", dtype, lanes: 1, shape: extents });
  return name;
}

/** Vectors of rows: those that threads of all warps have of the same rows. */
function acrossRows(
  own: readonly Expr[],
  monoid: Monoid,
  place: TotalPlace,
  block: Block,
): readonly Expr[] {
  const { threads, rows: beside, lanes, thread, row, ranges, names, buffers } = place;
  const shared = place.inWarp;
  const context = { names, buffers, block, at: place.at };
  const order = { threads: shared, stride: beside };
  const tuples = lanesOf(own, lanes).map((tuple) =>
    shared > 1 ? exchangeInHalves(monoid, tuple, order, context) : tuple,
  );
  const ofWarp = own.map(({ dtype }, i): Expr => {
    const operands = tuples.map((tuple) => block.bind(tuple[i]!));
    return lanes === 1 ? operands[0]! : block.bind({ kind: "pack", dtype, lanes, operands });
  });
  const parts = threads / shared;
  if (parts === 1 && !place.exchange) return ofWarp;
  const count = beside * lanes;
  const warps = ofWarp.map(({ dtype }) =>
    sharedBuffer(dtype, [parts, count], { names, buffers, stem: "parts" }),
  );
  const together = shared * beside;
  const part = simplify(floorDiv(thread, together), ranges);
  const isFirst = shared > 1 ? [less(mod(thread, together), constant(beside))] : [];
  block.branch(isFirst, (inside) => {
    ofWarp.forEach((value, i) => {
      inside.push(storeTo(warps[i]!, [part, mul(lanes, row)], value));
    });
  });
  block.push({ kind: "barrier", scope: "instance" });
  const totals = totalBuffers(monoid, count, place);
  leaveOfWarps(warps, { monoid, place, totals, count }, block);
  const ofBlock = (at: Block): readonly Expr[] =>
    totals.map((name, i) => {
      const first = mul(sentLanes, variable(place.threadName));
      return freeze(load(name, [first], own[i]!.dtype, sentLanes), names, at);
    });
  if (place.exchange) leaveOfCluster(ofBlock, { monoid, place, totals, count }, block);
  return totals.map((name, i) =>
    freeze(load(name, [mul(lanes, row)], own[i]!.dtype, lanes), names, block),
  );
}

interface Totals {
  readonly monoid: Monoid;
  readonly place: TotalPlace;
  /** Where all threads find them, a buffer a component, and how many there are. */
  readonly totals: readonly string[];
  readonly count: number;
}

function totalBuffers(monoid: Monoid, count: number, place: TotalPlace): readonly string[] {
  const of = { names: place.names, buffers: place.buffers, stem: "total" };
  return monoid.components.map(({ dtype }) => sharedBuffer(dtype, [count], of));
}

/** What warps left, combined by as many threads as there are rows, or by all. */
function leaveOfWarps(
  warps: readonly string[],
  { monoid, place, totals, count }: Totals,
  block: Block,
): void {
  const { threads, rows, inWarp, names, threadName } = place;
  const thread = variable(threadName);
  const width = Math.max(1, count / (threads * rows));
  const first = mul(width, thread);
  block.branch(
    reduceConditions([less(thread, constant(count / width))], place.ranges),
    (inside) => {
      const all = combineRead(threads / inWarp, { monoid, names, width }, inside, (n) =>
        monoid.components.map(({ dtype }, i) => load(warps[i]!, [n, first], dtype, width)),
      );
      all.forEach((value, i) => {
        inside.push(storeTo(totals[i]!, [first], value));
      });
    },
  );
  block.push({ kind: "barrier", scope: "instance" });
}

interface Width {
  /** Lanes of the tuples. */
  readonly width: number;
}

/** So many tuples from shared memory as one, a few at a time, so that few registers hold them. */
function combineRead(
  count: number,
  { monoid, names, width }: Pick<RowPlace, "names"> & Pick<Totals, "monoid"> & Width,
  block: Block,
  read: (n: number) => readonly Expr[],
): readonly Expr[] {
  let all: readonly Expr[] | undefined;
  for (let from = 0; from < count; from += mostAtOnce) {
    const some = Array.from({ length: Math.min(mostAtOnce, count - from) }, (_, i) =>
      read(from + i).map((v) => freeze(v, names, block)),
    );
    const tuples = all ? [all, combinePairwise(monoid, some, block, width)] : some;
    all = combinePairwise(monoid, tuples, block, width).map((v) => freeze(v, names, block));
  }
  invariant(all, () => "nothing to combine");
  return all;
}

/** What blocks of the cluster have together, in the place of what this one has: few threads take four values each. */
function leaveOfCluster(
  ofBlock: (inside: Block) => readonly Expr[],
  { monoid, place, totals, count }: Totals,
  block: Block,
): void {
  const { names, buffers, exchange, threadName } = place;
  invariant(exchange, () => "blocks that share nothing");
  const at = { ...exchange, thread: threadName, threads: count / sentLanes };
  const thread = variable(threadName);
  block.push(...expectVectors(at, totals.length));
  block.branch([less(thread, constant(at.threads))], (inside) => {
    const all = ofCluster(ofBlock(inside), monoid, { names, buffers, at }, inside);
    all.forEach((value, i) => {
      inside.push(storeTo(totals[i]!, [mul(sentLanes, thread)], value));
    });
  });
  block.push({ kind: "barrier", scope: "instance" });
}

/** A vector of what this block has and the others send, its own first, then in the order of the blocks behind it. */
function ofCluster(
  own: readonly Expr[],
  monoid: Monoid,
  { at, names, buffers }: Pick<RowPlace, "names" | "buffers"> & { readonly at: ExchangePlace },
  block: Block,
): readonly Expr[] {
  const sent = own.map((value) => {
    const name = names.freshBuffer("sent");
    buffers.push(registerTile(name, value.dtype, [sentLanes]));
    block.push(storeTo(name, [0], value));
    return name;
  });
  block.push(
    ...forEachRank(at, (rank) => ({
      own: [],
      other: sent.map((buffer, number) => sendVector(at, { buffer, index: [0] }, { rank, number })),
    })),
    awaitVectors(at),
  );
  const of = { monoid, names, width: sentLanes };
  const theirs = combineRead(at.parts - 1, of, block, (slot) =>
    own.map((_value, number) => slotVector(at, { slot, number })),
  );
  return combinePairwise(monoid, [own, theirs], block, sentLanes);
}
