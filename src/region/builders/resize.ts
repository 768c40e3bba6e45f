/**
 * Nests of resize. Nearest with an integer scale or its inverse is a re-indexing whose range is
 * proved by exact integer arithmetic. Everything else first computes, per axis, small tables over the
 * result positions (source position and weight of each filter tap, as scalar expressions in f64) and
 * then sums the weighted taps through those positions; the formulas are those of ONNX Resize. Antialiased, the
 * filter is as long as the scale is small, which has to be known.
 */
import type { NodeOf } from "../../graph/graph.ts";
import type { ResizeAttrs } from "../../semantics/core-ops.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  indexEquals,
  max,
  min,
  mul,
  sub,
} from "../../semantics/index-expr.ts";
import {
  apply,
  argument,
  cast,
  indexValue,
  literal,
  type ScalarExpr,
  type ScalarOp,
} from "../../semantics/scalar-expr.ts";
import { reject } from "../../support/diagnostic.ts";
import { literalOf } from "../statement.ts";
import type { NestContext } from "./context.ts";
import { accumulatorOf, foldInto } from "./reduction.ts";
import { type Axis, buildPasses, type Tables } from "./resize-passes.ts";

export function buildResize(context: NestContext, node: NodeOf<"resize">): void {
  const { attrs } = node;
  const { shape } = context.type(node.inputs[0]!);
  const axes = attrs.axes.map((axis, i) => ({
    axis,
    from: shape[axis]!,
    to: attrs.sizes[i]!,
    scale: attrs.scales?.[i],
    start: attrs.regionStart?.[i] ?? 0,
    end: attrs.regionEnd?.[i] ?? 1,
  }));
  const exact = axes.map((axis) => exactPositions(attrs, axis));
  if (exact.every((e) => e !== undefined)) buildNearest(context, node, axes, exact);
  else buildSampled(context, node, axes);
}

type Position = (at: IndexExpr) => IndexExpr;

function buildNearest(
  context: NestContext,
  node: NodeOf<"resize">,
  axes: readonly Axis[],
  positions: readonly Position[],
): void {
  const draft = context.draft(node);
  const at = draft.loops("i", context.type(node.outputs[0]!).shape);
  const index = [...at];
  for (const [i, { axis }] of axes.entries()) index[axis] = positions[i]!(at[axis]!);
  const write = { tensor: context.name(node.outputs[0]!), index: at };
  draft.finishStatement([draft.read(node.inputs[0]!, index)], [write]);
}

/** up / down with one of them 1, when that is the scale in exact arithmetic. */
function integerScale({ from, to, scale }: Axis): { up: number; down: number } | undefined {
  if (scale !== undefined) {
    if (Number.isInteger(scale) && scale > 0) return { up: scale, down: 1 };
    const inverse = Math.round(1 / scale);
    return inverse > 0 && 1 / inverse === scale && Number.isInteger(Math.log2(inverse))
      ? { up: 1, down: inverse }
      : undefined;
  }
  const up = constantValue(floorDiv(to, from));
  if (up !== undefined && up > 0 && indexEquals(mul(from, up), to)) return { up, down: 1 };
  return undefined;
}

/** The source position of nearest sampling, or undefined where exact arithmetic may differ. */
function exactPositions(attrs: ResizeAttrs, axis: Axis): Position | undefined {
  const scale = integerScale(axis);
  const { coordinates, nearest } = attrs;
  if (attrs.mode !== "nearest" || !scale) return undefined;
  const half = coordinates === "half_pixel";
  if (!half && coordinates !== "asymmetric") return undefined;
  const { up, down } = scale;
  // x = at * down / up, or (at + 1/2) * down / up - 1/2 = ((2 at + 1) down - up) / (2 up)
  const numerator = (at: IndexExpr): IndexExpr =>
    half ? sub(mul(add(mul(at, 2), 1), down), up) : mul(at, 2 * down);
  const denominator = 2 * up;
  const rounded = {
    floor: (at: IndexExpr) => floorDiv(numerator(at), denominator),
    ceil: (at: IndexExpr) => ceilDiv(numerator(at), denominator),
    round_prefer_floor: (at: IndexExpr) => ceilDiv(sub(numerator(at), up), denominator),
    round_prefer_ceil: (at: IndexExpr) => floorDiv(add(numerator(at), up), denominator),
  }[nearest];
  const whole = down === 1 && indexEquals(mul(axis.from, up), axis.to);
  const rounds = nearest.startsWith("round");
  // Scaling up by a whole number: these roundings cannot leave the operand.
  if (whole && (half ? rounds : nearest === "floor")) return rounded;
  return (at) => min(max(rounded(at), 0), sub(axis.from, 1));
}

const f64 = (value: number): ScalarExpr => literal(value, "f64");
const op = (name: ScalarOp, ...operands: readonly ScalarExpr[]): ScalarExpr =>
  apply(name, ...operands);

/** The source coordinate of result position `at`, in f64. */
function coordinate(attrs: ResizeAttrs, axis: Axis, at: ScalarExpr): ScalarExpr {
  const from = indexValue(axis.from, "f64");
  const to = indexValue(axis.to, "f64");
  const scale = axis.scale === undefined ? op("div", to, from) : f64(axis.scale);
  const extent = op("mul", scale, from);
  const last = op("sub", from, f64(1));
  const span = op("sub", extent, f64(1));
  const isOne = op("equal", extent, f64(1));
  const half = op("sub", op("div", op("add", at, f64(0.5)), scale), f64(0.5));
  switch (attrs.coordinates) {
    case "align_corners":
      return op("select", isOne, f64(0), op("div", op("mul", at, last), span));
    case "asymmetric":
      return op("div", at, scale);
    case "pytorch_half_pixel":
      return op("select", isOne, f64(-0.5), half);
    case "half_pixel":
      return half;
    case "half_pixel_symmetric": {
      const shift = op("sub", f64(1), op("div", to, extent));
      return op("add", op("mul", op("div", from, f64(2)), shift), half);
    }
    case "tf_crop_and_resize": {
      const one = op("div", op("mul", f64(axis.start + axis.end), last), f64(2));
      const width = op("mul", op("mul", at, f64(axis.end - axis.start)), last);
      return op(
        "select",
        isOne,
        one,
        op("add", op("mul", f64(axis.start), last), op("div", width, span)),
      );
    }
  }
}

/** Unclamped source position and weight of each filter tap at a coordinate. */
function filterTaps(attrs: ResizeAttrs, x: ScalarExpr): { at: ScalarExpr; weight: ScalarExpr }[] {
  const floor = op("floor", x);
  if (attrs.mode === "nearest") return [{ at: nearestPosition(attrs, x), weight: f64(1) }];
  const offsets = attrs.mode === "linear" ? [0, 1] : [-1, 0, 1, 2];
  return offsets.map((offset) => {
    const at = op("add", floor, f64(offset));
    const distance = op("abs", op("sub", at, x));
    const weight =
      attrs.mode === "linear"
        ? op("sub", f64(1), distance)
        : cubicWeight(distance, attrs.cubicCoefficient, offset);
    return { at, weight };
  });
}

function nearestPosition({ nearest }: ResizeAttrs, x: ScalarExpr): ScalarExpr {
  switch (nearest) {
    case "floor":
    case "ceil":
      return op(nearest, x);
    case "round_prefer_floor":
      return op("ceil", op("sub", x, f64(0.5)));
    case "round_prefer_ceil":
      return op("floor", op("add", x, f64(0.5)));
  }
}

/** Keys' cubic convolution filter: offsets 0 and 1 are within distance 1, -1 and 2 beyond. */
function cubicWeight(d: ScalarExpr, a: number, offset: number): ScalarExpr {
  const horner = (coefficients: readonly number[]): ScalarExpr =>
    coefficients
      .slice(1)
      .reduce((sum, c) => op("add", op("mul", sum, d), f64(c)), f64(coefficients[0]!));
  const near = offset === 0 || offset === 1;
  return horner(near ? [a + 2, -(a + 3), 0, 1] : [a, -5 * a, 8 * a, -4 * a]);
}

function tablesOf(context: NestContext, node: NodeOf<"resize">, axis: Axis): Tables {
  const { antialias, mode } = node.attrs;
  if (!antialias || mode === "nearest") return buildTables(context, node, axis);
  const [from, to] = [constantValue(axis.from), constantValue(axis.to)];
  const scale = axis.scale ?? (from === undefined || to === undefined ? undefined : to / from);
  if (scale === undefined) {
    reject(
      "REG001",
      "resize with antialias to open sizes has no nest: its filter's length is open",
      {
        at: node.origin ?? context.name(node.outputs[0]!),
        help: "give the sizes with --shape, or export the model with scales or with antialias = 0",
      },
    );
  }
  if (scale >= 1) return buildTables(context, node, axis);
  return buildStretched(context, node, { axis, scale });
}

/**
 * Tables of a filter that is stretched over the source: as many taps as the stretched filter covers, those beyond
 * it weigh nothing, and all weights of a result are divided by their sum.
 */
function buildStretched(
  context: NestContext,
  node: NodeOf<"resize">,
  { axis, scale }: { readonly axis: Axis; readonly scale: number },
): Tables {
  const { attrs } = node;
  const base = `${context.name(node.outputs[0]!)}.axis${axis.axis}`;
  const reach = (attrs.mode === "linear" ? 1 : 2) / scale;
  const taps = Math.floor(2 * reach) + 1;
  const shape = [axis.to, constant(taps)];
  const position = context.temporary(`${base}.position`, "i32", shape);
  const share = context.temporary(`${base}.share`, "f32", shape);
  const total = context.temporary(`${base}.total`, "f32", [axis.to]);
  const weight = context.temporary(`${base}.weight`, "f32", shape);
  const crops = attrs.coordinates === "tf_crop_and_resize";
  const outside = crops ? context.temporary(`${base}.outside`, "bool", [axis.to]) : undefined;
  const last = op("sub", indexValue(axis.from, "f64"), f64(1));
  const isOutside = (at: ScalarExpr): ScalarExpr =>
    op("or", op("less", at, f64(0)), op("less", last, at));
  {
    const draft = context.draft(node);
    const index = draft.loops("i", shape);
    const x = coordinate(attrs, axis, indexValue(index[0]!, "f64"));
    const first = op("ceil", op("sub", x, f64(reach)));
    const at = op("add", first, indexValue(index[1]!, "f64"));
    const distance = op("mul", op("abs", op("sub", at, x)), f64(scale));
    const own = stretchedWeight(attrs, distance);
    const kept = attrs.excludeOutside ? op("select", isOutside(at), f64(0), own) : own;
    const clamped = op("min", op("max", at, f64(0)), last);
    draft.finishStatement(
      [cast(clamped, "i32", false), cast(kept, "f32", false)],
      [
        { tensor: position, index },
        { tensor: share, index },
      ],
    );
  }
  sumOfTaps(context, node, { share, total, shape });
  const draft = context.draft(node);
  const index = draft.loops("i", shape);
  const parts = [draft.readTensor(share, index), draft.readTensor(total, [index[0]!])];
  draft.finishStatement([op("div", ...parts)], [{ tensor: weight, index }]);
  if (outside) {
    const beyond = context.draft(node);
    const i = beyond.loop("i0", axis.to);
    const x = coordinate(attrs, axis, indexValue(i, "f64"));
    beyond.finishStatement([isOutside(x)], [{ tensor: outside, index: [i] }]);
  }
  return { axis, taps, position, weight, outside };
}

function sumOfTaps(
  context: NestContext,
  node: NodeOf<"resize">,
  {
    share,
    total,
    shape,
  }: { readonly share: string; readonly total: string; readonly shape: readonly IndexExpr[] },
): void {
  const draft = context.draft(node);
  const i = draft.loop("i0", shape[0]!);
  const tap = draft.loop("t", shape[1]!, "reduce");
  const body = draft.readTensor(share, [i, tap]);
  draft.finishStatement([body], [{ tensor: total, index: [i] }], foldInto("sum", "f32", "f32"));
}

/** The triangle, or Keys' filter, at any distance. */
function stretchedWeight({ mode, cubicCoefficient: a }: ResizeAttrs, d: ScalarExpr): ScalarExpr {
  if (mode === "linear") return op("max", f64(0), op("sub", f64(1), d));
  const far = op("select", op("less", d, f64(2)), cubicWeight(d, a, 2), f64(0));
  return op("select", op("less", f64(1), d), far, cubicWeight(d, a, 0));
}

function buildTables(context: NestContext, node: NodeOf<"resize">, axis: Axis): Tables {
  const { attrs } = node;
  const base = `${context.name(node.outputs[0]!)}.axis${axis.axis}`;
  const at = indexValue(constant(0), "f64");
  const taps = filterTaps(attrs, at).length;
  const shape = [axis.to, constant(taps)];
  const position = context.temporary(`${base}.position`, "i32", shape);
  const weight = taps > 1 ? context.temporary(`${base}.weight`, "f32", shape) : undefined;
  const crops = attrs.coordinates === "tf_crop_and_resize";
  const outside = crops ? context.temporary(`${base}.outside`, "bool", [axis.to]) : undefined;
  for (let t = 0; t < taps; t++) {
    const draft = context.draft(node);
    const i = draft.loop("i0", axis.to);
    const x = coordinate(attrs, axis, indexValue(i, "f64"));
    const samples = filterTaps(attrs, x);
    const last = op("sub", indexValue(axis.from, "f64"), f64(1));
    const clamped = op("min", op("max", samples[t]!.at, f64(0)), last);
    const index = [i, constant(t)];
    const values = [cast(clamped, "i32", false)];
    const writes = [{ tensor: position, index }];
    if (weight) {
      values.push(cast(keptWeight(attrs, samples, t, last), "f32", false));
      writes.push({ tensor: weight, index });
    }
    if (outside && t === 0) {
      values.push(op("or", op("less", x, f64(0)), op("less", last, x)));
      writes.push({ tensor: outside, index: [i] });
    }
    draft.finishStatement(values, writes);
  }
  return { axis, taps, position, weight, outside };
}

/** With excludeOutside, taps outside weigh nothing and the others are normalised. */
function keptWeight(
  attrs: ResizeAttrs,
  samples: readonly { at: ScalarExpr; weight: ScalarExpr }[],
  tap: number,
  last: ScalarExpr,
): ScalarExpr {
  if (!attrs.excludeOutside) return samples[tap]!.weight;
  const kept = samples.map(({ at, weight }) => {
    const outside = op("or", op("less", at, f64(0)), op("less", last, at));
    return op("select", outside, f64(0), weight);
  });
  return op(
    "div",
    kept[tap]!,
    kept.reduce((a, b) => op("add", a, b)),
  );
}

function buildSampled(context: NestContext, node: NodeOf<"resize">, axes: readonly Axis[]): void {
  const tables = axes.map((axis) => tablesOf(context, node, axis));
  if (context.separatesFilters && tables.length > 1 && tables.every((t) => t.weight)) {
    buildPasses(context, node, tables);
    return;
  }
  const output = node.outputs[0]!;
  const { shape, dtype } = context.type(output);
  const draft = context.draft(node);
  const at = draft.loops("i", shape);
  const accumulator = accumulatorOf(dtype);
  const index = [...at];
  const weights: ScalarExpr[] = [];
  for (const { axis, taps, position, weight } of tables) {
    const tap = draft.loop(`t${axis.axis}`, taps, "reduce");
    const where = [at[axis.axis]!, tap];
    index[axis.axis] = draft.provedIndirect(position, where, axis.from);
    if (weight) weights.push(cast(draft.readTensor(weight, where), accumulator, false));
  }
  const element = cast(draft.read(node.inputs[0]!, index), accumulator, false);
  const body = weights.reduce((a, b) => apply("mul", a, b), element);
  const write = { tensor: context.name(output), index: at };
  const outside = tables.flatMap((t) =>
    t.outside === undefined ? [] : [draft.finishRead(t.outside, [at[t.axis.axis]!])],
  );
  const fold = foldInto("sum", accumulator, dtype);
  if (outside.length === 0) {
    draft.finishStatement([body], [write], fold);
    return;
  }
  const beyond = outside.map((i) => argument(1 + i, "bool")).reduce((a, b) => op("or", a, b));
  const inside = cast(argument(0, accumulator), dtype, false);
  const finish = [op("select", beyond, literalOf(dtype, node.attrs.extrapolation), inside)];
  draft.finishStatement([body], [write], { ...fold, finish });
}
