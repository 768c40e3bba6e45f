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
import type { ProductForm, ProductPart, ProductSide } from "../../schedule/product-form.ts";
import { dtypes } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  splitLinear,
  variablesOf,
} from "../../semantics/index-expr.ts";

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
  readonly steps: number;
  readonly stages: number;
  readonly left: StagedSide;
  readonly right: StagedSide;
}

/** Shapes of the tensors by name. */
export type ShapeOf = (tensor: string) => readonly IndexExpr[];

export function planProduct(
  form: ProductForm,
  directive: MultiplyDirective,
  shapeOf: ShapeOf,
): ProductPlan {
  const [rows, columns, depth] = directive.tile;
  const [down, across] = directive.warps;
  const side = (part: ProductSide, buffer: string, extent: number): StagedSide => {
    const { along, lanes } = vectorOf(form, part, { depth, extent, shapeOf });
    const bytes = (lanes * dtypes[form.dtype].bits) / 8;
    const wide = (8 * directive.swizzle) / dtypes[form.dtype].bits;
    const panel = along === "space" && wide > 0 ? Math.min(extent, wide) : extent;
    return { side: part, buffer, extent, along, lanes, isAsync: bytes >= 4, panel };
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
    steps: Math.ceil(form.depth.extent / depth),
    stages: directive.stages,
    left: side(form.rows, "left", rows),
    right: side(form.columns, "right", columns),
  };
}

/** The buffer of a side in shared memory. */
export function sharedBuffer(plan: ProductPlan, staged: StagedSide): Buffer {
  const { form, depth, stages, directive } = plan;
  const { along, extent, panel, buffer } = staged;
  const pad = paddingOf(plan, staged);
  const shape =
    along === "depth"
      ? [stages, extent, depth + pad]
      : [stages, extent / panel, depth, panel + pad];
  const { swizzle } = directive;
  return {
    name: buffer,
    kind: "scratch",
    scope: "shared",
    dtype: form.dtype,
    lanes: 1,
    shape: shape.map((n) => constant(n)),
    ...(swizzle !== 0 && { swizzleBytes: swizzle }),
  };
}

/** Unused elements after each row that no swizzle spreads over the banks: 16 bytes. */
function paddingOf({ form, directive }: ProductPlan, { along }: StagedSide): number {
  if (directive.swizzle > 0 || (directive.by === "fma" && along === "space")) return 0;
  return 128 / dtypes[form.dtype].bits;
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

/** Loop variables of a part from its one index. */
export function digitsOf(
  part: ProductPart,
  whole: IndexExpr,
  lane?: IndexExpr,
): ReadonlyMap<string, IndexExpr> {
  const digits = new Map<string, IndexExpr>();
  let stride = 1;
  part.loops.toReversed().forEach((loop, i) => {
    const extent = constantValue(loop.extent)!;
    const isOutermost = i === part.loops.length - 1;
    const above = floorDiv(whole, stride);
    const digit = isOutermost ? above : mod(above, extent);
    digits.set(loop.name, i === 0 && lane ? add(digit, lane) : digit);
    stride *= extent;
  });
  return digits;
}

interface VectorPlace {
  readonly depth: number;
  readonly extent: number;
  readonly shapeOf: ShapeOf;
}

const widestBytes = 16;

/** Along which part neighbours are neighbours in memory, and how many of them are one aligned vector. */
function vectorOf(
  form: ProductForm,
  side: ProductSide,
  { depth, extent, shapeOf }: VectorPlace,
): { readonly along: "depth" | "space"; readonly lanes: number } {
  const address = addressOf(side, shapeOf);
  const bytes = dtypes[form.dtype].bits / 8;
  const stepOf = (part: ProductPart): number => {
    const name = part.loops.at(-1)?.name;
    const linear = name === undefined ? undefined : splitLinear(address, name);
    return linear?.coefficient ?? 0;
  };
  const steps = { depth: stepOf(form.depth), space: stepOf(side) };
  const along =
    steps.space !== 0 && (steps.depth === 0 || Math.abs(steps.space) < Math.abs(steps.depth))
      ? "space"
      : steps.depth === 0 || form.depth.loops.length > 1
        ? steps.space !== 0
          ? "space"
          : "depth"
        : "depth";
  const part = along === "depth" ? form.depth : side;
  const inTile = along === "depth" ? depth : extent;
  const loop = part.loops.at(-1);
  if (!loop || steps[along] !== 1) return { along, lanes: 1 };
  const guarded = side.access.guard.some((c) => variablesOf(c.expr).has(loop.name));
  const others = splitLinear(address, loop.name)!.rest;
  // A vector is loaded along the last axis, even where the others behind the loop's own have one element.
  const isLast = variablesOf(side.access.index.at(-1)!).has(loop.name);
  const fits = (lanes: number): boolean =>
    isLast &&
    !guarded &&
    constantValue(loop.extent)! % lanes === 0 &&
    inTile % lanes === 0 &&
    [others.constant, ...others.terms.map((t) => t.coefficient)].every((c) => c % lanes === 0);
  for (let lanes = widestBytes / bytes; lanes > 1; lanes /= 2)
    if (fits(lanes)) return { along, lanes };
  return { along, lanes: 1 };
}

/** The element's number in the tensor, row-major. */
function addressOf({ access }: ProductSide, shapeOf: ShapeOf): IndexExpr {
  const shape = shapeOf(access.tensor);
  return access.index.reduce<IndexExpr>(
    (at, e, axis) => add(mul(at, shape[axis]!), e),
    constant(0),
  );
}
