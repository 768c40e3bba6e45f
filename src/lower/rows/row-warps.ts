/**
 * What the warps of a row tell each other: the first of a row's threads in each warp leaves what those of the warp
 * have together in shared memory, all threads of the block meet, and each reads what all warps of its row have left.
 */
import { loadExpr, storeTo } from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import { dealingOf } from "../../schedule/rows/rows-form.ts";
import type { Condition } from "../../semantics/condition.ts";
import { type DType, dtypes, zeroOf } from "../../semantics/dtype.ts";
import { constant, floorDiv, type IndexExpr, mod } from "../../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../../semantics/index-range.ts";
import type { Block, Names } from "../block.ts";
import { freeze, lanesOf } from "../exchange.ts";

const warpThreads = 32;
/** Bytes of what warps have together that a thread reads at once. */
const vectorBytes = 16;

/** The number of an element in its vector. */
export const laneName = "@lane";

/** Where the threads of a row are, and what statements along it make names and buffers in. */
export interface RowPlace {
  /** Threads of a row, and rows of a block. */
  readonly threads: number;
  readonly rows: number;
  /** Neighbouring threads have neighbouring rows. */
  readonly across: boolean;
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

/** Number of the thread's warp among those of its row. */
export function warpOfRow(place: RowPlace): IndexExpr {
  return simplify(floorDiv(place.inRow, dealingOf(place).inWarp), place.ranges);
}

/** A buffer of shared memory for each type, with a place for every warp of each row, `turns` times. */
export function makeParts(
  types: readonly DType[],
  { stem, turns }: { readonly stem: string; readonly turns?: number },
  place: RowPlace,
): readonly string[] {
  const { rows, across, names, buffers } = place;
  const { warps } = dealingOf(place);
  // Where neighbouring threads have neighbouring rows, they read neighbouring words.
  const extents = [
    ...(turns === undefined ? [] : [turns]),
    ...(across ? [warps, rows] : [rows, warps]),
  ];
  const shape = extents.map((e) => constant(e));
  return types.map((dtype) => {
    const name = names.freshBuffer(stem);
    buffers.push({ name, kind: "scratch", scope: "shared", dtype, lanes: 1, shape });
    return name;
  });
}

/**
 * The tuples of all warps of the row, in their order, in each of its threads.
 *
 * @param own what the threads of the row in this warp have together, in each of them
 * @param parts as `makeParts` made them
 * @param turn which of the places, where there are several
 */
export function meetWarps(
  own: readonly Expr[],
  parts: readonly string[],
  place: RowPlace,
  block: Block,
  turn: readonly IndexExpr[] = [],
): readonly (readonly Expr[])[] {
  const { across, thread, inRow, row, names } = place;
  const { inWarp, warps } = dealingOf(place);
  const at = (warp: IndexExpr): readonly IndexExpr[] => [
    ...turn,
    ...(across ? [warp, row] : [row, warp]),
  ];
  const number = across ? mod(inRow, inWarp) : mod(thread, warpThreads);
  const isFirst: readonly Condition[] = inWarp === 1 ? [] : [{ kind: "zero", expr: number }];
  const warp = warpOfRow(place);
  block.branch(isFirst, (inside) => {
    own.forEach((value, i) => {
      inside.push(storeTo(parts[i]!, at(warp), value));
    });
  });
  block.push({ kind: "barrier", scope: "instance" });
  const widest = Math.max(...own.map(({ dtype }) => dtypes[dtype].bits));
  const atOnce = across ? 1 : Math.min((8 * vectorBytes) / widest, warps);
  return Array.from({ length: warps / atOnce }, (_, n) => {
    const read = own.map(({ dtype }, i) => {
      const type = { dtype, lanes: atOnce };
      const guarded = { guard: [], fill: zeroOf(dtype) };
      const value = loadExpr(parts[i]!, at(constant(n * atOnce)), type, guarded);
      return freeze(value, names, block);
    });
    return lanesOf(read, atOnce);
  }).flat();
}
