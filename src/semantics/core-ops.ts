/**
 * The core op set: every computation the compiler knows is one of these or a composite that is defined
 * by them (graph/composites.ts). This file is the list with the attributes of each; the meaning is the
 * reference in references/, typing and traits are graph/op-table.ts, nests are region/.
 *
 * Sizes in attributes are index expressions, so that they may depend on symbols; axes and flags are
 * plain values. Axes count from the outside and are never negative. Data layout of spatial ops is
 * [batch, channel, spatial…], weights [output channel, input channel / groups, window…].
 */
import type { DType } from "./dtype.ts";
import type { IndexExpr } from "./index-expr.ts";
import type { ScalarOp } from "./scalar-expr.ts";

/** No attributes. */
export type NoAttrs = Readonly<Record<never, never>>;

/** Elementwise ops have the names of the scalar operators and broadcast their operands. */
type ElementwiseAttrs = { readonly [K in ScalarOp]: NoAttrs };

/** A sliding window over the spatial axes, one entry each. */
export interface WindowAttrs {
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly padLow: readonly number[];
  readonly padHigh: readonly number[];
}

export interface GroupedWindowAttrs extends WindowAttrs {
  readonly groups: number;
}

export interface ConvolutionAttrs extends GroupedWindowAttrs {
  /** Type of the sums of integers, whose operands may then be of two types; absent: the operands' own. */
  readonly accumulator?: DType;
}

export interface TransposedConvolutionAttrs extends GroupedWindowAttrs {
  /** Extra extent at the high end of each spatial axis of the result. */
  readonly outputPadding: readonly number[];
}

export type PoolKind = "max" | "sum" | "average" | "lp";

export interface PoolAttrs extends WindowAttrs {
  readonly kind: PoolKind;
  readonly window: readonly number[];
  /** Whether the extent of the result rounds up (a last partial window). */
  readonly ceil: boolean;
  /** For `average`: whether padding counts in the divisor. */
  readonly countPadding: boolean;
  /** For `lp`: the exponent. */
  readonly exponent: number;
}

export type ReduceKind = "sum" | "prod" | "max" | "min" | "and" | "or";
export type ScatterReduction = "none" | "add" | "mul" | "max" | "min";

export interface ReduceAttrs {
  readonly kind: ReduceKind;
  /** Sorted, distinct. */
  readonly axes: readonly number[];
  readonly keepDims: boolean;
}

export interface ArgReduceAttrs {
  readonly kind: "max" | "min";
  readonly axis: number;
  readonly keepDims: boolean;
  /** Among equal extremes: the last position instead of the first. */
  readonly selectLast: boolean;
}

/**
 * Einstein summation of two operands: a label per axis; labels absent from `output` are summed, labels
 * in all three are batch axes. `contract {lhs: "i k", rhs: "k j", output: "i j"}` is a matrix product.
 */
export interface ContractAttrs {
  readonly lhs: readonly string[];
  readonly rhs: readonly string[];
  readonly output: readonly string[];
  /** Element type of the result and of the sum. */
  readonly accumulator: DType;
}

export interface ResizeAttrs {
  readonly mode: "nearest" | "linear" | "cubic";
  readonly coordinates:
    | "half_pixel"
    | "half_pixel_symmetric"
    | "pytorch_half_pixel"
    | "align_corners"
    | "asymmetric"
    | "tf_crop_and_resize";
  readonly nearest: "round_prefer_floor" | "round_prefer_ceil" | "floor" | "ceil";
  readonly cubicCoefficient: number;
  readonly excludeOutside: boolean;
  readonly antialias: boolean;
  /** Axes that are resized; the others keep their extent. */
  readonly axes: readonly number[];
  /** Extents of the result along `axes`. */
  readonly sizes: readonly IndexExpr[];
  /** Scale along `axes` used by the coordinate transform; undefined: size of result / size of operand. */
  readonly scales?: readonly number[];
  /** For tf_crop_and_resize: start and end per axis, and the value outside. */
  readonly regionStart?: readonly number[];
  readonly regionEnd?: readonly number[];
  readonly extrapolation: number;
}

export interface GridSampleAttrs {
  readonly mode: "nearest" | "linear" | "cubic";
  readonly padding: "zeros" | "border" | "reflection";
  readonly alignCorners: boolean;
}

export interface RoiAlignAttrs {
  readonly mode: "avg" | "max";
  readonly outputHeight: number;
  readonly outputWidth: number;
  readonly samplingRatio: number;
  readonly spatialScale: number;
  readonly halfPixel: boolean;
}

/** `axis` undefined: one scale for the whole tensor; `blockSize`: scales per block along the axis. */
export interface QuantizeAttrs {
  readonly axis?: number;
  readonly blockSize?: number;
  readonly to: DType;
  readonly saturate: boolean;
}

export interface DequantizeAttrs {
  readonly axis?: number;
  readonly blockSize?: number;
  readonly to: DType;
}

export interface RandomAttrs {
  readonly shape: readonly IndexExpr[];
  readonly dtype: DType;
  /** uniform: low and high; normal: mean and standard deviation. */
  readonly a: number;
  readonly b: number;
  readonly seed: number;
}

/** inputs: condition, then everything the branches capture; both branches take those captures. */
export interface IfAttrs<Subgraph> {
  readonly then: Subgraph;
  readonly else: Subgraph;
}

/**
 * inputs: trip count (i64), condition (bool), carried…, captures…; the body takes (iteration, condition,
 * carried…, captures…) and gives (condition, carried…, collected…); outputs: carried…, collected….
 */
export interface LoopAttrs<Subgraph> {
  readonly body: Subgraph;
  readonly carried: number;
  /** Upper bound of the trip count, used to size collected outputs. */
  readonly maxTrips: IndexExpr;
}

/**
 * inputs: carried…, sequences…, captures…; the body takes (carried…, elements…, captures…) and gives
 * (carried…, collected…); axis and direction per sequence and per collected output.
 */
export interface ScanAttrs<Subgraph> {
  readonly body: Subgraph;
  readonly carried: number;
  readonly sequences: number;
  readonly inputAxes: readonly number[];
  readonly inputReversed: readonly boolean[];
  readonly outputAxes: readonly number[];
  readonly outputReversed: readonly boolean[];
}

export interface CoreOpAttrs<Subgraph = unknown> extends ElementwiseAttrs {
  // Elementwise beyond the scalar operators.
  /**
   * `rounds`: the model asks for this conversion to half precision: the result is a number of that type even where
   * halves are kept wide. Absent: one of an operator's own, whose sum may stay as it is.
   */
  cast: { readonly to: DType; readonly saturate: boolean; readonly rounds?: boolean };
  isInf: { readonly detectNegative: boolean; readonly detectPositive: boolean };
  // Shapes and data movement.
  /** Counts 0, 1, … along `axis`. */
  iota: { readonly shape: readonly IndexExpr[]; readonly axis: number; readonly dtype: DType };
  /** The extent of one axis as an i64 scalar. */
  dimSize: { readonly axis: number };
  reshape: { readonly shape: readonly IndexExpr[] };
  transpose: { readonly permutation: readonly number[] };
  /** Elements where the positions along both axes are equal; the second axis goes. */
  diagonal: { readonly axis: number; readonly other: number };
  /** Repeats along new outer axes and axes of extent 1. */
  broadcast: { readonly shape: readonly IndexExpr[] };
  /** One entry per axis; steps are positive (see reverse). */
  slice: {
    readonly starts: readonly IndexExpr[];
    readonly steps: readonly number[];
    readonly sizes: readonly IndexExpr[];
  };
  reverse: { readonly axes: readonly number[] };
  concat: { readonly axis: number };
  /** Second input: the fill value (scalar) for mode constant. Negative amounts crop. */
  pad: {
    readonly low: readonly IndexExpr[];
    readonly high: readonly IndexExpr[];
    readonly mode: "constant" | "reflect" | "edge" | "wrap";
  };
  /** inputs: data, indices; indices may be negative (from the end). Same for the next five. */
  gather: { readonly axis: number };
  gatherElements: { readonly axis: number };
  gatherNd: { readonly batchDims: number };
  /** inputs: data, indices, updates. */
  scatterElements: { readonly axis: number; readonly reduction: ScatterReduction };
  scatterNd: { readonly reduction: ScatterReduction };
  // Reductions, scans and contractions.
  reduce: ReduceAttrs;
  argReduce: ArgReduceAttrs;
  cumulative: {
    readonly kind: "sum" | "prod" | "max";
    readonly axis: number;
    readonly exclusive: boolean;
    readonly reverse: boolean;
  };
  contract: ContractAttrs;
  /** inputs: data, weights (no bias: a bias is an add). */
  convolution: ConvolutionAttrs;
  transposedConvolution: TransposedConvolutionAttrs;
  pool: PoolAttrs;
  /** Position of each maximum as a flat index into the unpadded operand (ONNX MaxPool, second output). */
  poolIndices: PoolAttrs & { readonly columnMajor: boolean };
  // Order and data-dependent extents.
  /** outputs: values, indices (i64). */
  topK: {
    readonly axis: number;
    readonly k: IndexExpr;
    readonly largest: boolean;
    readonly sorted: boolean;
  };
  /** output: i64[rank, count]. */
  nonZero: NoAttrs;
  /** outputs: values, first indices, inverse indices, counts; `axis` undefined: over the flat tensor. */
  unique: { readonly axis?: number; readonly sorted: boolean };
  /** inputs: boxes, scores; output: i64[count, 3]. */
  nonMaxSuppression: {
    readonly centerPoint: boolean;
    readonly maxPerClass: number;
    readonly iouThreshold: number;
    readonly scoreThreshold: number;
  };
  // Sampling and transforms.
  resize: ResizeAttrs;
  /** inputs: data, grid. */
  gridSample: GridSampleAttrs;
  /** inputs: data, boxes, batch indices. */
  roiAlign: RoiAlignAttrs;
  /** Operand […, n, 1 or 2] (real or complex pairs); `length` is the transform length. */
  dft: {
    readonly axis: number;
    readonly inverse: boolean;
    readonly onesided: boolean;
    readonly length: IndexExpr;
  };
  // Quantised values. inputs: data, scale, zero point.
  quantize: QuantizeAttrs;
  dequantize: DequantizeAttrs;
  randomUniform: RandomAttrs;
  randomNormal: RandomAttrs;
  // Control flow.
  if: IfAttrs<Subgraph>;
  loop: LoopAttrs<Subgraph>;
  scan: ScanAttrs<Subgraph>;
}

export type CoreOpKind = keyof CoreOpAttrs;
