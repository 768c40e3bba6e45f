/** Reductions, running reductions, contractions, and ops whose results are ordered or counted. */

import { isFloatDType } from "../../semantics/dtype.ts";
import { type IndexExpr, min, mul, sub, toIndex } from "../../semantics/index-expr.ts";
import { type IndexRange, rangeOf } from "../../semantics/index-range.ts";
import {
  boolean,
  choice,
  dim,
  dtype,
  integer,
  integers,
  labels,
  number,
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
  checkRank,
  commonDType,
  compareExtents,
  dropAxes,
  refuse,
  unify,
  withAt,
} from "../inference.ts";
import type { InferContext, OpRows } from "../op-info.ts";
import { elementsOf, printType, tensorType } from "../tensor-type.ts";

export const reductionOps = {
  reduce: {
    arity: [1, 1],
    schema: {
      kind: choice("sum", "prod", "max", "min", "and", "or"),
      axes: integers,
      keepDims: boolean,
    },
    traits: ({ kind, axes }) => ({
      reduction: axes,
      ...(kind === "sum" ? { linear: "jointly" } : {}),
    }),
    infer: ([x], { kind, axes, keepDims }, ctx) => {
      checkAxes(ctx, axes, x!.shape.length);
      const logical = kind === "and" || kind === "or";
      checkDType(ctx, x!, logical ? "bool" : "numeric", `the operand of reduce ${kind}`);
      return [{ dtype: x!.dtype, shape: dropAxes(x!.shape, axes, keepDims) }];
    },
    flops: ({ inputs }) => elementsOf(inputs[0]!),
  },
  argReduce: {
    arity: [1, 1],
    schema: {
      kind: choice("max", "min"),
      axis: integer,
      keepDims: boolean,
      selectLast: boolean,
    },
    traits: ({ axis }) => ({ reduction: [axis] }),
    infer: ([x], { axis, keepDims }, ctx) => {
      checkAxis(ctx, axis, x!.shape.length);
      checkDType(ctx, x!, "numeric", "the operand");
      checkSome(ctx, x!, axis);
      return [{ dtype: "i64", shape: dropAxes(x!.shape, [axis], keepDims) }];
    },
    flops: ({ inputs }) => elementsOf(inputs[0]!),
  },
  cumulative: {
    arity: [1, 1],
    schema: {
      kind: choice("sum", "prod", "max"),
      axis: integer,
      exclusive: boolean,
      reverse: boolean,
    },
    traits: ({ kind }) => (kind === "sum" ? { linear: "jointly" } : {}),
    infer: ([x], { axis }, ctx) => {
      checkAxis(ctx, axis, x!.shape.length);
      checkDType(ctx, x!, "numeric", "the operand");
      return [x!];
    },
    flops: ({ inputs }) => elementsOf(inputs[0]!),
  },
  contract: {
    arity: [2, 2],
    schema: { lhs: labels, rhs: labels, output: labels, accumulator: dtype },
    traits: { contraction: true, linear: "each" },
    infer: ([lhs, rhs], attrs, ctx) => {
      checkAccumulator(ctx, lhs!, rhs!, attrs.accumulator);
      const extents = new Map<string, IndexExpr>();
      bindLabels(ctx, lhs!, attrs.lhs, extents);
      bindLabels(ctx, rhs!, attrs.rhs, extents);
      checkDistinct(ctx, attrs.output);
      const shape = attrs.output.map((label) => {
        const extent = extents.get(label);
        if (!extent) refuse(ctx, "GRF003", `output label "${label}" is in no operand`);
        return extent;
      });
      return [{ dtype: attrs.accumulator, shape }];
    },
    flops: ({ inputs, attrs }) => {
      const extents = new Map<string, IndexExpr>();
      attrs.lhs.forEach((label, i) => {
        extents.set(label, inputs[0]!.shape[i]!);
      });
      attrs.rhs.forEach((label, i) => {
        extents.set(label, inputs[1]!.shape[i]!);
      });
      return mul(2, ...extents.values());
    },
  },
  topK: {
    arity: [1, 1],
    schema: { axis: integer, k: dim, largest: boolean, sorted: boolean },
    traits: {},
    infer: ([x], { axis, k }, ctx) => {
      checkAxis(ctx, axis, x!.shape.length);
      checkDType(ctx, x!, "numeric", "the operand");
      const extent = checkExtent(ctx, k, "k");
      checkExtent(ctx, sub(x!.shape[axis]!, k), "the extent of the axis less k");
      const shape = withAt(x!.shape, axis, extent);
      return [
        { dtype: x!.dtype, shape },
        { dtype: "i64", shape },
      ];
    },
    flops: ({ inputs }) => elementsOf(inputs[0]!),
  },
  nonZero: {
    arity: [1, 1],
    schema: {},
    traits: { dataDependentShape: true },
    infer: ([x], _attrs, ctx) => {
      const count = ctx.freshSymbol("nonZero", countRange(ctx, elementsOf(x!)));
      return [tensorType("i64", x!.shape.length, count)];
    },
  },
  unique: {
    arity: [1, 1],
    schema: { axis: optional(integer), sorted: boolean },
    traits: { dataDependentShape: true },
    infer: ([x], { axis }, ctx) => {
      if (axis !== undefined) checkAxis(ctx, axis, x!.shape.length);
      const extent = axis === undefined ? elementsOf(x!) : x!.shape[axis]!;
      const count = ctx.freshSymbol("unique", countRange(ctx, extent));
      const shape = axis === undefined ? [count] : withAt(x!.shape, axis, count);
      return [
        { dtype: x!.dtype, shape },
        tensorType("i64", count),
        tensorType("i64", extent),
        tensorType("i64", count),
      ];
    },
  },
  nonMaxSuppression: {
    arity: [2, 2],
    schema: {
      centerPoint: boolean,
      maxPerClass: integer,
      iouThreshold: number,
      scoreThreshold: number,
    },
    traits: { dataDependentShape: true },
    infer: ([boxes, scores], { maxPerClass }, ctx) => {
      checkRank(ctx, boxes!, 3, "the boxes");
      checkRank(ctx, scores!, 3, "the scores");
      checkDType(ctx, boxes!, "float", "the boxes");
      commonDType(ctx, [boxes!, scores!]);
      checkAttr(ctx, maxPerClass >= 0, () => `maxPerClass ${maxPerClass}`);
      unify(ctx, boxes!.shape[0]!, scores!.shape[0]!, "batches of boxes and scores");
      unify(ctx, boxes!.shape[1]!, scores!.shape[2]!, "numbers of boxes and scores");
      unify(ctx, boxes!.shape[2]!, toIndex(4), "the last extent of the boxes");
      const [batch, classes, count] = scores!.shape as [IndexExpr, IndexExpr, IndexExpr];
      const most = mul(batch, classes, min(maxPerClass, count));
      return [tensorType("i64", ctx.freshSymbol("selected", countRange(ctx, most)), 3)];
    },
  },
} satisfies OpRows<
  | "reduce"
  | "argReduce"
  | "cumulative"
  | "contract"
  | "topK"
  | "nonZero"
  | "unique"
  | "nonMaxSuppression"
>;

function countRange(ctx: InferContext, most: IndexExpr): IndexRange {
  return { min: 0, max: Math.max(0, rangeOf(most, ctx.ranges).max) };
}

/** Of no elements none is the largest: there is no place to answer with. */
function checkSome(ctx: InferContext, type: TensorType, axis: number): void {
  const some = min(type.shape[axis]!, 1);
  if (compareExtents(ctx, some, toIndex(1)) === "different") {
    refuse(
      ctx,
      "SHP004",
      `axis ${axis} of ${printType(type)} is empty: none of its elements is the extreme`,
      "choose input extents and values with which it has an element",
    );
  }
  unify(ctx, some, toIndex(1), `axis ${axis}`);
}

function checkDistinct(ctx: InferContext, names: readonly string[]): void {
  if (new Set(names).size !== names.length) {
    refuse(
      ctx,
      "GRF003",
      `labels "${names.join(" ")}" repeat`,
      "take the diagonal first (composite einsum does)",
    );
  }
}

function bindLabels(
  ctx: InferContext,
  type: TensorType,
  names: readonly string[],
  extents: Map<string, IndexExpr>,
): void {
  checkLength(ctx, names, type.shape.length, "the label list");
  checkDistinct(ctx, names);
  for (const [i, label] of names.entries()) {
    const seen = extents.get(label);
    const extent = type.shape[i]!;
    extents.set(label, seen ? unify(ctx, seen, extent, `axes labelled "${label}"`) : extent);
  }
}

function checkAccumulator(
  ctx: InferContext,
  lhs: TensorType,
  rhs: TensorType,
  accumulator: TensorType["dtype"],
): void {
  const kinds = [lhs.dtype, rhs.dtype, accumulator].map(isFloatDType);
  const mixed = kinds.some((k) => k !== kinds[0]);
  if (mixed || [lhs.dtype, rhs.dtype, accumulator].includes("bool")) {
    refuse(
      ctx,
      "GRF002",
      `contract of ${lhs.dtype} and ${rhs.dtype} into ${accumulator}`,
      "operands and accumulator are all floats or all integers",
    );
  }
}
