/**
 * Nests of gridSample and roiAlign: sums (or the greatest) of elements at positions that the data decide.
 * As in resize, small tables come first: per axis the source position of each tap, always inside the axis,
 * and its weight, computed in f64; a tap that padding makes zero has no number as its weight. Then one
 * statement folds the taps through those positions. The formulas are those of the references
 * (semantics/references/sampling.ts).
 */
import type { NodeOf, ValueId } from "../../graph/graph.ts";
import { type DType, isFloatDType } from "../../semantics/dtype.ts";
import { constant, type IndexExpr } from "../../semantics/index-expr.ts";
import {
  apply,
  argument,
  cast,
  indexValue,
  literal,
  type ScalarExpr,
  type ScalarOp,
} from "../../semantics/scalar-expr.ts";
import { literalOf } from "../statement.ts";
import type { NestContext, StatementDraft } from "./context.ts";
import { accumulatorOf, foldInto } from "./reduction.ts";

const f64 = (value: number): ScalarExpr => literal(value, "f64");
const op = (name: ScalarOp, ...operands: readonly ScalarExpr[]): ScalarExpr =>
  apply(name, ...operands);
const both = (...conditions: readonly ScalarExpr[]): ScalarExpr =>
  conditions.reduce((a, b) => op("and", a, b));

/** A source position, its weight, and whether it counts; in f64. */
interface Tap {
  readonly position: ScalarExpr;
  readonly weight: ScalarExpr;
  readonly counts: ScalarExpr;
}

/** Positions and weights of one axis, as [...where, tap]. */
interface TapTable {
  readonly extent: IndexExpr;
  readonly position: string;
  readonly weight: string;
  readonly taps: number;
}

interface TapSource {
  /** Part of the tables' names. */
  readonly title: string;
  readonly extent: IndexExpr;
  /** Extents of the axes of the table in front of the taps. */
  readonly where: readonly IndexExpr[];
  readonly weightDType: DType;
  readonly taps: number;
  readonly tapsAt: (draft: StatementDraft, at: readonly IndexExpr[]) => readonly Tap[];
}

type SamplingNode = NodeOf<"gridSample"> | NodeOf<"roiAlign">;

function buildTable(context: NestContext, node: SamplingNode, source: TapSource): TapTable {
  const { title, extent, where, weightDType, taps } = source;
  const base = `${context.name(node.outputs[0]!)}.${title}`;
  const shape = [...where, constant(taps)];
  const position = context.temporary(`${base}.position`, "i32", shape);
  const weight = context.temporary(`${base}.weight`, weightDType, shape);
  for (let t = 0; t < taps; t++) {
    const draft = context.draft(node);
    const at = draft.loops("i", where);
    const tap = source.tapsAt(draft, at)[t]!;
    // Data may be no number, and then a comparison is all that keeps the position inside.
    const inside = op("select", tap.counts, tap.position, f64(0));
    const kept = op("select", tap.counts, tap.weight, f64(Number.NaN));
    const index = [...at, constant(t)];
    draft.finishStatement(
      [cast(inside, "i32", false), cast(kept, weightDType, false)],
      [
        { tensor: position, index },
        { tensor: weight, index },
      ],
    );
  }
  return { extent, position, weight, taps };
}

/** The weighted element, `otherwise` where a tap does not count. */
function weighted(
  element: ScalarExpr,
  weights: readonly ScalarExpr[],
  otherwise: number,
): ScalarExpr {
  const missing = weights.map((w) => op("isNan", w)).reduce((a, b) => op("or", a, b));
  const weight = weights.reduce((a, b) => op("mul", a, b));
  return op("select", missing, literalOf(element.dtype, otherwise), op("mul", weight, element));
}

const last = (extent: IndexExpr): ScalarExpr => op("sub", indexValue(extent, "f64"), f64(1));
const clamp = (x: ScalarExpr, low: ScalarExpr, high: ScalarExpr): ScalarExpr =>
  op("min", op("max", x, low), high);

type GridAttrs = NodeOf<"gridSample">["attrs"];

/** Folds a coordinate back between the ends by reflection. */
function reflect(attrs: GridAttrs, x: ScalarExpr, extent: IndexExpr): ScalarExpr {
  const low = f64(attrs.alignCorners ? 0 : -0.5);
  const range = attrs.alignCorners ? last(extent) : indexValue(extent, "f64");
  const period = op("mul", f64(2), range);
  const from = op("sub", x, low);
  const folded = op("sub", from, op("mul", period, op("floor", op("div", from, period))));
  const back = op("add", low, op("min", folded, op("sub", period, folded)));
  return op("select", op("equal", range, f64(0)), low, back);
}

/** A coordinate of the grid, in [-1, 1], as one of the source, brought inside where padding says so. */
function sourceCoordinate(attrs: GridAttrs, g: ScalarExpr, extent: IndexExpr): ScalarExpr {
  const shifted = op("add", g, f64(1));
  const full = indexValue(extent, "f64");
  const exact = attrs.alignCorners
    ? op("mul", op("div", shifted, f64(2)), last(extent))
    : op("div", op("sub", op("mul", shifted, full), f64(1)), f64(2));
  const x = attrs.mode === "nearest" ? op("round", exact) : exact;
  if (attrs.mode === "cubic" || attrs.padding === "zeros") return x;
  const low = f64(attrs.alignCorners ? 0 : -0.5);
  const high = attrs.alignCorners ? last(extent) : op("sub", full, f64(0.5));
  const outside = op("or", op("less", x, low), op("less", high, x));
  const inside =
    attrs.padding === "border" ? clamp(x, f64(0), last(extent)) : reflect(attrs, x, extent);
  return op("select", outside, inside, x);
}

const gridTaps = { nearest: 1, linear: 2, cubic: 4 } as const;

/** Unpadded positions and weights around a source coordinate. */
function neighbours(
  { mode }: GridAttrs,
  x: ScalarExpr,
): { readonly at: ScalarExpr; readonly weight: ScalarExpr }[] {
  if (mode === "nearest") return [{ at: op("round", x), weight: f64(1) }];
  const base = op("floor", x);
  const offsets = mode === "linear" ? [0, 1] : [-1, 0, 1, 2];
  return offsets.map((offset) => {
    const at = op("add", base, f64(offset));
    const distance = op("abs", op("sub", x, at));
    const weight = mode === "linear" ? op("sub", f64(1), distance) : cubicWeight(distance);
    return { at, weight };
  });
}

/** Keys' cubic convolution filter with a = -0.75. */
function cubicWeight(d: ScalarExpr): ScalarExpr {
  const a = -0.75;
  const horner = (coefficients: readonly number[]): ScalarExpr =>
    coefficients
      .slice(1)
      .reduce((sum, c) => op("add", op("mul", sum, d), f64(c)), f64(coefficients[0]!));
  const near = horner([a + 2, -(a + 3), 0, 1]);
  const far = horner([a, -5 * a, 8 * a, -4 * a]);
  const isNear = op("lessEqual", d, f64(1));
  return op("select", isNear, near, op("select", op("less", d, f64(2)), far, f64(0)));
}

function padded(attrs: GridAttrs, at: ScalarExpr, extent: IndexExpr): Omit<Tap, "weight"> {
  const end = last(extent);
  const inside = both(op("lessEqual", f64(0), at), op("lessEqual", at, end));
  if (attrs.padding === "zeros") return { position: clamp(at, f64(0), end), counts: inside };
  const far = attrs.padding === "border" ? at : reflect(attrs, at, extent);
  // No number and the infinities count for nothing.
  const finite = op("less", op("abs", at), f64(Number.POSITIVE_INFINITY));
  const position = op("select", inside, at, far);
  return { position: clamp(position, f64(0), end), counts: finite };
}

export function buildGridSample(context: NestContext, node: NodeOf<"gridSample">): void {
  const { attrs, outputs } = node;
  const [x, grid] = node.inputs as [ValueId, ValueId];
  const { dtype, shape } = context.type(x);
  const spatial = shape.slice(2);
  const points = context.type(grid).shape.slice(0, -1);
  const accumulator = isFloatDType(dtype) ? accumulatorOf(dtype) : "f64";
  const tables = spatial.map((extent, axis) =>
    buildTable(context, node, {
      title: `axis${axis}`,
      extent,
      where: points,
      weightDType: accumulator,
      taps: gridTaps[attrs.mode],
      tapsAt: (draft, at) => {
        const g = draft.read(grid, [...at, constant(spatial.length - 1 - axis)]);
        const coordinate = sourceCoordinate(attrs, cast(g, "f64", false), extent);
        return neighbours(attrs, coordinate).map((n) => ({
          weight: n.weight,
          ...padded(attrs, n.at, extent),
        }));
      },
    }),
  );
  const draft = context.draft(node);
  const at = draft.loops("i", context.type(outputs[0]!).shape);
  const point = [at[0]!, ...at.slice(2)];
  const index = at.slice(0, 2);
  const weights: ScalarExpr[] = [];
  for (const [axis, { extent, position, weight, taps }] of tables.entries()) {
    const where = [...point, draft.loop(`t${axis}`, taps, "reduce")];
    index.push(draft.provedIndirect(position, where, extent));
    weights.push(draft.readTensor(weight, where));
  }
  const element = cast(draft.read(x, index), accumulator, false);
  const write = { tensor: context.name(outputs[0]!), index: at };
  const fold = foldInto("sum", accumulator, dtype);
  draft.finishStatement([weighted(element, weights, 0)], [write], fold);
}

/** A bin's sample along one axis and the two elements around it. */
function roiTaps(x: ScalarExpr, extent: IndexExpr): Tap[] {
  const end = last(extent);
  const counts = both(op("lessEqual", f64(-1), x), op("lessEqual", x, indexValue(extent, "f64")));
  const clamped = clamp(x, f64(0), end);
  const base = op("floor", clamped);
  const next = op("add", base, f64(1));
  return [
    { position: base, weight: op("sub", next, clamped), counts },
    { position: op("min", next, end), weight: op("sub", clamped, base), counts },
  ];
}

/** Samples by data (ratio 0) have no nest: their number has no bound. */
export function buildRoiAlign(context: NestContext, node: NodeOf<"roiAlign">): void {
  const { attrs, outputs } = node;
  const { mode, samplingRatio: samples, halfPixel, spatialScale } = attrs;
  if (samples === 0) {
    context.routine(node);
    return;
  }
  const [x, boxes, batches] = node.inputs as [ValueId, ValueId, ValueId];
  const { dtype, shape } = context.type(x);
  const [rois, , height, width] = context.type(outputs[0]!).shape as IndexExpr[];
  const accumulator = accumulatorOf(dtype);
  const offset = halfPixel ? 0.5 : 0;
  const table = (axis: 2 | 3, bins: IndexExpr, first: number): TapTable =>
    buildTable(context, node, {
      title: `axis${axis}`,
      extent: shape[axis]!,
      where: [rois!, bins, constant(samples)],
      weightDType: accumulator,
      taps: 2,
      tapsAt: (draft, [roi, bin, sample]) => {
        const edge = (i: number): ScalarExpr => {
          const read = cast(draft.read(boxes, [roi!, constant(i)]), "f64", false);
          return op("sub", op("mul", read, f64(spatialScale)), f64(offset));
        };
        const start = edge(first);
        const length = op("sub", edge(first + 2), start);
        const kept = halfPixel ? length : op("max", length, f64(1));
        const binLength = op("div", kept, indexValue(bins, "f64"));
        const begin = op("add", start, op("mul", indexValue(bin!, "f64"), binLength));
        const within = op("mul", op("add", indexValue(sample!, "f64"), f64(0.5)), binLength);
        return roiTaps(op("add", begin, op("div", within, f64(samples))), shape[axis]!);
      },
    });
  const [rows, columns] = [table(2, height!, 1), table(3, width!, 0)];
  const draft = context.draft(node);
  const at = draft.loops("i", context.type(outputs[0]!).shape);
  const [roi, channel, row, column] = at as [IndexExpr, IndexExpr, IndexExpr, IndexExpr];
  const batch = draft.indirect(batches, [roi], shape[0]!);
  const taken = [
    { table: rows, bin: row, title: "y" },
    { table: columns, bin: column, title: "x" },
  ].map(({ table: { extent, position, weight }, bin, title }) => {
    const sample = draft.loop(`s${title}`, samples, "reduce");
    const where = [roi, bin, sample, draft.loop(`t${title}`, 2, "reduce")];
    const from = draft.provedIndirect(position, where, extent);
    return { from, weight: draft.readTensor(weight, where) };
  });
  const index = [batch, channel, ...taken.map((t) => t.from)];
  const element = cast(draft.read(x, index), accumulator, false);
  const weights = taken.map((t) => t.weight);
  const write = { tensor: context.name(outputs[0]!), index: at };
  const none = Number.NEGATIVE_INFINITY;
  const body = weighted(element, weights, mode === "avg" ? 0 : none);
  const result = argument(0, accumulator);
  const finished =
    mode === "avg"
      ? op("div", result, literalOf(accumulator, samples * samples))
      : op(
          "select",
          op("equal", result, literalOf(accumulator, none)),
          literalOf(accumulator, 0),
          result,
        );
  const { monoid } = foldInto(mode === "avg" ? "sum" : "max", accumulator, dtype);
  const finish = [cast(finished, dtype, false)];
  draft.finishStatement([body], [write], { monoid, finish });
}
