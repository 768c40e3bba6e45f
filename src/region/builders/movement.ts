/**
 * Nests of the ops that only move data. What keeps the row-major order of the elements is a view;
 * everything else is one statement that reads at a re-indexed position (concat: one per operand).
 */
import type { NodeOf } from "../../graph/graph.ts";
import { type Condition, inRange } from "../../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  indexEquals,
  max,
  min,
  mod,
  mul,
  negate,
  sub,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, provesAtMost } from "../../semantics/index-range.ts";
import { apply, indexValue, literal, type ScalarExpr } from "../../semantics/scalar-expr.ts";
import type { NestContext, NodeHead, StatementDraft } from "./context.ts";

function isUnit(extent: IndexExpr): boolean {
  return constantValue(extent) === 1;
}

/** One statement that writes `value` at each index of the node's result. */
function buildMap(
  context: NestContext,
  node: NodeHead,
  value: (draft: StatementDraft, at: readonly IndexExpr[]) => ScalarExpr,
): void {
  const output = node.outputs[0]!;
  const draft = context.draft(node);
  const at = draft.loops("i", context.type(output).shape);
  draft.finishStatement([value(draft, at)], [{ tensor: context.name(output), index: at }]);
}

export function buildIota(context: NestContext, node: NodeOf<"iota">): void {
  const { axis, dtype } = node.attrs;
  buildMap(context, node, (_, at) => indexValue(at[axis]!, dtype));
}

export function buildDimSize(context: NestContext, node: NodeOf<"dimSize">): void {
  const extent = context.type(node.inputs[0]!).shape[node.attrs.axis]!;
  buildMap(context, node, () => indexValue(extent, "i64"));
}

export function buildReshape(context: NestContext, node: NodeOf<"reshape">): void {
  context.alias(node, node.inputs[0]!);
}

export function buildDiagonal(context: NestContext, node: NodeOf<"diagonal">): void {
  const x = node.inputs[0]!;
  const { axis, other } = node.attrs;
  const kept = context.type(x).shape.flatMap((_, i) => (i === other ? [] : [i]));
  buildMap(context, node, (draft, at) => {
    const index = context.type(x).shape.map((_, i) => at[kept.indexOf(i === other ? axis : i)]!);
    return draft.read(x, index);
  });
}

export function buildTranspose(context: NestContext, node: NodeOf<"transpose">): void {
  const x = node.inputs[0]!;
  const { shape } = context.type(x);
  const { permutation } = node.attrs;
  const moved = permutation.filter((axis) => !isUnit(shape[axis]!));
  if (moved.every((axis, i) => i === 0 || moved[i - 1]! < axis)) {
    context.alias(node, x);
    return;
  }
  buildMap(context, node, (draft, at) => {
    const index = shape.map((_, axis) => at[permutation.indexOf(axis)]!);
    return draft.read(x, index);
  });
}

export function buildBroadcast(context: NestContext, node: NodeOf<"broadcast">): void {
  const x = node.inputs[0]!;
  const from = context.type(x).shape.filter((d) => !isUnit(d));
  const to = node.attrs.shape.filter((d) => !isUnit(d));
  if (from.length === to.length && from.every((d, i) => indexEquals(d, to[i]!))) {
    context.alias(node, x);
    return;
  }
  buildMap(context, node, (draft, at) => draft.readBroadcast(x, at));
}

export function buildSlice(context: NestContext, node: NodeOf<"slice">): void {
  const x = node.inputs[0]!;
  const { shape } = context.type(x);
  const { starts, steps, sizes } = node.attrs;
  if (shape.every((d, i) => indexEquals(d, sizes[i]!))) {
    context.alias(node, x);
    return;
  }
  buildMap(context, node, (draft, at) =>
    draft.read(
      x,
      at.map((i, axis) => add(starts[axis]!, mul(i, steps[axis]!))),
    ),
  );
}

export function buildReverse(context: NestContext, node: NodeOf<"reverse">): void {
  const x = node.inputs[0]!;
  const { shape } = context.type(x);
  buildMap(context, node, (draft, at) =>
    draft.read(
      x,
      at.map((i, axis) => (node.attrs.axes.includes(axis) ? sub(sub(shape[axis]!, 1), i) : i)),
    ),
  );
}

export function buildConcat(context: NestContext, node: NodeOf<"concat">): void {
  const { axis } = node.attrs;
  const tensor = context.name(node.outputs[0]!);
  let offset: IndexExpr = constant(0);
  for (const x of node.inputs) {
    const { shape } = context.type(x);
    const start = offset;
    offset = add(offset, shape[axis]!);
    if (shape.some((d) => constantValue(d) === 0)) continue;
    const draft = context.draft(node);
    const at = draft.loops("i", shape);
    const index = at.map((i, a) => (a === axis ? add(i, start) : i));
    draft.finishStatement([draft.read(x, at)], [{ tensor, index }]);
  }
}

export function buildPad(context: NestContext, node: NodeOf<"pad">): void {
  const [x, fill] = node.inputs;
  const { shape } = context.type(x!);
  const { low, mode } = node.attrs;
  buildMap(context, node, (draft, at) => {
    const index = at.map((i, axis) => sub(i, low[axis]!));
    if (mode === "constant") return readPadded(draft, context, { x: x!, fill, index });
    const source = index.map((i, axis) => paddedSource(node, axis, i, context));
    return draft.read(
      x!,
      source.map((s, axis) => (isUnit(shape[axis]!) ? constant(0) : s)),
    );
  });
}

function readPadded(
  draft: StatementDraft,
  context: NestContext,
  { x, fill, index }: { x: number; fill: number | undefined; index: readonly IndexExpr[] },
): ScalarExpr {
  const guard = index.flatMap((i, axis) => inRange(i, context.type(x).shape[axis]!));
  const known = fill === undefined ? 0 : context.splatOf(fill);
  if (known !== undefined) return draft.read(x, index, guard, known);
  const inside = draft.read(x, index, guard, 0);
  const outside = draft.readBroadcast(fill!, []);
  const holds = draft.unproved(guard).map(conditionValue);
  if (holds.length === 0) return inside;
  return apply(
    "select",
    holds.reduce((a, b) => apply("and", a, b)),
    inside,
    outside,
  );
}

/** A condition on the iteration as a bool. */
export function conditionValue({ kind, expr }: Condition): ScalarExpr {
  const value = indexValue(expr, "i64");
  const zero = literal(0n, "i64");
  return kind === "zero" ? apply("equal", value, zero) : apply("lessEqual", zero, value);
}

/** Where a position outside an axis reads from. */
function paddedSource(
  node: NodeOf<"pad">,
  axis: number,
  at: IndexExpr,
  context: NestContext,
): IndexExpr {
  const low = node.attrs.low[axis]!;
  const high = node.attrs.high[axis]!;
  if (constantValue(low) === 0 && constantValue(high) === 0) return at;
  const extent = context.type(node.inputs[0]!).shape[axis]!;
  const last = sub(extent, 1);
  switch (node.attrs.mode) {
    case "edge":
      return min(max(at, 0), last);
    case "wrap":
      return mod(at, extent);
    default:
      return reflected(at, last, { low, high, ranges: context.symbolRanges });
  }
}

interface Amounts {
  readonly low: IndexExpr;
  readonly high: IndexExpr;
  readonly ranges: IndexRanges;
}

/** |at| folded at `last`; with amounts that may exceed the extent by the period of the reflection. */
function reflected(at: IndexExpr, last: IndexExpr, { low, high, ranges }: Amounts): IndexExpr {
  if (provesAtMost(low, last, ranges) && provesAtMost(high, last, ranges)) {
    const folded = max(at, negate(at));
    return sub(last, max(sub(last, folded), sub(folded, last)));
  }
  const period = max(1, mul(2, last));
  const folded = mod(at, period);
  return min(folded, sub(period, folded));
}
