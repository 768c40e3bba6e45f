/** Ops that make, reshape, cut, join and re-index tensors without arithmetic. */
import {
  add,
  constantValue,
  type IndexExpr,
  mul,
  sub,
  toIndex,
} from "../../semantics/index-expr.ts";
import { provesLess, rangeOf } from "../../semantics/index-range.ts";
import { choice, dims, dtype, integer, integers } from "../attr-schema.ts";
import type { TensorType } from "../graph.ts";
import {
  broadcastShapes,
  checkAttr,
  checkAxes,
  checkAxis,
  checkDType,
  checkExtent,
  checkLength,
  checkMinRank,
  checkRank,
  commonDType,
  compareExtents,
  dropAxes,
  refuse,
  unify,
  unifyShapes,
  withAt,
} from "../inference.ts";
import type { InferContext, OpRows } from "../op-info.ts";
import { bytesOf, elementsOf, printShape, sameShape } from "../tensor-type.ts";

const pure = { dataMovement: true, linear: "jointly" } as const;

function checkShape(ctx: InferContext, shape: readonly IndexExpr[]): readonly IndexExpr[] {
  return shape.map((d) => checkExtent(ctx, d, "an extent of the result"));
}

/** The element counts agree, or a constraint says so. */
function checkSameCount(ctx: InferContext, from: TensorType, to: TensorType): void {
  const [a, b] = [elementsOf(from), elementsOf(to)];
  const order = compareExtents(ctx, a, b);
  if (order === "different") {
    refuse(
      ctx,
      "SHP005",
      `${printShape(from.shape)} has ${a.key} elements, ${printShape(to.shape)} has ${b.key}`,
      "the shapes of a reshape hold equally many elements",
    );
  }
  if (order === "unknown") ctx.requireEqual(a, b);
}

function checkSliceBounds(
  ctx: InferContext,
  extent: IndexExpr,
  start: IndexExpr,
  last: IndexExpr,
): void {
  const outside =
    provesLess(start, 0, ctx.ranges) ||
    (!provesLess(last, start, ctx.ranges) && rangeOf(sub(extent, last), ctx.ranges).max <= 0);
  if (outside) {
    refuse(
      ctx,
      "SHP004",
      `the slice from ${start.key} to ${last.key} leaves an axis of extent ${extent.key}`,
      "clamp the bounds of the slice to the axis",
    );
  }
}

/** Elements outside of an axis are copies of some inside: there have to be such; wrapping divides by their number. */
function checkPadSource(
  ctx: InferContext,
  [extent, padded]: readonly [IndexExpr, IndexExpr],
  mode: string,
): void {
  const { min, max } = rangeOf(extent, ctx.ranges);
  if (mode === "constant" || rangeOf(padded, ctx.ranges).max <= 0) return;
  if (mode === "wrap" ? min >= 1 : max >= 1) return;
  refuse(
    ctx,
    "SHP004",
    `pad with mode ${mode} of an axis of extent ${extent.key}, which has no element to copy`,
    "give sizes for which it has one, or pad with a constant",
  );
}

export const movementOps = {
  iota: {
    arity: [0, 0],
    schema: { shape: dims, axis: integer, dtype },
    traits: {},
    infer: (_inputs, attrs, ctx) => {
      checkAxis(ctx, attrs.axis, attrs.shape.length);
      return [{ dtype: attrs.dtype, shape: checkShape(ctx, attrs.shape) }];
    },
  },
  dimSize: {
    arity: [1, 1],
    schema: { axis: integer },
    traits: {},
    infer: ([x], { axis }, ctx) => {
      checkAxis(ctx, axis, x!.shape.length);
      return [{ dtype: "i64", shape: [] }];
    },
    bytesRead: () => toIndex(0),
  },
  reshape: {
    arity: [1, 1],
    schema: { shape: dims },
    traits: pure,
    infer: ([x], { shape }, ctx) => {
      const result = { dtype: x!.dtype, shape: checkShape(ctx, shape) };
      checkSameCount(ctx, x!, result);
      return [result];
    },
  },
  transpose: {
    arity: [1, 1],
    schema: { permutation: integers },
    traits: pure,
    infer: ([x], { permutation }, ctx) => {
      const rank = x!.shape.length;
      checkLength(ctx, permutation, rank, "permutation");
      checkAxes(
        ctx,
        [...permutation].sort((a, b) => a - b),
        rank,
      );
      return [{ dtype: x!.dtype, shape: permutation.map((axis) => x!.shape[axis]!) }];
    },
  },
  diagonal: {
    arity: [1, 1],
    schema: { axis: integer, other: integer },
    traits: pure,
    infer: ([x], { axis, other }, ctx) => {
      checkAxis(ctx, axis, x!.shape.length);
      checkAxis(ctx, other, x!.shape.length);
      checkAttr(ctx, axis !== other, () => `axis ${axis} with itself`, "name two axes");
      const extent = unify(ctx, x!.shape[axis]!, x!.shape[other]!, "axes of a diagonal");
      const shape = dropAxes(withAt(x!.shape, axis, extent), [other], false);
      return [{ dtype: x!.dtype, shape }];
    },
    bytesRead: ({ outputs }) => bytesOf(outputs[0]!),
  },
  broadcast: {
    arity: [1, 1],
    schema: { shape: dims },
    traits: pure,
    infer: ([x], attrs, ctx) => {
      const shape = checkShape(ctx, attrs.shape);
      const common = broadcastShapes(ctx, [x!.shape, shape]);
      if (common.length !== shape.length || !sameShape(x!.shape, shape)) {
        checkBroadcastTarget(ctx, x!, shape);
      }
      return [{ dtype: x!.dtype, shape }];
    },
  },
  slice: {
    arity: [1, 1],
    schema: { starts: dims, steps: integers, sizes: dims },
    traits: pure,
    infer: ([x], { starts, steps, sizes }, ctx) => {
      const rank = x!.shape.length;
      checkLength(ctx, starts, rank, "starts");
      checkLength(ctx, steps, rank, "steps");
      checkLength(ctx, sizes, rank, "sizes");
      const shape = checkShape(ctx, sizes);
      for (const [axis, extent] of x!.shape.entries()) {
        const step = steps[axis]!;
        checkAttr(ctx, step > 0, () => `step ${step}`, "use reverse for negative steps");
        const last = add(starts[axis]!, mul(sub(shape[axis]!, 1), step));
        checkSliceBounds(ctx, extent, starts[axis]!, last);
      }
      return [{ dtype: x!.dtype, shape }];
    },
    bytesRead: ({ outputs }) => bytesOf(outputs[0]!),
  },
  reverse: {
    arity: [1, 1],
    schema: { axes: integers },
    traits: pure,
    infer: ([x], { axes }, ctx) => {
      checkAxes(ctx, axes, x!.shape.length);
      return [x!];
    },
  },
  concat: {
    arity: [1, Infinity],
    schema: { axis: integer },
    traits: pure,
    infer: (inputs, { axis }, ctx) => {
      const first = inputs[0]!;
      checkAxis(ctx, axis, first.shape.length);
      const shape = inputs.slice(1).reduce<readonly IndexExpr[]>((left, t) => {
        checkRank(ctx, t, first.shape.length, "each operand");
        return left.map((d, i) =>
          i === axis ? add(d, t.shape[i]!) : unify(ctx, d, t.shape[i]!, "joined operands"),
        );
      }, first.shape);
      return [{ dtype: commonDType(ctx, inputs), shape }];
    },
  },
  pad: {
    arity: [1, 2],
    schema: { low: dims, high: dims, mode: choice("constant", "reflect", "edge", "wrap") },
    traits: pure,
    infer: (inputs, { low, high, mode }, ctx) => {
      const x = inputs[0]!;
      checkLength(ctx, low, x.shape.length, "low");
      checkLength(ctx, high, x.shape.length, "high");
      if ((inputs.length === 2) !== (mode === "constant")) {
        refuse(ctx, "GRF001", `pad with mode ${mode} has ${inputs.length} operands`);
      }
      commonDType(ctx, inputs);
      if (inputs[1]) checkRank(ctx, inputs[1], 0, "the fill value");
      const shape = checkShape(
        ctx,
        x.shape.map((d, i) => add(d, low[i]!, high[i]!)),
      );
      const isPadded = (i: number): boolean => low[i]!.key !== "0" || high[i]!.key !== "0";
      for (const [i, extent] of x.shape.entries())
        if (isPadded(i)) checkPadSource(ctx, [extent, shape[i]!], mode);
      return [{ dtype: x.dtype, shape }];
    },
  },
  gather: {
    arity: [2, 2],
    schema: { axis: integer },
    traits: ({ axis }) => ({ positions: [axis] }),
    infer: ([data, indices], { axis }, ctx) => {
      checkAxis(ctx, axis, data!.shape.length);
      checkDType(ctx, indices!, "index", "the indices");
      const shape = data!.shape.flatMap((d, i) => (i === axis ? indices!.shape : [d]));
      return [{ dtype: data!.dtype, shape }];
    },
    bytesRead: readIndexed,
  },
  gatherElements: {
    arity: [2, 2],
    schema: { axis: integer },
    traits: ({ axis }) => ({ positions: [axis] }),
    infer: ([data, indices], { axis }, ctx) => {
      checkAxis(ctx, axis, data!.shape.length);
      checkRank(ctx, indices!, data!.shape.length, "the indices");
      checkDType(ctx, indices!, "index", "the indices");
      return [{ dtype: data!.dtype, shape: indices!.shape }];
    },
    bytesRead: readIndexed,
  },
  gatherNd: {
    arity: [2, 2],
    schema: { batchDims: integer },
    traits: ({ batchDims }, [, indices]) => ({ positions: axesFrom(batchDims, indices!) }),
    infer: ([data, indices], { batchDims }, ctx) => {
      checkDType(ctx, indices!, "index", "the indices");
      checkMinRank(ctx, indices!, batchDims + 1, "the indices");
      const depth = indexDepth(ctx, indices!);
      checkMinRank(ctx, data!, batchDims + depth, "the data");
      for (let i = 0; i < batchDims; i++) {
        unify(ctx, data!.shape[i]!, indices!.shape[i]!, "batch axes");
      }
      const shape = [...indices!.shape.slice(0, -1), ...data!.shape.slice(batchDims + depth)];
      return [{ dtype: data!.dtype, shape }];
    },
    bytesRead: readIndexed,
  },
  scatterElements: {
    arity: [3, 3],
    schema: { axis: integer, reduction: choice("none", "add", "mul", "max", "min") },
    traits: ({ axis }) => ({ positions: [axis], updates: 2 }),
    infer: ([data, indices, updates], { axis }, ctx) => {
      checkAxis(ctx, axis, data!.shape.length);
      checkDType(ctx, indices!, "index", "the indices");
      checkRank(ctx, indices!, data!.shape.length, "the indices");
      unifyShapes(ctx, indices!.shape, updates!.shape, "indices and updates");
      return [{ dtype: commonDType(ctx, [data!, updates!]), shape: data!.shape }];
    },
  },
  scatterNd: {
    arity: [3, 3],
    schema: { reduction: choice("none", "add", "mul", "max", "min") },
    traits: (_, [, indices]) => ({ positions: axesFrom(0, indices!), updates: 2 }),
    infer: ([data, indices, updates], _attrs, ctx) => {
      checkDType(ctx, indices!, "index", "the indices");
      checkMinRank(ctx, indices!, 1, "the indices");
      const depth = indexDepth(ctx, indices!);
      checkMinRank(ctx, data!, depth, "the data");
      const expected = [...indices!.shape.slice(0, -1), ...data!.shape.slice(depth)];
      unifyShapes(ctx, updates!.shape, expected, "updates");
      return [{ dtype: commonDType(ctx, [data!, updates!]), shape: data!.shape }];
    },
  },
} satisfies OpRows<
  | "iota"
  | "dimSize"
  | "reshape"
  | "transpose"
  | "diagonal"
  | "broadcast"
  | "slice"
  | "reverse"
  | "concat"
  | "pad"
  | "gather"
  | "gatherElements"
  | "gatherNd"
  | "scatterElements"
  | "scatterNd"
>;

/** An indexed read touches the indices and as many elements as it gives. */
function readIndexed(call: {
  readonly inputs: readonly TensorType[];
  readonly outputs: readonly TensorType[];
}): IndexExpr {
  return add(bytesOf(call.inputs[1]!), bytesOf(call.outputs[0]!));
}

function indexDepth(ctx: InferContext, indices: TensorType): number {
  const last = indices.shape.at(-1)!;
  const depth = constantValue(last);
  if (depth === undefined) {
    refuse(ctx, "SHP003", `the last extent of the indices is ${last.key}, not a constant`);
  }
  return depth;
}

function checkBroadcastTarget(ctx: InferContext, x: TensorType, shape: readonly IndexExpr[]): void {
  const offset = shape.length - x.shape.length;
  const fits =
    offset >= 0 &&
    x.shape.every((d, i) => constantValue(d) === 1 || constantValue(shape[offset + i]!) !== 1);
  if (!fits) {
    refuse(ctx, "SHP001", `${printShape(x.shape)} does not broadcast to ${printShape(shape)}`);
  }
}

/** The axes that rows of indices pick from. */
function axesFrom(first: number, { shape }: TensorType): readonly number[] {
  const last = shape.at(-1);
  const depth = (last && constantValue(last)) ?? 0;
  return Array.from({ length: depth }, (_, i) => first + i);
}
