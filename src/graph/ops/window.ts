/** Sliding windows: convolutions and pools over [batch, channel, spatial…]. */
import type { ConvolutionAttrs, PoolAttrs, WindowAttrs } from "../../semantics/core-ops.ts";
import { type DType, dtypes, isFloatDType, isIntegerDType } from "../../semantics/dtype.ts";
import {
  add,
  ceilDiv,
  floorDiv,
  type IndexExpr,
  min,
  mul,
  sub,
  toIndex,
} from "../../semantics/index-expr.ts";
import { boolean, choice, dtype, integer, integers, number, optional } from "../attr-schema.ts";
import type { TensorType } from "../graph.ts";
import {
  checkAttr,
  checkDType,
  checkExtent,
  checkLength,
  checkMinRank,
  checkRank,
  commonDType,
  unify,
} from "../inference.ts";
import type { InferContext, OpRows } from "../op-info.ts";
import { elementsOf } from "../tensor-type.ts";

const windowSchema = {
  strides: integers,
  dilations: integers,
  padLow: integers,
  padHigh: integers,
} as const;

const poolSchema = {
  ...windowSchema,
  kind: choice("max", "sum", "average", "lp"),
  window: integers,
  ceil: boolean,
  countPadding: boolean,
  exponent: number,
} as const;

/** One entry per spatial axis, strides and dilations positive. */
function checkWindow(ctx: InferContext, attrs: WindowAttrs, rank: number): void {
  for (const key of ["strides", "dilations", "padLow", "padHigh"] as const) {
    checkLength(ctx, attrs[key], rank, key);
  }
  for (const key of ["strides", "dilations"] as const) {
    checkAttr(
      ctx,
      attrs[key].every((v) => v > 0),
      () => `${key} [${attrs[key].join(", ")}]`,
      "they are at least 1",
    );
  }
}

/** Extent that a dilated window covers. */
function windowSpan(window: IndexExpr, dilation: number): IndexExpr {
  return add(mul(sub(window, 1), dilation), 1);
}

const largerPicture =
  "the window is larger than what it slides over: give a larger input (--shape), or export the model with a smaller window or more padding";

/** Extents of the result of a window over `spatial`; see `ceil` of PoolAttrs. */
function windowResult(
  ctx: InferContext,
  spatial: readonly IndexExpr[],
  window: readonly IndexExpr[],
  attrs: WindowAttrs & { readonly ceil?: boolean },
): IndexExpr[] {
  return spatial.map((extent, i) => {
    const [stride, low] = [attrs.strides[i]!, attrs.padLow[i]!];
    const padded = add(extent, low, attrs.padHigh[i]!);
    const span = windowSpan(window[i]!, attrs.dilations[i]!);
    const room = sub(padded, span);
    const what = `the room of the window along spatial axis ${i}, ${padded.key} less ${span.key},`;
    checkExtent(ctx, room, what, largerPicture);
    if (!attrs.ceil) return add(floorDiv(room, stride), 1);
    // A last window that would start in the high padding is dropped.
    return min(add(ceilDiv(room, stride), 1), ceilDiv(add(extent, low), stride));
  });
}

function inferConvolution(
  [x, w]: readonly TensorType[],
  attrs: ConvolutionAttrs,
  ctx: InferContext,
): readonly TensorType[] {
  checkMinRank(ctx, x!, 3, "the data");
  checkRank(ctx, w!, x!.shape.length, "the weights");
  checkDType(ctx, x!, "numeric", "the data");
  checkWindow(ctx, attrs, x!.shape.length - 2);
  checkGroups(ctx, attrs.groups, w!.shape[0]!);
  unify(ctx, x!.shape[1]!, mul(w!.shape[1]!, attrs.groups), "channels of data and weights");
  const spatial = windowResult(ctx, x!.shape.slice(2), w!.shape.slice(2), attrs);
  const dtype =
    attrs.accumulator === undefined
      ? commonDType(ctx, [x!, w!])
      : checkedAccumulator(ctx, [x!, w!], attrs.accumulator);
  return [{ dtype, shape: [x!.shape[0]!, w!.shape[0]!, ...spatial] }];
}

/** Integers are summed in integers, floats of 8 bits in f32. */
function checkedAccumulator(
  ctx: InferContext,
  operands: readonly TensorType[],
  accumulator: DType,
): DType {
  checkAttr(
    ctx,
    [...operands.map((t) => t.dtype), accumulator].every(isIntegerDType) ||
      (operands.every((t) => isFloatDType(t.dtype) && dtypes[t.dtype].bits === 8) &&
        accumulator === "f32"),
    () => `accumulator ${accumulator} of ${operands.map((t) => t.dtype).join(" and ")}`,
    "operands and accumulator are integers, or floats of 8 bits and f32",
  );
  return accumulator;
}

/** The groups divide the channels, as far as constants tell. */
function checkGroups(ctx: InferContext, groups: number, channels: IndexExpr): void {
  checkAttr(ctx, groups > 0, () => `groups ${groups}`);
  const rest = sub(channels, mul(floorDiv(channels, groups), groups));
  checkAttr(
    ctx,
    rest.terms.length > 0 || rest.constant === 0,
    () => `${groups} groups do not divide ${channels.key} channels`,
  );
}

/** 2 per multiply-add of each window position, as if the operand were padded with zeros. */
function convolutionFlops(positions: TensorType, weights: TensorType): IndexExpr {
  const perPosition = mul(...weights.shape.slice(1));
  return mul(2, elementsOf(positions), perPosition);
}

function inferPool(
  x: TensorType,
  attrs: PoolAttrs,
  ctx: InferContext,
): { readonly shape: readonly IndexExpr[] } {
  checkMinRank(ctx, x, 3, "the data");
  checkDType(ctx, x, attrs.kind === "average" || attrs.kind === "lp" ? "float" : "numeric", "data");
  const rank = x.shape.length - 2;
  checkWindow(ctx, attrs, rank);
  checkLength(ctx, attrs.window, rank, "window");
  checkAttr(
    ctx,
    attrs.window.every((v) => v > 0),
    () => `window [${attrs.window.join(", ")}]`,
  );
  const window = attrs.window.map(toIndex);
  return { shape: [...x.shape.slice(0, 2), ...windowResult(ctx, x.shape.slice(2), window, attrs)] };
}

export const windowOps = {
  convolution: {
    arity: [2, 2],
    schema: { ...windowSchema, groups: integer, accumulator: optional(dtype) },
    traits: { contraction: true, linear: "each" },
    infer: inferConvolution,
    flops: ({ inputs, outputs }) => convolutionFlops(outputs[0]!, inputs[1]!),
  },
  transposedConvolution: {
    arity: [2, 2],
    schema: { ...windowSchema, groups: integer, outputPadding: integers },
    traits: { contraction: true, linear: "each" },
    infer: ([x, w], attrs, ctx) => {
      checkMinRank(ctx, x!, 3, "the data");
      checkRank(ctx, w!, x!.shape.length, "the weights");
      checkDType(ctx, x!, "numeric", "the data");
      checkWindow(ctx, attrs, x!.shape.length - 2);
      checkLength(ctx, attrs.outputPadding, x!.shape.length - 2, "outputPadding");
      checkGroups(ctx, attrs.groups, x!.shape[1]!);
      unify(ctx, x!.shape[1]!, w!.shape[0]!, "channels of data and weights");
      const spatial = x!.shape.slice(2).map((extent, i) => {
        const span = windowSpan(w!.shape[i + 2]!, attrs.dilations[i]!);
        const padding = attrs.padLow[i]! + attrs.padHigh[i]!;
        const steps = mul(sub(extent, 1), attrs.strides[i]!);
        const result = add(steps, span, attrs.outputPadding[i]! - padding);
        return checkExtent(ctx, result, `spatial extent ${i} of the result`);
      });
      const channels = mul(w!.shape[1]!, attrs.groups);
      return [{ dtype: commonDType(ctx, [x!, w!]), shape: [x!.shape[0]!, channels, ...spatial] }];
    },
    flops: ({ inputs }) => convolutionFlops(inputs[0]!, inputs[1]!),
  },
  pool: {
    arity: [1, 1],
    schema: poolSchema,
    traits: ({ kind }) => (kind === "sum" || kind === "average" ? { linear: "jointly" } : {}),
    infer: ([x], attrs, ctx) => [{ dtype: x!.dtype, ...inferPool(x!, attrs, ctx) }],
    flops: ({ outputs, attrs }) => mul(elementsOf(outputs[0]!), ...attrs.window),
  },
  poolIndices: {
    arity: [1, 1],
    schema: { ...poolSchema, columnMajor: boolean },
    traits: {},
    infer: ([x], attrs, ctx) => [{ dtype: "i64", ...inferPool(x!, attrs, ctx) }],
    flops: ({ outputs, attrs }) => mul(elementsOf(outputs[0]!), ...attrs.window),
  },
} satisfies OpRows<"convolution" | "transposedConvolution" | "pool" | "poolIndices">;
