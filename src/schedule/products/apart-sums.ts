/**
 * Products of 8-bit floats, whose sums of a step threads add up: the matrix unit keeps only some 14 bits of a sum
 * (Hopper: DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 3.3.2; Ada and Hopper: Zhang et al. 2024,
 * "SageAttention2", which finds 13 bits of mantissa). Of Blackwell nothing is published: it is taken to be alike.
 */
import type { DType } from "../../semantics/dtype.ts";
import type { MultiplyDirective } from "../directive.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import type { ProductForm } from "./product-form.ts";
import { type TileFault, unfit } from "./tile-fault.ts";

/** Products that the unit sums by itself at most. */
const mostSummed = 128;

export function isByteFloat(dtype: DType): boolean {
  return dtype === "f8e4m3fn" || dtype === "f8e5m2";
}

/** Whether threads add up the sums of the steps. */
export function sumsApart({ dtype }: Pick<ProductForm, "dtype">): boolean {
  return isByteFloat(dtype);
}

/** Products of one instruction, instructions of a step, and what each addend loses of the largest one at most. */
const [together, inStep, dropped] = [32, 4, 2 ** -13] as const;

/**
 * What sums of steps lose, relative to the sum of the magnitudes of their products, added up over all products of
 * a program: of each of an instruction's addends what lies 13 bits below the largest.
 */
export function byteFloatBound(
  regions: readonly { readonly scheduled: ScheduledRegion }[],
): number {
  const products = regions.flatMap((r) => r.scheduled.products.filter((p) => sumsApart(p.form)));
  return together * inStep * dropped * products.length;
}

/** Rows and columns of a warp's sums of a step that are made at once, in units of 16. */
export interface Piece {
  readonly tall: number;
  readonly wide: number;
}

/** Lines of an operand up to which a warp holds all that it reads of it in a step. */
const heldLines = 32;

/** What a warp makes at once of sums that are added by threads: all lines of the side that it holds. */
export function apartPiece(rows: number, columns: number): Piece {
  return columns <= heldLines ? { tall: 1, wide: columns / 16 } : { tall: rows / 16, wide: 1 };
}

/** Why a warp cannot make the sums of a step by themselves, or undefined. */
export function apartFault(
  { by, tile, warps }: MultiplyDirective,
  form: ProductForm,
): TileFault | undefined {
  if (by !== "mma" || !sumsApart(form)) return undefined;
  const [rows, columns, depth] = tile;
  if (depth > mostSummed) {
    const why = `sums of more than ${mostSummed} products of ${form.dtype}`;
    return unfit(why, `choose a depth of at most ${mostSummed}`);
  }
  return Math.min(rows / warps[0], columns / warps[1]) > heldLines
    ? unfit(
        `a warp holds at most ${heldLines} rows or columns of ${form.dtype}`,
        "choose more warps along one of them, or a smaller tile",
      )
    : undefined;
}

/** Sums of a thread, and depth of a step, beside which widened fragments are too many: ptxas 13.0 spills. */
const [widenedSums, widenedDepth] = [64, 64] as const;

/** Whether registers hold the operands of warps also where the assembler widens them to 16 bits. */
export function fitsWidened({ tile, warps }: MultiplyDirective): boolean {
  const [rows, columns, depth] = tile;
  const sums = (rows * columns) / (32 * warps[0] * warps[1]);
  return sums < widenedSums || depth <= widenedDepth;
}
