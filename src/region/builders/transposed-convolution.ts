/**
 * Nests of transposedConvolution in gather form: result position o sums the taps k for which
 * (o + padLow - k * dilation) is a multiple of the stride. No division remains in an access:
 *
 * - where the stride divides the window, the result and padLow, and the dilation is 1, o = stride * q + r
 *   and k = stride * t + r with operand position q + padLow / stride - t: one statement with the loops
 *   q, r and t;
 * - otherwise one statement per phase o mod stride, whose taps are an arithmetic progression.
 */
import type { NodeOf, ValueId } from "../../graph/graph.ts";
import { inRange } from "../../semantics/condition.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  type IndexLike,
  mul,
  positiveMod,
  sub,
} from "../../semantics/index-expr.ts";
import { literalOf } from "../statement.ts";
import type { NestContext, StatementDraft } from "./context.ts";
import { product, spatialNames } from "./contraction.ts";
import { accumulatorOf, foldInto } from "./reduction.ts";

/** How one spatial axis of one statement runs. */
interface AxisPlan {
  /** Adds the space loops; gives the result position. */
  readonly space: (draft: StatementDraft) => IndexExpr;
  /** Adds the reduce loop; gives operand and window position. */
  readonly taps: (draft: StatementDraft) => { from: IndexExpr; tap: IndexExpr };
  /** Whether any tap reaches these result positions. */
  readonly reached: boolean;
}

interface AxisGeometry {
  readonly name: string;
  readonly stride: number;
  readonly dilation: number;
  readonly padLow: number;
  readonly window: number;
  readonly result: IndexExpr;
}

function splitAxis({ name, stride, padLow, window, result }: AxisGeometry): AxisPlan {
  let q: IndexExpr = constant(0);
  let r: IndexExpr = constant(0);
  return {
    reached: true,
    space: (draft) => {
      q = draft.loop(`q${name}`, floorDiv(result, stride));
      r = draft.loop(`r${name}`, stride);
      return add(mul(q, stride), r);
    },
    taps: (draft) => {
      const t = draft.loop(`t${name}`, window / stride, "reduce");
      return { from: sub(add(q, padLow / stride), t), tap: add(mul(t, stride), r) };
    },
  };
}

function dividesExactly(extent: IndexExpr, by: number): boolean {
  return mul(floorDiv(extent, by), by).key === extent.key;
}

/** The result positions o = stride * q + phase. */
function phaseOfAxis(geometry: AxisGeometry, phase: number): AxisPlan {
  const { name, stride, dilation, padLow, window, result } = geometry;
  const matching = Array.from({ length: window }, (_, k) => k).filter(
    (k) => positiveMod(phase + padLow - k * dilation, stride) === 0,
  );
  const first = matching[0] ?? 0;
  const step = (matching[1] ?? first) - first;
  let q: IndexExpr = constant(0);
  return {
    reached: matching.length > 0,
    space: (draft) => {
      const extent: IndexLike = ceilDiv(sub(result, phase), stride);
      q = draft.loop(`q${name}`, extent);
      return add(mul(q, stride), phase);
    },
    taps: (draft) => {
      const t = draft.loop(`t${name}`, matching.length, "reduce");
      const offset = (phase + padLow - first * dilation) / stride;
      const from = sub(add(q, offset), mul(t, (step * dilation) / stride));
      return { from, tap: add(mul(t, step), first) };
    },
  };
}

function axisPlans(geometry: AxisGeometry): readonly AxisPlan[] {
  const { stride, dilation, window, padLow, result } = geometry;
  const whole = window % stride === 0 && padLow % stride === 0 && dividesExactly(result, stride);
  if (dilation === 1 && whole) return [splitAxis(geometry)];
  return Array.from({ length: stride }, (_, phase) => phaseOfAxis(geometry, phase));
}

export function buildTransposedConvolution(
  context: NestContext,
  node: NodeOf<"transposedConvolution">,
): void {
  const { attrs } = node;
  const { shape } = context.type(node.outputs[0]!);
  const window = context.type(node.inputs[1]!).shape.slice(2);
  const plans = spatialNames(window.length).map((name, axis) =>
    axisPlans({
      name,
      stride: attrs.strides[axis]!,
      dilation: attrs.dilations[axis]!,
      padLow: attrs.padLow[axis]!,
      window: constantValue(window[axis]!)!,
      result: shape[2 + axis]!,
    }),
  );
  let choices: readonly (readonly AxisPlan[])[] = [[]];
  for (const axis of plans) choices = choices.flatMap((c) => axis.map((plan) => [...c, plan]));
  for (const choice of choices) buildPhase(context, node, choice);
}

function buildPhase(
  context: NestContext,
  node: NodeOf<"transposedConvolution">,
  plans: readonly AxisPlan[],
): void {
  const [x, w] = node.inputs as [ValueId, ValueId];
  const { groups } = node.attrs;
  const operand = context.type(x).shape;
  const weights = context.type(w).shape;
  const { shape, dtype } = context.type(node.outputs[0]!);
  const draft = context.draft(node);
  const n = draft.loop("n", shape[0]!);
  const g = draft.loop("g", groups);
  const oc = draft.loop("oc", weights[1]!);
  const spaces = plans.map((plan) => plan.space(draft));
  const output = add(mul(g, weights[1]!), oc);
  const index = [n, output, ...spaces];
  const write = { tensor: context.name(node.outputs[0]!), index };
  if (!plans.every((plan) => plan.reached)) {
    draft.finishStatement([literalOf(dtype, 0)], [write]);
    return;
  }
  const channels = floorDiv(operand[1]!, groups);
  const channel = add(mul(g, channels), draft.loop("ic", channels, "reduce"));
  const taps = plans.map((plan) => plan.taps(draft));
  const guard = taps.flatMap(({ from }, axis) => inRange(from, operand[2 + axis]!));
  const accumulator = accumulatorOf(dtype);
  const value = product(
    draft.read(x, [n, channel, ...taps.map((t) => t.from)], guard),
    draft.read(w, [channel, oc, ...taps.map((t) => t.tap)]),
    accumulator,
  );
  draft.finishStatement([value], [write], foldInto("sum", accumulator, dtype));
}
