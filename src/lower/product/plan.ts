/**
 * What the lowering of one product needs to know in numbers and names: tiles of the block and of a warp,
 * the ring of stages, how each operand lies in shared memory and who copies what. Two ways of lying:
 *
 *   along depth   [stage, row, depth]: neighbours along the reduction are neighbours in memory
 *   along space   [stage, panel, depth, row]: rows (or columns) are; panels are as wide as a swizzle spans
 *
 * An operand lies in shared memory as it lies in main memory, so that copies move whole vectors.
 */
import type { Buffer } from "../../program/program.ts";
import type { MultiplyDirective } from "../../schedule/directive.ts";
import { rowPadding } from "../../schedule/products/block-bytes.ts";
import {
  isOpen,
  isWhole,
  type ProductForm,
  type ProductPart,
  type ProductSide,
} from "../../schedule/products/product-form.ts";
import { streamedPanel } from "../../schedule/products/stream-operands.ts";
import { dtypes } from "../../semantics/dtype.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
} from "../../semantics/index-expr.ts";
import { ownName } from "../own-names.ts";
import { sharedTile } from "../tiles.ts";

export interface StagedSide {
  readonly side: ProductSide;
  readonly buffer: string;
  /** Rows (or columns) of the block's tile. */
  readonly extent: number;
  readonly along: "depth" | "space";
  /** Elements that one copy moves, along `along`. */
  readonly lanes: number;
  /** Copied without passing through registers. */
  readonly isAsync: boolean;
  /** Rows of a panel where they lie along space. */
  readonly panel: number;
  readonly swizzle: 0 | 32 | 64 | 128;
}

export interface ProductPlan {
  readonly form: ProductForm;
  readonly directive: MultiplyDirective;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly threads: number;
  /** Rows and columns of one warp. */
  readonly warpRows: number;
  readonly warpColumns: number;
  /** Along the depth, or the part of it that is a block's; of an open depth at most so many. */
  readonly steps: number;
  /** The same as a run has it. */
  readonly trips: IndexExpr;
  readonly stages: number;
  readonly left: StagedSide;
  readonly right: StagedSide;
}

export function planProduct(form: ProductForm, directive: MultiplyDirective): ProductPlan {
  const [rows, columns, depth] = directive.tile;
  const [down, across] = directive.warps;
  const isPart = directive.blocks === 0 && directive.parts > 1;
  const side = (part: ProductSide, buffer: string, extent: number): StagedSide => {
    const { along } = part.line;
    const lanes = lanesIn(along === "depth" ? depth : extent, part.line.lanes);
    const bytes = (lanes * dtypes[form.dtype].bits) / 8;
    const isAsync = bytes >= 4 && !part.prologue;
    return { side: part, buffer, extent, along, lanes, isAsync, ...panelsOf(along, extent) };
  };
  const panelsOf = (
    along: StagedSide["along"],
    extent: number,
  ): Pick<StagedSide, "panel" | "swizzle"> => {
    const { by, swizzle } = directive;
    const { bits } = dtypes[form.dtype];
    if (along === "depth" || swizzle === 0) return { panel: extent, swizzle };
    if (by !== "wgmma") return { panel: Math.min(extent, (8 * swizzle) / bits), swizzle };
    const panel = streamedPanel(extent);
    return { panel, swizzle: ((panel * bits) / 8) as StagedSide["swizzle"] };
  };
  return {
    form,
    directive,
    rows,
    columns,
    depth,
    threads: 32 * down * across,
    warpRows: rows / down,
    warpColumns: columns / across,
    ...stepsAlong({ form, directive }, isPart),
    stages: directive.stages,
    left: side(form.rows, ownName("left"), rows),
    right: side(form.columns, ownName("right"), columns),
  };
}

/** Steps along the depth of a tile, or along the part of it that is a block's of a cluster. */
export function stepsOf(
  { form, directive }: Pick<ProductPlan, "form" | "directive">,
  isPart: boolean,
): number {
  const all = Math.ceil(form.depth.extent / directive.tile[2]);
  return isPart ? all / directive.parts : all;
}

/** Steps at most, and as a run has them. */
export function stepsAlong(
  plan: Pick<ProductPlan, "form" | "directive">,
  isPart: boolean,
): Pick<ProductPlan, "steps" | "trips"> {
  const steps = stepsOf(plan, isPart);
  const { depth } = plan.form;
  // Only where nothing is open blocks have parts of it (product-limits.ts).
  const trips = isOpen(depth) ? ceilDiv(depth.size, plan.directive.tile[2]) : constant(steps);
  return { steps, trips };
}

/** Vectors that stay in a tile's line. */
function lanesIn(line: number, lanes: number): number {
  return line % lanes === 0 ? lanes : lanesIn(line, lanes / 2);
}

/** The buffer of a side in shared memory. */
export function sharedBuffer(plan: ProductPlan, staged: StagedSide): Buffer {
  const { depth, stages } = plan;
  const { along, extent, panel, buffer, side } = staged;
  const pad = rowPadding(plan.directive, dtypes[side.dtype].bits, along);
  const shape =
    along === "depth"
      ? [stages, extent, depth + pad]
      : [stages, extent / panel, depth, panel + pad];
  return sharedTile(buffer, side.dtype, shape, staged.swizzle);
}

/** Place in a side's buffer of the element at a row and a depth of the tile. */
export function sharedIndex(
  { along, panel }: StagedSide,
  slot: IndexExpr,
  row: IndexExpr,
  depth: IndexExpr,
): readonly IndexExpr[] {
  if (along === "depth") return [slot, row, depth];
  return [slot, floorDiv(row, panel), depth, mod(row, panel)];
}

/** Loop variables of a part from its one index; of the lanes from there on, where a lane is given. */
export function digitsOf(
  part: ProductPart,
  whole: IndexExpr,
  lane?: { readonly index: IndexExpr; readonly lanes: number },
): ReadonlyMap<string, IndexExpr> {
  const nearest = part.loops.at(-1)?.extent ?? constant(1);
  // Lanes that begin at a multiple of themselves stay within a line that is one too.
  const staysInLine = lane !== undefined && isWhole({ size: nearest }, lane.lanes);
  const number = lane && !staysInLine ? add(whole, lane.index) : whole;
  const digits = new Map<string, IndexExpr>();
  let stride = 1;
  part.loops.toReversed().forEach((loop, i) => {
    const isOutermost = i === part.loops.length - 1;
    const above = floorDiv(number, stride);
    // The outermost one has no remainder, so that it may be open.
    const digit = isOutermost ? above : mod(above, loop.extent);
    digits.set(loop.name, i === 0 && staysInLine ? add(digit, lane.index) : digit);
    stride *= isOutermost ? 1 : constantValue(loop.extent)!;
  });
  return digits;
}

/** Elements in 32 bits, as registers hold operands of matrix instructions: their depth is eight such. */
export function inRegister({ form }: Pick<ProductPlan, "form">): number {
  return 32 / dtypes[form.dtype].bits;
}

/** Operands as matrix instructions name them, behind the type of the sums. */
export function spelledTypes({ form }: Pick<ProductPlan, "form">): string {
  const { sum, rows, columns } = form;
  if (sum === "i32") return `i32.${rows.dtype}.${columns.dtype}`;
  if (rows.dtype !== columns.dtype) return `f32.${rows.dtype}.${columns.dtype}`;
  return `f32.${rows.dtype === "f32" ? "tf32" : rows.dtype}`;
}
