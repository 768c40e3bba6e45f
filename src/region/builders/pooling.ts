/**
 * Nests of pools. Positions outside the operand read the identity of the fold. An average divides by
 * the number of window positions inside (the padded operand or the operand), which is a product of
 * per-axis counts known from the result position.
 */
import type { NodeOf } from "../../graph/graph.ts";
import type { PoolAttrs, ReduceKind } from "../../semantics/core-ops.ts";
import {
  add,
  ceilDiv,
  constant,
  floorDiv,
  type IndexExpr,
  max,
  min,
  mul,
  sub,
} from "../../semantics/index-expr.ts";
import { argMonoid, identityElement } from "../../semantics/monoids.ts";
import {
  apply,
  argument,
  cast,
  indexValue,
  literal,
  type ScalarExpr,
} from "../../semantics/scalar-expr.ts";
import type { NestContext } from "./context.ts";
import { spatialNames, windowGuards, windowPosition } from "./contraction.ts";
import { conditionValue } from "./movement.ts";
import { accumulatorOf, flatIndex, foldInto } from "./reduction.ts";

function poolLoops(context: NestContext, node: NodeOf<"pool"> | NodeOf<"poolIndices">) {
  const { attrs } = node;
  const { shape } = context.type(node.outputs[0]!);
  const spatial = context.type(node.inputs[0]!).shape.slice(2);
  const names = spatialNames(spatial.length);
  const draft = context.draft(node);
  const n = draft.loop("n", shape[0]!);
  const c = draft.loop("c", shape[1]!);
  const at = names.map((name, axis) => draft.loop(`o${name}`, shape[2 + axis]!));
  const taps = names.map((name, axis) => draft.loop(`k${name}`, attrs.window[axis]!, "reduce"));
  const positions = at.map((o, axis) => windowPosition(attrs, axis, o, taps[axis]!));
  const guard = draft.unproved(windowGuards(attrs, positions, spatial));
  return { draft, n, c, at, positions, guard, spatial };
}

export function buildPool(context: NestContext, node: NodeOf<"pool">): void {
  const { attrs } = node;
  const x = node.inputs[0]!;
  const { dtype } = context.type(x);
  const { draft, n, c, at, positions, guard, spatial } = poolLoops(context, node);
  const fold: ReduceKind = attrs.kind === "max" ? "max" : "sum";
  const accumulator = fold === "sum" ? accumulatorOf(dtype) : dtype;
  const fill = attrs.kind === "max" ? identityElement("max", dtype) : 0;
  const element = cast(draft.read(x, [n, c, ...positions], guard, fill), accumulator, false);
  const write = { tensor: context.name(node.outputs[0]!), index: [n, c, ...at] };
  const reduction = foldInto(fold, accumulator, dtype);
  const total = argument(0, accumulator);
  const finished = (e: ScalarExpr) => ({ ...reduction, finish: [cast(e, dtype, false)] });
  if (attrs.kind === "lp") {
    const power = (e: ScalarExpr, by: number) => apply("pow", e, literal(by, accumulator));
    const body = power(apply("abs", element), attrs.exponent);
    draft.finishStatement([body], [write], finished(power(total, 1 / attrs.exponent)));
  } else if (attrs.kind === "average") {
    const divisor = indexValue(windowCount(attrs, at, spatial), accumulator);
    draft.finishStatement([element], [write], finished(apply("div", total, divisor)));
  } else draft.finishStatement([element], [write], reduction);
}

/** Number of window positions that an average divides by. */
function windowCount(
  attrs: PoolAttrs,
  at: readonly IndexExpr[],
  spatial: readonly IndexExpr[],
): IndexExpr {
  return mul(
    ...at.map((o, axis) => {
      const window = attrs.window[axis]!;
      const low = attrs.padLow[axis]!;
      const high = attrs.padHigh[axis]!;
      const whole = attrs.countPadding || (low <= 0 && high <= 0);
      if (whole && !attrs.ceil) return constant(window);
      const start = sub(mul(o, attrs.strides[axis]!), low);
      const from = attrs.countPadding ? -low : 0;
      const to = add(spatial[axis]!, attrs.countPadding ? high : 0);
      return tapsWithin({ start, window, dilation: attrs.dilations[axis]!, from, to });
    }),
  );
}

interface TapSpan {
  readonly start: IndexExpr;
  readonly window: number;
  readonly dilation: number;
  readonly from: number;
  readonly to: IndexExpr;
}

/** Number of t in 0 <= t < window with from <= start + t * dilation < to. */
function tapsWithin({ start, window, dilation, from, to }: TapSpan): IndexExpr {
  const first = max(0, ceilDiv(sub(from, start), dilation));
  const end = min(window, add(floorDiv(sub(sub(to, 1), start), dilation), 1));
  return sub(end, first);
}

/** (value, position inside the operand's plane); the first maximum in row-major order wins. */
export function buildPoolIndices(context: NestContext, node: NodeOf<"poolIndices">): void {
  const x = node.inputs[0]!;
  const { dtype, shape } = context.type(x);
  const { draft, n, c, at, positions, guard, spatial } = poolLoops(context, node);
  const monoid = argMonoid({ kind: "max", dtype, indexDType: "i64", tie: "first" });
  const value = draft.read(x, [n, c, ...positions], guard, identityElement("max", dtype));
  const position = indexValue(flatIndex(positions, spatial), "i64");
  const inside = guard.map(conditionValue).reduce((a, b) => apply("and", a, b), literal(1, "bool"));
  // Outside the operand the position loses every tie, like the identity.
  const index =
    guard.length === 0 ? position : apply("select", inside, position, monoid.identity[1]!);
  const plane = mul(flatIndex([n, c], shape), ...spatial);
  const within = node.attrs.columnMajor
    ? columnMajor(argument(1, "i64"), spatial)
    : argument(1, "i64");
  const write = { tensor: context.name(node.outputs[0]!), index: [n, c, ...at] };
  const finish = [apply("add", indexValue(plane, "i64"), within)];
  draft.finishStatement([value, index], [write], { monoid, finish });
}

/** A row-major position respelled with the first axis running fastest. */
function columnMajor(position: ScalarExpr, spatial: readonly IndexExpr[]): ScalarExpr {
  const index = (e: IndexExpr) => indexValue(e, "i64");
  return spatial
    .map((extent, axis) => {
      const inner = mul(1, ...spatial.slice(axis + 1));
      const outer = mul(1, ...spatial.slice(0, axis));
      const at = apply("mod", apply("div", position, index(inner)), index(extent));
      return apply("mul", at, index(outer));
    })
    .reduce((a, b) => apply("add", a, b));
}
