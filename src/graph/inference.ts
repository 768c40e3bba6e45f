/**
 * The vocabulary of type and shape inference: refusing with a diagnostic, unifying extents,
 * broadcasting, checks of dtype, rank and axis. Used by the families under ops/.
 */
import {
  type DType,
  dtypes,
  isBigDType,
  isFloatDType,
  isIntegerDType,
} from "../semantics/dtype.ts";
import {
  constantValue,
  type IndexExpr,
  indexEquals,
  sub,
  toIndex,
} from "../semantics/index-expr.ts";
import { rangeOf, simplify } from "../semantics/index-range.ts";
import { reject } from "../support/diagnostic.ts";
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";
import type { TensorType } from "./graph.ts";
import type { InferContext } from "./op-info.ts";
import { printShape, printType } from "./tensor-type.ts";

/** Rejects the node being inferred. */
export function refuse(
  ctx: InferContext,
  code: DiagnosticCode,
  message: string,
  help?: string,
): never {
  return reject(code, message, { at: ctx.at, ...(help === undefined ? {} : { help }) });
}

/** Whether two extents are equal, different, or neither can be proved. */
export function compareExtents(
  ctx: InferContext,
  a: IndexExpr,
  b: IndexExpr,
): "equal" | "different" | "unknown" {
  const difference = simplify(sub(a, b), ctx.ranges);
  if (constantValue(difference) === 0) return "equal";
  const range = rangeOf(difference, ctx.ranges);
  return range.min > 0 || range.max < 0 ? "different" : "unknown";
}

/** The common extent of two that must agree; an unproved agreement becomes a constraint. */
export function unify(ctx: InferContext, a: IndexExpr, b: IndexExpr, what: string): IndexExpr {
  const order = compareExtents(ctx, a, b);
  if (order === "different") {
    refuse(
      ctx,
      "SHP002",
      `${what}: ${a.key} and ${b.key} differ`,
      "make the two extents equal, or bind the symbols so that they are",
    );
  }
  if (order === "unknown") ctx.requireEqual(a, b);
  return constantValue(b) !== undefined ? b : a;
}

export function unifyShapes(
  ctx: InferContext,
  a: readonly IndexExpr[],
  b: readonly IndexExpr[],
  what: string,
): readonly IndexExpr[] {
  if (a.length !== b.length) {
    refuse(ctx, "SHP002", `${what}: ${printShape(a)} and ${printShape(b)} differ in rank`);
  }
  return a.map((d, i) => unify(ctx, d, b[i]!, what));
}

/** The shape of numpy broadcasting. */
export function broadcastShapes(
  ctx: InferContext,
  shapes: readonly (readonly IndexExpr[])[],
): readonly IndexExpr[] {
  const rank = Math.max(0, ...shapes.map((s) => s.length));
  const result: IndexExpr[] = new Array<IndexExpr>(rank).fill(toIndex(1));
  for (const shape of shapes) {
    for (const [i, extent] of shape.entries()) {
      const axis = rank - shape.length + i;
      result[axis] = broadcastExtent(ctx, result[axis]!, extent, shapes);
    }
  }
  return result;
}

function broadcastExtent(
  ctx: InferContext,
  left: IndexExpr,
  right: IndexExpr,
  shapes: readonly (readonly IndexExpr[])[],
): IndexExpr {
  const a = simplify(left, ctx.ranges);
  const b = simplify(right, ctx.ranges);
  if (indexEquals(a, b) || constantValue(b) === 1) return a;
  if (constantValue(a) === 1) return b;
  if (compareExtents(ctx, a, b) === "different") {
    refuse(
      ctx,
      "SHP001",
      `shapes ${shapes.map(printShape).join(" and ")} do not broadcast: ${a.key} against ${b.key}`,
      "extents must be equal or one of them 1, counted from the last axis",
    );
  }
  // A symbol that could be 1 in one and larger in the other is taken to be equal in both.
  return unify(ctx, a, b, "operands that broadcast");
}

/** Classes of element types that an operand may be restricted to. */
export type DTypeClass = "float" | "integer" | "numeric" | "bool" | "any" | "index" | "signed";

const classes: Readonly<Record<DTypeClass, (t: DType) => boolean>> = {
  float: isFloatDType,
  integer: isIntegerDType,
  numeric: (t) => t !== "bool",
  signed: (t) => isFloatDType(t) || dtypes[t].kind === "int",
  bool: (t) => t === "bool",
  index: (t) => t === "i32" || isBigDType(t),
  any: () => true,
};

export function checkDType(
  ctx: InferContext,
  type: TensorType,
  allowed: DTypeClass | DType,
  what: string,
): void {
  const fits =
    allowed in classes ? classes[allowed as DTypeClass](type.dtype) : type.dtype === allowed;
  if (!fits) {
    refuse(
      ctx,
      "GRF002",
      `${what} is ${printType(type)}, but must have element type ${allowed}`,
      "insert a cast",
    );
  }
}

/** All operands have one element type, which is returned. */
export function commonDType(ctx: InferContext, inputs: readonly TensorType[]): DType {
  const first = inputs[0]!.dtype;
  if (inputs.some((t) => t.dtype !== first)) {
    const found = inputs.map(printType).join(", ");
    refuse(ctx, "GRF002", `operands mix element types: ${found}`, "cast them to one type");
  }
  return first;
}

export function checkRank(ctx: InferContext, type: TensorType, rank: number, what: string): void {
  if (type.shape.length !== rank) {
    refuse(ctx, "SHP003", `${what} is ${printType(type)}, but must have rank ${rank}`);
  }
}

export function checkMinRank(
  ctx: InferContext,
  type: TensorType,
  rank: number,
  what: string,
): void {
  if (type.shape.length < rank) {
    refuse(ctx, "SHP003", `${what} is ${printType(type)}, but must have rank ${rank} or more`);
  }
}

export function checkAxis(ctx: InferContext, axis: number, rank: number): void {
  if (axis < 0 || axis >= rank) {
    refuse(
      ctx,
      "GRF003",
      `axis ${axis} of a tensor of rank ${rank}`,
      `axes count from 0 to ${rank - 1}; normalise negative ones`,
    );
  }
}

/** Axes are in range, sorted and distinct. */
export function checkAxes(ctx: InferContext, axes: readonly number[], rank: number): void {
  for (const [i, axis] of axes.entries()) {
    checkAxis(ctx, axis, rank);
    if (i > 0 && axis <= axes[i - 1]!) {
      refuse(ctx, "GRF003", `axes [${axes.join(", ")}]`, "sort the axes and name each once");
    }
  }
}

export function checkLength(
  ctx: InferContext,
  list: readonly unknown[],
  length: number,
  what: string,
): void {
  if (list.length !== length) {
    refuse(ctx, "GRF003", `${what} has ${list.length} entries, but must have ${length}`);
  }
}

/** An attribute value has to satisfy a condition that its type does not say. */
export function checkAttr(
  ctx: InferContext,
  holds: boolean,
  message: () => string,
  help?: string,
): void {
  if (!holds) refuse(ctx, "GRF003", message(), help);
}

/** Rejects an extent that is negative for every value of the symbols. */
export function checkExtent(
  ctx: InferContext,
  extent: IndexExpr,
  what: string,
  help = "give the inputs other sizes (--shape), or export the model again: no tensor has a negative extent",
): IndexExpr {
  const simple = simplify(extent, ctx.ranges);
  if (rangeOf(simple, ctx.ranges).max < 0) {
    refuse(ctx, "SHP004", `${what} is ${simple.key}, which is negative`, help);
  }
  return simple;
}

/** A shape without one axis, or with that axis kept as 1. */
export function dropAxes(
  shape: readonly IndexExpr[],
  axes: readonly number[],
  keepDims: boolean,
): readonly IndexExpr[] {
  return shape.flatMap((d, axis) => {
    if (!axes.includes(axis)) return [d];
    return keepDims ? [toIndex(1)] : [];
  });
}

/** A copy of the list with one element replaced. */
export function withAt<T>(list: readonly T[], at: number, value: T): readonly T[] {
  return list.map((x, i) => (i === at ? value : x));
}
