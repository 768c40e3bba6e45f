/**
 * The nest builder of every core op. An op added to semantics/core-ops.ts fails to compile here until
 * it has one. `routine` marks what no nest expresses: a Program builder of that name must exist.
 */
import type { NodeOf } from "../../graph/graph.ts";
import type { CoreOpKind } from "../../semantics/core-ops.ts";
import { type ScalarOp, scalarOps } from "../../semantics/scalar-expr.ts";
import type { NestContext, NodeHead } from "./context.ts";
import { buildContract, buildConvolution } from "./contraction.ts";
import { buildCast, buildIsInf, buildScalarOp } from "./elementwise.ts";
import {
  buildGather,
  buildGatherElements,
  buildGatherNd,
  buildScatterElements,
  buildScatterNd,
} from "./indexing.ts";
import {
  buildBroadcast,
  buildConcat,
  buildDiagonal,
  buildDimSize,
  buildIota,
  buildPad,
  buildReshape,
  buildReverse,
  buildSlice,
  buildTranspose,
} from "./movement.ts";
import { buildTopK } from "./ordering.ts";
import { buildPool, buildPoolIndices } from "./pooling.ts";
import { buildDequantize, buildQuantize } from "./quantization.ts";
import { buildArgReduce, buildCumulative, buildReduce } from "./reduction.ts";
import { buildResize } from "./resize.ts";
import { buildGridSample, buildRoiAlign } from "./sampling.ts";
import { buildTransposedConvolution } from "./transposed-convolution.ts";

/** Appends the items of one node to the context. */
export type NestBuilder<K extends CoreOpKind> = (context: NestContext, node: NodeOf<K>) => void;

const scalarBuilders = Object.fromEntries(
  Object.keys(scalarOps).map((op) => [op, buildScalarOp]),
) as { readonly [K in ScalarOp]: NestBuilder<K> };

function routine(context: NestContext, node: NodeHead): void {
  context.routine(node);
}

export const nestBuilders = {
  ...scalarBuilders,
  cast: buildCast,
  isInf: buildIsInf,
  iota: buildIota,
  dimSize: buildDimSize,
  reshape: buildReshape,
  transpose: buildTranspose,
  diagonal: buildDiagonal,
  broadcast: buildBroadcast,
  slice: buildSlice,
  reverse: buildReverse,
  concat: buildConcat,
  pad: buildPad,
  gather: buildGather,
  gatherElements: buildGatherElements,
  gatherNd: buildGatherNd,
  scatterElements: buildScatterElements,
  scatterNd: buildScatterNd,
  reduce: buildReduce,
  argReduce: buildArgReduce,
  cumulative: buildCumulative,
  contract: buildContract,
  convolution: buildConvolution,
  transposedConvolution: buildTransposedConvolution,
  pool: buildPool,
  poolIndices: buildPoolIndices,
  topK: buildTopK,
  nonZero: routine,
  unique: routine,
  nonMaxSuppression: routine,
  resize: buildResize,
  gridSample: buildGridSample,
  roiAlign: buildRoiAlign,
  dft: routine,
  quantize: buildQuantize,
  dequantize: buildDequantize,
  randomUniform: routine,
  randomNormal: routine,
  if: routine,
  loop: routine,
  scan: routine,
} satisfies { readonly [K in CoreOpKind]: NestBuilder<K> };
