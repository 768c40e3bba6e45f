/**
 * Nests of reductions, argument reductions and cumulative ops. Folds of 16-bit and narrower floats run in
 * f32: sums and products to be right, extremes, which are exact either way, to be cheap. A cumulative op is
 * a scan loop that reads its own result one step back.
 */
import type { NodeOf } from "../../graph/graph.ts";
import type { ReduceKind } from "../../semantics/core-ops.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  sub,
} from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { argMonoid, identityElement, simpleMonoid } from "../../semantics/monoids.ts";
import { argument, bindArguments, cast, indexValue } from "../../semantics/scalar-expr.ts";
import type { LoopKind } from "../nest.ts";
import { literalOf } from "../statement.ts";
import type { DraftReduction, NestContext, StatementDraft } from "./context.ts";

/** The type in which sums of `dtype` are folded. */
export function accumulatorOf(dtype: DType): DType {
  return isFloatDType(dtype) && dtypes[dtype].bits < 32 ? "f32" : dtype;
}

/** The type in which elements are compared: a whole word at least, which has every value in the same order. */
export function comparedAs(dtype: DType): DType {
  const { bits, kind } = dtypes[dtype];
  const isShort = bits < 32 && (kind === "int" || kind === "uint" || kind === "bool");
  return isShort ? "i32" : accumulatorOf(dtype);
}

/** A simple fold whose result is converted to `dtype`. */
export function foldInto(kind: ReduceKind, accumulator: DType, dtype: DType): DraftReduction {
  const monoid = simpleMonoid(kind, accumulator);
  if (accumulator === dtype) return { monoid };
  return { monoid, finish: [cast(argument(0, accumulator), dtype, false)] };
}

/** Loops over every axis of an operand and the index of the result that each iteration folds into. */
export function reduceLoops(
  draft: StatementDraft,
  shape: readonly IndexExpr[],
  { axes, keepDims }: { readonly axes: readonly number[]; readonly keepDims: boolean },
): { readonly at: readonly IndexExpr[]; readonly into: readonly IndexExpr[] } {
  const kindOf = (axis: number): LoopKind => (axes.includes(axis) ? "reduce" : "space");
  const at = new Array<IndexExpr>(shape.length);
  for (const kind of ["space", "reduce"] as const) {
    for (const [axis, extent] of shape.entries()) {
      if (kindOf(axis) === kind) at[axis] = draft.loop(`i${axis}`, extent, kind);
    }
  }
  const into = at.flatMap((i, axis) =>
    kindOf(axis) === "space" ? [i] : keepDims ? [constant(0)] : [],
  );
  return { at, into };
}

export function buildReduce(context: NestContext, node: NodeOf<"reduce">): void {
  const x = node.inputs[0]!;
  const { dtype, shape } = context.type(x);
  const { kind } = node.attrs;
  const accumulator = accumulatorOf(dtype);
  const draft = context.draft(node);
  const { at, into } = reduceLoops(draft, shape, node.attrs);
  const write = { tensor: context.name(node.outputs[0]!), index: into };
  const body = cast(draft.read(x, at), accumulator, false);
  draft.finishStatement([body], [write], foldInto(kind, accumulator, dtype));
}

export function buildArgReduce(context: NestContext, node: NodeOf<"argReduce">): void {
  const x = node.inputs[0]!;
  const { dtype, shape } = context.type(x);
  const { kind, axis, keepDims, selectLast } = node.attrs;
  const indexDType = rangeOf(shape[axis]!, context.symbolRanges).max <= 2 ** 31 ? "i32" : "i64";
  const compared = comparedAs(dtype);
  const draft = context.draft(node);
  const { at, into } = reduceLoops(draft, shape, { axes: [axis], keepDims });
  const tie = selectLast ? "last" : "first";
  const monoid = argMonoid({ kind, dtype: compared, indexDType, tie });
  const body = [cast(draft.read(x, at), compared, false), indexValue(at[axis]!, indexDType)];
  const write = { tensor: context.name(node.outputs[0]!), index: into };
  const finish = [cast(argument(1, indexDType), "i64", false)];
  draft.finishStatement(body, [write], { monoid, finish });
}

export function buildCumulative(context: NestContext, node: NodeOf<"cumulative">): void {
  const x = node.inputs[0]!;
  const tensor = context.name(node.outputs[0]!);
  const { dtype, shape } = context.type(x);
  const { kind, axis, exclusive, reverse } = node.attrs;
  const draft = context.draft(node);
  const steps = shape.map((extent, a) =>
    draft.loop(`i${a}`, extent, a === axis ? "scan" : "space"),
  );
  const along = (step: IndexExpr): IndexExpr[] => {
    const position = reverse ? sub(sub(shape[axis]!, 1), step) : step;
    return steps.map((i, a) => (a === axis ? position : i));
  };
  const step = steps[axis]!;
  if (constantValue(shape[axis]!) === 1) {
    const only = exclusive ? literalOf(dtype, identityElement(kind, dtype)) : draft.read(x, steps);
    draft.finishStatement([only], [{ tensor, index: steps }]);
    return;
  }
  const previous = along(add(step, -1));
  const guard = [{ kind: "nonNegative" as const, expr: add(step, -1) }];
  const identity = identityElement(kind, dtype);
  const before = draft.readTensor(tensor, previous, guard, identity);
  const element = exclusive ? draft.read(x, previous, guard, identity) : draft.read(x, along(step));
  const { combine } = simpleMonoid(kind, dtype);
  const body = combine.map((e) => bindArguments(e, [before, element]));
  draft.finishStatement(body, [{ tensor, index: along(step) }]);
}

/** The row-major position of an index. */
export function flatIndex(at: readonly IndexExpr[], shape: readonly IndexExpr[]): IndexExpr {
  return at.reduce((flat, i, axis) => add(mul(flat, shape[axis]!), i), constant(0));
}
