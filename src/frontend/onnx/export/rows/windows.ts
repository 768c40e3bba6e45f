/** Convolutions, pools, resizing and sampling. */
import type { PoolAttrs, ResizeAttrs, WindowAttrs } from "../../../../semantics/core-ops.ts";
import { constantValue } from "../../../../semantics/index-expr.ts";
import { bigints, type ExportCall, type ExportRow, type ExportRows, flag } from "../export-row.ts";
import type { Attributes, GraphSink } from "../graph-sink.ts";

export function windowAttributes(attrs: WindowAttrs): Attributes {
  return {
    strides: bigints(attrs.strides),
    dilations: bigints(attrs.dilations),
    pads: bigints([...attrs.padLow, ...attrs.padHigh]),
  };
}

const transposedConvolution: ExportRow<"transposedConvolution"> = ({ attrs, inputs }, sink) => [
  sink.op("ConvTranspose", inputs, {
    ...windowAttributes(attrs),
    group: BigInt(attrs.groups),
    output_padding: bigints(attrs.outputPadding),
  }),
];

function poolAttributes(attrs: PoolAttrs): Attributes {
  return {
    ...windowAttributes(attrs),
    kernel_shape: bigints(attrs.window),
    ceil_mode: flag(attrs.ceil),
  };
}

/** A sum is an average that counts its padding, times the size of the window. */
const pool: ExportRow<"pool"> = (call, sink) => {
  const { attrs, inputs } = call;
  const common = poolAttributes(attrs);
  switch (attrs.kind) {
    case "max":
      return [sink.op("MaxPool", inputs, common)];
    case "lp":
      return [sink.op("LpPool", inputs, { ...common, p: BigInt(attrs.exponent) })];
    case "average":
      return [
        sink.op("AveragePool", inputs, { ...common, count_include_pad: flag(attrs.countPadding) }),
      ];
    case "sum":
      return [sumPool(call, sink)];
  }
};

function sumPool({ attrs, inputs, types }: ExportCall<"pool">, sink: GraphSink): string {
  if (attrs.ceil) sink.refuse("a sum over a partial window", "pool with whole windows");
  const average = sink.op("AveragePool", inputs, {
    ...poolAttributes(attrs),
    count_include_pad: 1n,
  });
  const size = attrs.window.reduce((a, b) => a * b, 1);
  return sink.op("Mul", [average, sink.numbers(types[0]!.dtype, [size])]);
}

const poolIndices: ExportRow<"poolIndices"> = ({ attrs, inputs }, sink) => {
  const attributes = { ...poolAttributes(attrs), storage_order: flag(attrs.columnMajor) };
  return [sink.ops("MaxPool", inputs, attributes, 2)[1]!];
};

/** The scales are said where they give the sizes; else the sizes, from which the scales follow. */
function scalesDecide({ attrs, types }: ExportCall<"resize">): boolean {
  const { axes, sizes, scales } = attrs;
  return (
    scales?.every((scale, i) => {
      const extent = constantValue(types[0]!.shape[axes[i]!]!);
      const size = constantValue(sizes[i]!);
      return extent !== undefined && Math.floor(Math.fround(extent * scale)) === size;
    }) ?? false
  );
}

const resize: ExportRow<"resize"> = (call, sink) => {
  const { attrs, inputs } = call;
  const { axes, sizes, scales, regionStart = [], regionEnd = [] } = attrs;
  const list = (values: readonly number[]) => sink.numbers("f32", values, [values.length]);
  const region = [...regionStart, ...regionEnd];
  const target = scalesDecide(call) ? [list(scales!)] : ["", sink.shape(sizes)];
  return [
    sink.op("Resize", [inputs[0]!, region.length > 0 ? list(region) : "", ...target], {
      ...resizeAttributes(attrs),
      axes: bigints(axes),
    }),
  ];
};

function resizeAttributes(attrs: ResizeAttrs): Attributes {
  return {
    mode: attrs.mode,
    coordinate_transformation_mode: attrs.coordinates,
    nearest_mode: attrs.nearest,
    cubic_coeff_a: attrs.cubicCoefficient,
    exclude_outside: flag(attrs.excludeOutside),
    antialias: flag(attrs.antialias),
    extrapolation_value: attrs.extrapolation,
  };
}

const roiAlign: ExportRow<"roiAlign"> = ({ attrs, inputs }, sink) => [
  sink.op("RoiAlign", inputs, {
    mode: attrs.mode,
    output_height: BigInt(attrs.outputHeight),
    output_width: BigInt(attrs.outputWidth),
    sampling_ratio: BigInt(attrs.samplingRatio),
    spatial_scale: attrs.spatialScale,
    coordinate_transformation_mode: attrs.halfPixel ? "half_pixel" : "output_half_pixel",
  }),
];

const gridSample: ExportRow<"gridSample"> = ({ attrs, inputs }, sink) => [
  sink.op("GridSample", inputs, {
    mode: attrs.mode,
    padding_mode: attrs.padding,
    align_corners: flag(attrs.alignCorners),
  }),
];

const dft: ExportRow<"dft"> = ({ attrs, inputs }, sink) => [
  sink.op("DFT", [inputs[0]!, sink.scalar(attrs.length), sink.numbers("i64", [attrs.axis])], {
    inverse: flag(attrs.inverse),
    onesided: flag(attrs.onesided),
  }),
];

const nonMaxSuppression: ExportRow<"nonMaxSuppression"> = ({ attrs, inputs }, sink) => {
  const { centerPoint, maxPerClass, iouThreshold, scoreThreshold } = attrs;
  const threshold = (value: number) => sink.numbers("f32", [value], [1]);
  const operands = [
    sink.integers([maxPerClass]),
    threshold(iouThreshold),
    threshold(scoreThreshold),
  ];
  return [
    sink.op("NonMaxSuppression", [...inputs, ...operands], { center_point_box: flag(centerPoint) }),
  ];
};

export const windowRows = {
  convolution: ({ attrs, inputs }, sink) => {
    const { accumulator, groups } = attrs;
    if (accumulator !== undefined && accumulator !== "i32") {
      sink.refuse(`sums of integers in ${accumulator}`, "sums in i32");
    }
    const op = accumulator === undefined ? "Conv" : "ConvInteger";
    return [sink.op(op, inputs, { ...windowAttributes(attrs), group: BigInt(groups) })];
  },
  transposedConvolution,
  pool,
  poolIndices,
  resize,
  roiAlign,
  gridSample,
  dft,
  nonMaxSuppression,
} satisfies ExportRows<
  | "convolution"
  | "transposedConvolution"
  | "pool"
  | "poolIndices"
  | "resize"
  | "roiAlign"
  | "gridSample"
  | "dft"
  | "nonMaxSuppression"
>;
