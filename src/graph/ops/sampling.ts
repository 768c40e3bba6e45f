/** Resampling, Fourier transforms, quantisation, random tensors. */
import type { DequantizeAttrs, QuantizeAttrs, RandomAttrs } from "../../semantics/core-ops.ts";
import { add, ceilDiv, constantValue, floorDiv, mul, toIndex } from "../../semantics/index-expr.ts";
import {
  boolean,
  choice,
  dim,
  dims,
  dtype,
  integer,
  integers,
  number,
  numbers,
  optional,
} from "../attr-schema.ts";
import type { TensorType } from "../graph.ts";
import {
  checkAttr,
  checkAxes,
  checkAxis,
  checkDType,
  checkExtent,
  checkLength,
  checkMinRank,
  checkRank,
  commonDType,
  refuse,
  unify,
  unifyShapes,
  withAt,
} from "../inference.ts";
import type { InferContext, OpInfo, OpRows } from "../op-info.ts";
import { elementsOf } from "../tensor-type.ts";

/** Multiply-adds per result element and resampled axis, at least. */
const resizeTaps = { nearest: 0, linear: 2, cubic: 4 } as const;

function inferScale(
  inputs: readonly TensorType[],
  attrs: QuantizeAttrs | DequantizeAttrs,
  ctx: InferContext,
): void {
  const [x, scale, zeroPoint] = inputs as [TensorType, TensorType, TensorType?];
  const { axis, blockSize } = attrs;
  checkDType(ctx, scale, "float", "the scale");
  if (axis === undefined) {
    checkAttr(ctx, blockSize === undefined, () => "blockSize without axis");
    const single = scale.shape.every((d) => constantValue(d) === 1);
    if (!single) refuse(ctx, "SHP003", "the scale has more than one element, but no axis");
  } else {
    checkAxis(ctx, axis, x.shape.length);
    if (blockSize === undefined) {
      checkRank(ctx, scale, 1, "the scale");
      unify(ctx, scale.shape[0]!, x.shape[axis]!, "scales along the axis");
    } else {
      checkAttr(ctx, blockSize > 0, () => `blockSize ${blockSize}`);
      const blocks = withAt(x.shape, axis, ceilDiv(x.shape[axis]!, blockSize));
      unifyShapes(ctx, scale.shape, blocks, "scales per block");
    }
  }
  if (zeroPoint) unifyShapes(ctx, zeroPoint.shape, scale.shape, "scale and zero point");
}

const randomRow: OpInfo<"randomUniform"> & OpInfo<"randomNormal"> = {
  arity: [0, 0],
  schema: { shape: dims, dtype, a: number, b: number, seed: integer },
  traits: { random: true },
  infer: (_inputs, attrs: RandomAttrs, ctx) => {
    const type = { dtype: attrs.dtype, shape: attrs.shape };
    checkDType(ctx, type, "float", "the result");
    for (const d of attrs.shape) checkExtent(ctx, d, "an extent of the result");
    return [type];
  },
};

export const samplingOps = {
  resize: {
    arity: [1, 1],
    schema: {
      mode: choice("nearest", "linear", "cubic"),
      coordinates: choice(
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
      ),
      nearest: choice("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
      cubicCoefficient: number,
      excludeOutside: boolean,
      antialias: boolean,
      axes: integers,
      sizes: dims,
      scales: optional(numbers),
      regionStart: optional(numbers),
      regionEnd: optional(numbers),
      extrapolation: number,
    },
    traits: {},
    infer: ([x], attrs, ctx) => {
      checkAxes(ctx, attrs.axes, x!.shape.length);
      checkLength(ctx, attrs.sizes, attrs.axes.length, "sizes");
      for (const key of ["scales", "regionStart", "regionEnd"] as const) {
        if (attrs[key]) checkLength(ctx, attrs[key], attrs.axes.length, key);
      }
      const shape = x!.shape.map((d, axis) => {
        const at = attrs.axes.indexOf(axis);
        return at < 0 ? d : checkExtent(ctx, attrs.sizes[at]!, "a size");
      });
      return [{ dtype: x!.dtype, shape }];
    },
    flops: ({ outputs, attrs }) =>
      mul(2 * resizeTaps[attrs.mode] * attrs.axes.length, elementsOf(outputs[0]!)),
  },
  gridSample: {
    arity: [2, 2],
    schema: {
      mode: choice("nearest", "linear", "cubic"),
      padding: choice("zeros", "border", "reflection"),
      alignCorners: boolean,
    },
    traits: {},
    infer: ([x, grid], _attrs, ctx) => {
      checkMinRank(ctx, x!, 3, "the data");
      checkRank(ctx, grid!, x!.shape.length, "the grid");
      checkDType(ctx, grid!, "float", "the grid");
      unify(ctx, x!.shape[0]!, grid!.shape[0]!, "batches of data and grid");
      unify(ctx, grid!.shape.at(-1)!, toIndex(x!.shape.length - 2), "coordinates of the grid");
      const shape = [...x!.shape.slice(0, 2), ...grid!.shape.slice(1, -1)];
      return [{ dtype: x!.dtype, shape }];
    },
    flops: ({ inputs, outputs, attrs }) =>
      mul(2 * resizeTaps[attrs.mode] ** (inputs[0]!.shape.length - 2), elementsOf(outputs[0]!)),
  },
  roiAlign: {
    arity: [3, 3],
    schema: {
      mode: choice("avg", "max"),
      outputHeight: integer,
      outputWidth: integer,
      samplingRatio: integer,
      spatialScale: number,
      halfPixel: boolean,
    },
    // Without a ratio a bin has as many samples as elements fit into it, and a box may have any size.
    traits: ({ samplingRatio }) => (samplingRatio === 0 ? { dataDependentWork: true } : {}),
    infer: ([x, boxes, batch], { outputHeight, outputWidth }, ctx) => {
      checkRank(ctx, x!, 4, "the data");
      checkDType(ctx, x!, "float", "the data");
      checkRank(ctx, boxes!, 2, "the boxes");
      commonDType(ctx, [x!, boxes!]);
      checkRank(ctx, batch!, 1, "the batch indices");
      checkDType(ctx, batch!, "index", "the batch indices");
      unify(ctx, boxes!.shape[1]!, toIndex(4), "the last extent of the boxes");
      const count = unify(ctx, boxes!.shape[0]!, batch!.shape[0]!, "boxes and batch indices");
      const shape = [count, x!.shape[1]!, toIndex(outputHeight), toIndex(outputWidth)];
      return [{ dtype: x!.dtype, shape }];
    },
    flops: ({ outputs, attrs }) =>
      mul(8 * Math.max(1, attrs.samplingRatio) ** 2, elementsOf(outputs[0]!)),
  },
  dft: {
    arity: [1, 1],
    schema: { axis: integer, inverse: boolean, onesided: boolean, length: dim },
    traits: { linear: "jointly" },
    infer: ([x], { axis, inverse, onesided, length }, ctx) => {
      checkMinRank(ctx, x!, 2, "the operand");
      checkDType(ctx, x!, "float", "the operand");
      checkAxis(ctx, axis, x!.shape.length - 1);
      const parts = constantValue(x!.shape.at(-1)!);
      if (parts !== 1 && parts !== 2) {
        refuse(ctx, "SHP002", `the last extent is ${x!.shape.at(-1)!.key}, but must be 1 or 2`);
      }
      const bins = onesided && !inverse ? add(floorDiv(length, 2), 1) : length;
      const components = toIndex(onesided && inverse ? 1 : 2);
      const shape = [...withAt(x!.shape, axis, bins).slice(0, -1), components];
      return [{ dtype: x!.dtype, shape }];
    },
    // A radix-2 transform takes 5 n log2 n; for other or unknown lengths 5 n is a floor.
    flops: ({ inputs, attrs }) => {
      const lines = inputs[0]!.shape.slice(0, -1).filter((_, i) => i !== attrs.axis);
      const length = constantValue(attrs.length);
      const stages = length === undefined ? 1 : Math.max(1, Math.floor(Math.log2(length)));
      return mul(5 * stages, attrs.length, ...lines);
    },
  },
  quantize: {
    arity: [2, 3],
    schema: {
      axis: optional(integer),
      blockSize: optional(integer),
      to: dtype,
      saturate: boolean,
    },
    traits: {},
    infer: (inputs, attrs, ctx) => {
      checkDType(ctx, inputs[0]!, "float", "the data");
      inferScale(inputs, attrs, ctx);
      if (inputs[2]) checkDType(ctx, inputs[2], attrs.to, "the zero point");
      return [{ dtype: attrs.to, shape: inputs[0]!.shape }];
    },
    flops: ({ outputs }) => mul(2, elementsOf(outputs[0]!)),
  },
  dequantize: {
    arity: [2, 3],
    schema: { axis: optional(integer), blockSize: optional(integer), to: dtype },
    traits: {},
    infer: (inputs, attrs, ctx) => {
      checkDType(ctx, { dtype: attrs.to, shape: [] }, "float", "the result");
      inferScale(inputs, attrs, ctx);
      if (inputs[2]) checkDType(ctx, inputs[2], inputs[0]!.dtype, "the zero point");
      return [{ dtype: attrs.to, shape: inputs[0]!.shape }];
    },
    flops: ({ outputs }) => mul(2, elementsOf(outputs[0]!)),
  },
  randomUniform: randomRow,
  randomNormal: randomRow,
} satisfies OpRows<
  | "resize"
  | "gridSample"
  | "roiAlign"
  | "dft"
  | "quantize"
  | "dequantize"
  | "randomUniform"
  | "randomNormal"
>;
