/**
 * What kernels that bring tiles into shared memory have in common: where a block stands, the tiles
 * themselves, and the parts of a stream, in which one thread of a producer copies tiles for warpgroups that
 * multiply (PTX ISA, "cp.async.bulk.tensor", "mbarrier", "setmaxnreg").
 */
import { issue } from "../program/expr.ts";
import type { Buffer, Counter } from "../program/program.ts";
import type { Statement } from "../program/statement.ts";
import { equal } from "../semantics/condition.ts";
import type { DType } from "../semantics/dtype.ts";
import { constant, type IndexExpr, variable } from "../semantics/index-expr.ts";
import type { IndexRanges } from "../semantics/index-range.ts";

/** Where a block stands: the loops of its problem, the thread's number. */
export interface BlockPlace {
  readonly batch: ReadonlyMap<string, IndexExpr>;
  readonly thread: string;
  readonly ranges: IndexRanges;
}

/** The group under which copies of the threads of a kernel complete. */
export const copyGroup = "copy";

/** Threads of a warpgroup. */
export const groupThreads = 128;

/** Registers of a thread that copies and of one that multiplies, by warpgroups that multiply: 512 in all. */
const shares: Readonly<Record<number, readonly [number, number]>> = {
  1: [40, 232],
  2: [24, 240],
  3: [32, 160],
};

/** What a producer and those that multiply begin with: registers go from it to them. */
export function shareRegisters(groups: number): readonly [Statement, Statement] {
  const [few, many] = shares[groups]!;
  return [issue(`setmaxnreg.dec.${few}`, []), issue(`setmaxnreg.inc.${many}`, [])];
}

/** A buffer of shared memory; `swizzleBytes` of 0: none. */
export function sharedTile(
  name: string,
  dtype: DType,
  shape: readonly number[],
  swizzleBytes: 0 | 32 | 64 | 128,
): Buffer {
  const extents = shape.map((n) => constant(n));
  const plain = { name, kind: "scratch", scope: "shared", dtype, lanes: 1 } as const;
  return { ...plain, shape: extents, ...(swizzleBytes !== 0 && { swizzleBytes }) };
}

/** A buffer of a thread's registers. */
export function registerTile(name: string, dtype: DType, shape: readonly number[]): Buffer {
  const extents = shape.map((n) => constant(n));
  return { name, kind: "scratch", scope: "register", dtype, lanes: 1, shape: extents };
}

/** Cells that come round by phases. */
export function phaseCounter(name: string, shape: readonly number[], arrivals: number): Counter {
  const extents = shape.map((n) => constant(n));
  return { name, scope: "shared", protocol: "phase", shape: extents, arrivals };
}

/** One arrival at a cell of the block's own counter, or at those of all blocks of its cluster. */
export function arrive(
  counter: string,
  index: readonly IndexExpr[],
  scope: "instance" | "cluster" = "instance",
): Statement {
  return { kind: "signal", counter, index, amount: constant(1), scope };
}

/** What one thread, the first or another, does for all. */
export function onOne(
  thread: string,
  body: readonly Statement[],
  number = 0,
): readonly Statement[] {
  const conditions = [equal(variable(thread), constant(number))];
  return [{ kind: "if", conditions, then: body, else: [] }];
}
