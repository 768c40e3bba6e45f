/**
 * The reference of every core op, and the one way to run one. An op added to core-ops.ts fails to
 * compile here until it has a reference.
 */
import { attempt, type Result } from "../../support/diagnostic.ts";
import { type ConcreteAttrs, evaluateAttrs } from "../concrete-attrs.ts";
import type { CoreOpAttrs, CoreOpKind } from "../core-ops.ts";
import type { IndexExpr } from "../index-expr.ts";
import type { RefTensor } from "../tensor.ts";
import { contract } from "./contraction.ts";
import { branch, loop, scan } from "./control-flow.ts";
import { convolution, transposedConvolution } from "./convolution.ts";
import { cast, elementwiseReferences, isInf } from "./elementwise.ts";
import { dft } from "./fourier.ts";
import { gather, gatherElements, gatherNd, scatterElements, scatterNd } from "./indexing.ts";
import {
  broadcast,
  concat,
  diagonal,
  dimSize,
  iota,
  pad,
  reshape,
  reverse,
  slice,
  transpose,
} from "./movement.ts";
import { nonMaxSuppression, nonZero, topK, unique } from "./ordering.ts";
import { pool, poolIndices } from "./pooling.ts";
import { dequantize, quantize } from "./quantization.ts";
import { randomNormal, randomUniform } from "./random.ts";
import { argReduce, cumulative, reduce } from "./reductions.ts";
import type { Reference, ReferenceContext } from "./reference.ts";
import { resize } from "./resizing.ts";
import { gridSample, roiAlign } from "./sampling.ts";

export type { Reference, ReferenceContext } from "./reference.ts";

export const references = {
  ...elementwiseReferences,
  cast,
  isInf,
  iota,
  dimSize,
  reshape,
  transpose,
  diagonal,
  broadcast,
  slice,
  reverse,
  concat,
  pad,
  gather,
  gatherElements,
  gatherNd,
  scatterElements,
  scatterNd,
  reduce,
  argReduce,
  cumulative,
  contract,
  convolution,
  transposedConvolution,
  pool,
  poolIndices,
  topK,
  nonZero,
  unique,
  nonMaxSuppression,
  resize,
  gridSample,
  roiAlign,
  dft,
  quantize,
  dequantize,
  randomUniform,
  randomNormal,
  if: branch,
  loop,
  scan,
} satisfies { readonly [K in CoreOpKind]: Reference<K> };

/** Everything that a reference is applied to. */
export interface ReferenceCall<K extends CoreOpKind, Subgraph> {
  readonly kind: K;
  readonly attrs: CoreOpAttrs<Subgraph>[K];
  readonly inputs: readonly RefTensor[];
  /** The values of the index expressions in the attributes. */
  readonly evaluate: (expr: IndexExpr) => number;
}

/** Runs the reference of an op; what only the data can show to be wrong comes back as diagnostics. */
export function runReference<K extends CoreOpKind, Subgraph>(
  { kind, attrs, inputs, evaluate }: ReferenceCall<K, Subgraph>,
  context: ReferenceContext<Subgraph>,
): Result<readonly RefTensor[]> {
  const reference = references[kind] as Reference<K>;
  const concrete: ConcreteAttrs<K, Subgraph> = evaluateAttrs(kind, attrs, evaluate);
  return attempt(() => reference(concrete, inputs, context));
}
