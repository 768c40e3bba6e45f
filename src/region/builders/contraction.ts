/**
 * Nests of contract and convolution: a sum of products. A label is a loop; the loops of a convolution
 * are [batch, group, channel of the group, spatial…] and reduce [input channel, window…], where axes
 * of extent 1 (one group, depthwise, pointwise windows) leave no loop behind.
 */
import type { NodeOf, ValueId } from "../../graph/graph.ts";
import type { Condition } from "../../semantics/condition.ts";
import { inRange } from "../../semantics/condition.ts";
import type { WindowAttrs } from "../../semantics/core-ops.ts";
import type { DType } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mul,
  sub,
} from "../../semantics/index-expr.ts";
import { apply, cast, type ScalarExpr } from "../../semantics/scalar-expr.ts";
import { invariant } from "../../support/invariant.ts";
import type { NestContext } from "./context.ts";
import { accumulatorOf, foldInto } from "./reduction.ts";

export function product(a: ScalarExpr, b: ScalarExpr, accumulator: DType): ScalarExpr {
  return apply("mul", cast(a, accumulator, false), cast(b, accumulator, false));
}

export function buildContract(context: NestContext, node: NodeOf<"contract">): void {
  const [lhs, rhs] = node.inputs as [ValueId, ValueId];
  const { output } = node.attrs;
  const result = node.outputs[0]!;
  const extents = labelExtents(context, node);
  const draft = context.draft(node);
  const loops = new Map<string, IndexExpr>();
  const labels = [...output, ...[...extents.keys()].filter((l) => !output.includes(l))];
  for (const [n, label] of labels.entries()) {
    const name = /^[A-Za-z_]\w*$/.test(label) ? label : `l${n}_`;
    loops.set(label, draft.loop(name, extents.get(label)!, n < output.length ? "space" : "reduce"));
  }
  const at = (value: ValueId, of: readonly string[]) =>
    context
      .type(value)
      .shape.map((d, i) => (constantValue(d) === 1 ? constant(0) : loops.get(of[i]!)!));
  const { dtype } = context.type(result);
  const accumulator = accumulatorOf(dtype);
  const left = draft.read(lhs, at(lhs, node.attrs.lhs));
  const right = draft.read(rhs, at(rhs, node.attrs.rhs));
  const write = { tensor: context.name(result), index: at(result, output) };
  const fold = foldInto("sum", accumulator, dtype);
  draft.finishStatement([product(left, right, accumulator)], [write], fold);
}

/** The extent of each label; where operands disagree the one that is not 1. */
function labelExtents(context: NestContext, node: NodeOf<"contract">): Map<string, IndexExpr> {
  const extents = new Map<string, IndexExpr>();
  const { lhs, rhs, output } = node.attrs;
  const operands = [
    [lhs, node.inputs[0]!],
    [rhs, node.inputs[1]!],
    [output, node.outputs[0]!],
  ] as const;
  for (const [labels, value] of operands) {
    for (const [axis, label] of labels.entries()) {
      const extent = context.type(value).shape[axis]!;
      if (constantValue(extents.get(label) ?? 1) === 1) extents.set(label, extent);
    }
  }
  return extents;
}

/** Names of spatial axes: w; h, w; d, h, w. */
export function spatialNames(rank: number): readonly string[] {
  const usual = ["d", "h", "w"];
  return rank <= 3 ? usual.slice(3 - rank) : Array.from({ length: rank }, (_, i) => `s${i}_`);
}

/** Operand position of window position `tap` of the result position `at` along spatial axis `axis`. */
export function windowPosition(
  attrs: WindowAttrs,
  axis: number,
  at: IndexExpr,
  tap: IndexExpr,
): IndexExpr {
  const start = sub(mul(at, attrs.strides[axis]!), attrs.padLow[axis]!);
  return add(start, mul(tap, attrs.dilations[axis]!));
}

/**
 * Guards that keep a window inside its operand. Without padding at an end, the result's extent (a
 * division rounded down) already keeps it inside there.
 */
export function windowGuards(
  attrs: WindowAttrs & { readonly ceil?: boolean },
  positions: readonly IndexExpr[],
  spatial: readonly IndexExpr[],
): readonly Condition[] {
  return positions.flatMap((position, axis) => {
    const [low, high] = inRange(position, spatial[axis]!) as [Condition, Condition];
    const below = attrs.padLow[axis]! > 0 ? [low] : [];
    return attrs.padHigh[axis]! > 0 || attrs.ceil ? [...below, high] : below;
  });
}

export function buildConvolution(context: NestContext, node: NodeOf<"convolution">): void {
  const [x, w] = node.inputs as [ValueId, ValueId];
  const result = node.outputs[0]!;
  const { attrs } = node;
  const { shape, dtype } = context.type(result);
  const weights = context.type(w).shape;
  const outputs = floorDiv(weights[0]!, attrs.groups);
  invariant(constantValue(weights[1]!) !== undefined, () => "symbolic input channels");
  const names = spatialNames(shape.length - 2);
  const draft = context.draft(node);
  const n = draft.loop("n", shape[0]!);
  const g = draft.loop("g", attrs.groups);
  const oc = draft.loop("oc", outputs);
  const at = names.map((name, axis) => draft.loop(`o${name}`, shape[2 + axis]!));
  const ic = draft.loop("ic", weights[1]!, "reduce");
  const taps = names.map((name, axis) => draft.loop(`k${name}`, weights[2 + axis]!, "reduce"));
  const positions = at.map((o, axis) => windowPosition(attrs, axis, o, taps[axis]!));
  const guard = windowGuards(attrs, positions, context.type(x).shape.slice(2));
  const channel = add(mul(g, weights[1]!), ic);
  const output = add(mul(g, outputs), oc);
  const accumulator = accumulatorOf(dtype);
  const value = product(
    draft.read(x, [n, channel, ...positions], guard),
    draft.read(w, [output, ic, ...taps]),
    accumulator,
  );
  const write = { tensor: context.name(result), index: [n, output, ...at] };
  draft.finishStatement([value], [write], foldInto("sum", accumulator, dtype));
}
