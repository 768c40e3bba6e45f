/**
 * Bytes of shared memory that a block of a product has: the ring of stages as it is laid out, what the blocks of a
 * cluster send it, results on their way out, barriers. Lowering, candidates and prices ask here, so that they agree.
 */
import { dtypes } from "../../semantics/dtype.ts";
import type { MultiplyDirective } from "../directive.ts";
import { exchangedBytes } from "./product-blocks.ts";
import { type OperandLine, type ProductForm, resultColumns } from "./product-form.ts";

/** Unused bytes after each row that no swizzle spreads over the banks. */
const padBytes = 16;
/** A swizzle's unit has eight rows, and begins at a multiple of itself: what is asked for beyond 16 bytes' alignment. */
const [swizzledRows, plainAlignment] = [8, 16] as const;
/** Of one barrier; full and empty for each stage, and one for each team or warpgroup. */
const [barrierBytes, barriersOfStage, mostOthers] = [8, 2, 6] as const;
/** Rows of a part of the results, and warps of a group that has one. */
const [groupRows, groupWarps] = [64, 4] as const;

type Staging = Pick<MultiplyDirective, "by" | "tile" | "stages" | "swizzle">;
type Along = OperandLine["along"];

/** Elements behind each row of a stage. */
export function rowPadding(
  { by, swizzle }: Pick<MultiplyDirective, "by" | "swizzle">,
  bits: number,
  along: Along,
): number {
  if (swizzle > 0 || (by === "fma" && along === "space")) return 0;
  return (8 * padBytes) / bits;
}

/** Bytes of the ring of stages and its alignment, of elements of so many bits that lie along `sides`. */
export function stagedBytes(
  directive: Staging,
  bits: number,
  sides: readonly [left: Along, right: Along],
): number {
  const [rows, columns, depth] = directive.tile;
  const elements = ([extent, along]: readonly [number, Along]): number => {
    const pad = rowPadding(directive, bits, along);
    return along === "depth" ? extent * (depth + pad) : depth * (extent + pad);
  };
  const [left, right] = sides;
  const step = elements([rows, left]) + elements([columns, right]);
  const { stages, swizzle } = directive;
  const aligned = swizzle > 0 ? swizzledRows * swizzle - plainAlignment : 0;
  return (stages * step * bits) / 8 + aligned;
}

/** Bytes that the kernel of a tile asks for. */
export function blockBytes(directive: MultiplyDirective, form: ProductForm): number {
  const { by, warps, stages, results, teams } = directive;
  const { bits } = dtypes[form.dtype];
  const staged = stagedBytes(directive, bits, [form.rows.line.along, form.columns.line.along]);
  const parts = ((teams * warps[0]) / groupWarps) * results;
  const gathered =
    (parts * groupRows * resultColumns(directive, form) * dtypes[form.result].bits) / 8;
  const barriers = by === "wgmma" ? barrierBytes * (barriersOfStage * stages + mostOthers) : 0;
  return staged + exchangedBytes(directive) + gathered + barriers;
}
