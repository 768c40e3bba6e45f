/** Nests of quantize and dequantize: elementwise with scales read per tensor, axis position or block. */
import type { NodeOf, ValueId } from "../../graph/graph.ts";
import { type DType, dtypes, isIntegerDType } from "../../semantics/dtype.ts";
import { constant, constantValue, floorDiv, type IndexExpr } from "../../semantics/index-expr.ts";
import { apply, cast, type ScalarExpr } from "../../semantics/scalar-expr.ts";
import { literalOf } from "../statement.ts";
import type { NestContext, StatementDraft } from "./context.ts";

type QuantizedNode = NodeOf<"quantize"> | NodeOf<"dequantize">;

interface Operands {
  readonly x: ScalarExpr;
  readonly scale: ScalarExpr;
  readonly zeroPoint: ScalarExpr | undefined;
}

function buildScaled(
  context: NestContext,
  node: QuantizedNode,
  value: (operands: Operands) => ScalarExpr,
): void {
  const output = node.outputs[0]!;
  const draft: StatementDraft = context.draft(node);
  const at = draft.loops("i", context.type(output).shape);
  const [x, scale, zeroPoint] = node.inputs as [ValueId, ValueId, ValueId | undefined];
  const scaled = (v: ValueId) => draft.read(v, scaleIndex(context, node, v, at));
  const operands = {
    x: draft.read(x, at),
    scale: scaled(scale),
    zeroPoint: zeroPoint === undefined ? undefined : scaled(zeroPoint),
  };
  draft.finishStatement([value(operands)], [{ tensor: context.name(output), index: at }]);
}

/** Which element of the scales (or zero points) belongs to an element of the tensor. */
function scaleIndex(
  context: NestContext,
  { attrs: { axis, blockSize } }: QuantizedNode,
  scales: ValueId,
  at: readonly IndexExpr[],
): readonly IndexExpr[] {
  const { shape } = context.type(scales);
  if (axis === undefined) return shape.map(() => constant(0));
  if (blockSize === undefined) return shape.length === 0 ? [] : [at[axis]!];
  return shape.map((extent, a) => {
    if (constantValue(extent) === 1) return constant(0);
    return a === axis ? floorDiv(at[a]!, blockSize) : at[a]!;
  });
}

/** f64 stays, everything else computes in f32. */
function computeDType(dtype: DType): DType {
  return dtype === "f64" ? "f64" : "f32";
}

export function buildQuantize(context: NestContext, node: NodeOf<"quantize">): void {
  const { to, saturate } = node.attrs;
  buildScaled(context, node, ({ x, scale, zeroPoint }) => {
    const quotient = apply("div", x, cast(scale, x.dtype, false));
    const rounded = isIntegerDType(to) ? apply("round", quotient) : quotient;
    if (!zeroPoint || isNumber(zeroPoint, 0)) return cast(rounded, to, saturate);
    const dtype = computeDType(x.dtype);
    const shifted = apply("add", cast(rounded, dtype, false), cast(zeroPoint, dtype, false));
    return cast(shifted, to, saturate);
  });
}

export function buildDequantize(context: NestContext, node: NodeOf<"dequantize">): void {
  const dtype = computeDType(node.attrs.to);
  buildScaled(context, node, ({ x, scale, zeroPoint }) => {
    const plain = !zeroPoint || isNumber(zeroPoint, 0);
    const value = plain ? cast(x, dtype, false) : difference(x, zeroPoint, dtype);
    const product = isNumber(scale, 1) ? value : apply("mul", value, asNumber(scale, dtype));
    return cast(product, node.attrs.to, false);
  });
}

/** Literals only: what a tensor holds is not known here. */
function isNumber(e: ScalarExpr, value: number): boolean {
  return e.kind === "literal" && Number(e.value) === value;
}

/** A scale or zero point in the type that is computed in; a number where that holds it. */
function asNumber(e: ScalarExpr, dtype: DType): ScalarExpr {
  const isHeld = e.kind === "literal" && dtypes[e.dtype].bits <= dtypes[dtype].bits;
  return isHeld ? literalOf(dtype, e.value) : cast(e, dtype, false);
}

/** x - zero point, exact for integers: those of 16 bits and less as floats, others in i64. */
function difference(x: ScalarExpr, zeroPoint: ScalarExpr, dtype: DType): ScalarExpr {
  const isLong = isIntegerDType(x.dtype) && dtypes[x.dtype].bits > 16;
  const wide: DType = isLong ? "i64" : dtype;
  const shifted = apply("sub", cast(x, wide, false), asNumber(zeroPoint, wide));
  return cast(shifted, dtype, false);
}
