/**
 * Results of a tile that its kernel folds and does not store: each thread folds its own columns of a row, the
 * threads that hold a row tell each other theirs in halves of the warp, and one of them writes what they have
 * together. No two threads write one element, and the order is that of the columns: the same bytes in every run.
 */
import { extractExpr } from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import type { ResultFold } from "../../schedule/products/result-folds.ts";
import { type Condition, equal } from "../../semantics/condition.ts";
import { mod, substitute, variable } from "../../semantics/index-expr.ts";
import { simplify } from "../../semantics/index-range.ts";
import type { Names } from "../block.ts";
import { combinePairwise, exchangeInHalves } from "../exchange.ts";
import { loadAccess, lowerScalar, type Site, storeWrite } from "../operands.ts";

/** Neighbouring results of a row: where the fold's statement stands there, and what the product made. */
export interface FoldedPiece {
  readonly site: Site;
  readonly value: Expr;
  /** What of it lies in the result. */
  readonly inside: readonly Condition[];
}

export interface FoldContext {
  readonly names: Names;
  /** Registers made on the way. */
  readonly buffers: Buffer[];
  /** Threads that have parts of one row, neighbours in a warp. */
  readonly sharers: number;
  /** Number of the thread. */
  readonly thread: string;
}

/** The site of a result as the statement of the fold sees it. */
export function siteOfFold({ loops }: ResultFold, site: Site): Site {
  const bindings = new Map(
    [...loops].map(([name, place]) => [
      name,
      simplify(substitute(place, site.bindings), site.ranges),
    ]),
  );
  return { ...site, bindings };
}

/** Folds the pieces of one row, which stand in one block, and stores what comes of it where the row is one. */
export function foldRow(
  { statement, read }: ResultFold,
  pieces: readonly FoldedPiece[],
  isRow: readonly Condition[],
  { names, buffers, sharers, thread }: FoldContext,
): void {
  const { reads, body, reduction, finish, finishReads, writes, name } = statement;
  const { monoid } = reduction!;
  const first = pieces[0]!.site;
  const { block } = first;
  const tuples = pieces.flatMap(({ site, value, inside }) => {
    const operands = reads.map((access, i) =>
      i === read ? value : loadAccess({ ...access, guard: [...access.guard, ...inside] }, site),
    );
    const made = body.map((e) => block.bind(lowerScalar(e, operands, site)));
    return lanesOf(made, site.lane?.lanes ?? 1);
  });
  const own = combinePairwise(monoid, tuples, block);
  const context = { names, buffers, block, at: name };
  const together = exchangeInHalves(monoid, own, { threads: sharers, stride: 1 }, context);
  const isFirst = equal(mod(variable(thread), sharers), 0);
  block.branch([isFirst, ...isRow], (inner) => {
    const site: Site = { ...first, lane: undefined, block: inner };
    const operands = finishReads.map((access) => loadAccess(access, site));
    const values = finish
      ? finish.map((e) => lowerScalar(e, [...together, ...operands], site))
      : together;
    writes.forEach((write, i) => {
      storeWrite(write, values[i]!, [], site);
    });
  });
}

/** Tuples of vectors as a tuple of each lane. */
function lanesOf(values: readonly Expr[], lanes: number): readonly (readonly Expr[])[] {
  if (lanes === 1) return [values];
  return Array.from({ length: lanes }, (_, lane) =>
    values.map((v): Expr => (v.lanes === 1 ? v : extractExpr(v, lane))),
  );
}
