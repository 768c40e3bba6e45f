/**
 * Which operands of a product tensor copies can bring to warpgroups (PTX ISA, "wgmma.mma_async",
 * "cp.async.bulk.tensor"): matrices along the last two axes of a tensor, of either order. Their rows lie along
 * the depth, or, of 16 bits alone, the rows of the product do, neighbours in panels as wide as a swizzle spans.
 */

import type { ProductOrders } from "../../graph/transforms/fold-transposes.ts";
import type { Loop } from "../../region/nest.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import {
  constantValue,
  type IndexExpr,
  splitLinear,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { tf32Products } from "../../target/allowing.ts";
import type { Target } from "../../target/target.ts";
import type { ProductForm, ProductPart, ProductSide } from "./product-form.ts";

/** Axes of a tensor that copies move tiles of. */
export const mostAxes = 5;
/** Bytes of an operand's row in a stage of a stream, as wide as its swizzle. */
const streamedBytes = 128;
/** A tensor map's strides are multiples of so many bytes. */
const copiedBytes = 16;

/**
 * In which orders a target's products take their operands; undefined where it has no blocks. Threads multiply f32
 * of either order, matrix units that of tf32 along the depth.
 */
export function productOrdersOf({ blocks, capabilities }: Target): ProductOrders | undefined {
  if (!blocks) return undefined;
  const has = (allowed: boolean, dtype: DType): readonly DType[] => (allowed ? [dtype] : []);
  const isTf32 = capabilities.has(tf32Products);
  return {
    eitherWay: new Set<DType>(["f16", "bf16", ...has(!isTf32, "f32")]),
    alongDepth: new Set<DType>(["u8", "i8", "f8e4m3fn", "f8e5m2", ...has(isTf32, "f32")]),
    lineBytes: copiedBytes,
    copiesMatrices: capabilities.has("wgmma"),
  };
}

/** Elements of the depth in a stage of a stream. */
export function streamedDepth(dtype: DType): number {
  return (8 * streamedBytes) / dtypes[dtype].bits;
}

/** Rows (or columns) of one panel of an operand of 16 bits whose neighbours they are: as many as the widest swizzle has that divides. */
export function streamedPanel(extent: number): number {
  return [64, 32, 16].find((n) => extent % n === 0) ?? 0;
}

/** Whether lines are a loop's numbers, from some first line on. */
export function isLineOf(line: IndexExpr, { name }: Loop): boolean {
  const linear = splitLinear(line, name);
  return linear?.coefficient === 1 && (constantValue(linear.rest) ?? -1) >= 0;
}

/** Why tensor copies cannot bring the operands, or undefined. */
export function streamFault(form: ProductForm): string | undefined {
  return operandFault(form.rows, form) ?? operandFault(form.columns, form);
}

function operandFault(side: ProductSide, form: ProductForm): string | undefined {
  const { dtype, batch, picks, depth } = form;
  const { access, shape, line, prologue } = side;
  if (prologue) return "tensor copies bring operands as they are";
  const [deep] = depth.loops;
  const [own] = side.loops;
  const [near, far, ...before] = access.index.toReversed();
  if (depth.loops.length !== 1 || side.loops.length !== 1 || far === undefined)
    return "operands are no plain matrices";
  const isTurned = line.along === "space";
  if (isTurned && dtypes[dtype].bits !== 16)
    return `operands of ${dtype} are no matrices with rows along the depth`;
  const bytes = ((constantValue(shape.at(-1)!) ?? 1) * dtypes[dtype].bits) / 8;
  if (bytes % copiedBytes !== 0) return `rows of ${bytes} bytes are no multiple of 16`;
  const ofBatch = new Set(batch.loops.map((l) => l.name));
  const ofProblem = new Set([...ofBatch, ...picks.map((v) => v.name)]);
  const [line1, start] = isTurned ? [near!, far] : [far, near!];
  const steps = splitLinear(start, deep!.name);
  const isPlain =
    access.guard.length === 0 &&
    access.index.length <= mostAxes &&
    isLineOf(line1, own!) &&
    steps?.coefficient === 1 &&
    (isTurned ? steps.rest.constant >= 0 : steps.rest.constant === 0) &&
    [...variablesOf(steps.rest)].every((name) => ofBatch.has(name)) &&
    [...variablesOf(...before)].every((name) => ofProblem.has(name));
  if (!isPlain) return "operands are no plain matrices";
  // What a last copy brings beyond a part of an axis is not zero.
  const isWhole =
    steps.rest.key === "0" && constantValue(shape.at(isTurned ? -2 : -1)!) === depth.extent;
  return isWhole || isSteps(depth, dtype)
    ? undefined
    : `parts of ${depth.extent} elements are no whole steps`;
}

function isSteps({ extent }: ProductPart, dtype: DType): boolean {
  return extent % streamedDepth(dtype) === 0;
}
