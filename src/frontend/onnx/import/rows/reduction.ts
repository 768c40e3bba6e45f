/** Reductions, running sums, extrema positions, and order. */
import type { OpAttrs } from "../../../../graph/graph.ts";
import type { ReduceKind } from "../../../../semantics/core-ops.ts";
import { dtypes } from "../../../../semantics/dtype.ts";
import { constant, constantValue, min, mul } from "../../../../semantics/index-expr.ts";
import type { NodeView } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorRow, OperatorTable } from "../operator-row.ts";

type Form =
  | "reduceMean"
  | "reduceL1"
  | "reduceL2"
  | "reduceSumSquare"
  | "reduceLogSum"
  | "logSumExp";

/** Axes are an attribute until `inputSince`, then an optional operand; empty means all. */
function readAxes(node: NodeView, inputSince: number): readonly number[] | undefined {
  const rank = node.input(0).type.shape.length;
  const asInput = node.version >= inputSince;
  const given = asInput
    ? node.optional(1) && node.integers(1, "axes")
    : node.attributes.ints("axes");
  const noop = asInput && node.attributes.flag("noop_with_empty_axes", false);
  if (given && given.length > 0) return node.axes(given, rank);
  return noop ? undefined : Array.from({ length: rank }, (_, i) => i);
}

function reduction(
  apply: (
    node: NodeView,
    x: Operand,
    attrs: { axes: readonly number[]; keepDims: boolean },
  ) => Operand,
  inputSince: number,
  since: readonly number[],
): OperatorRow {
  return {
    since,
    convert: (node) => {
      const keepDims = node.attributes.flag("keepdims", true);
      const axes = readAxes(node, inputSince);
      return apply(node, node.input(0), { axes: axes ?? [], keepDims });
    },
  };
}

function core(kind: ReduceKind, inputSince: number, ...since: readonly number[]): OperatorRow {
  return reduction(
    (node, x, attrs) => {
      if (attrs.axes.length === 0) return x;
      if (x.type.dtype !== "bool") return node.emit("reduce", [x], { kind, ...attrs });
      const logical = kind === "max" ? "or" : "and";
      return node.emit("reduce", [x], { kind: logical, ...attrs });
    },
    inputSince,
    since,
  );
}

/** Forms with an elementwise part apply it even when no axis is reduced. */
function form(op: Form, ...since: readonly number[]): OperatorRow {
  return reduction(
    (node, x, attrs) => {
      if (attrs.axes.length === 0 && op === "reduceMean") return x;
      return node.emit(op, [x], attrs as OpAttrs[Form]);
    },
    18,
    since,
  );
}

function argReduce(kind: "max" | "min"): OperatorRow {
  return {
    since: [1, 11, 12, 13],
    convert: (node) => {
      const x = node.input(0);
      return node.emit("argReduce", [x], {
        kind,
        axis: node.axis(node.attributes.int("axis") ?? 0, x.type.shape.length),
        keepDims: node.attributes.flag("keepdims", true),
        selectLast: node.attributes.flag("select_last_index", false),
      });
    },
  };
}

function cumulative(kind: "sum" | "prod", ...since: readonly number[]): OperatorRow {
  return {
    since,
    convert: (node) => {
      const x = node.input(0);
      return node.emit("cumulative", [x], {
        kind,
        axis: node.axis(node.integers(1, "axis")[0] ?? 0, x.type.shape.length),
        exclusive: node.attributes.flag("exclusive", false),
        reverse: node.attributes.flag("reverse", false),
      });
    },
  };
}

/** k is an attribute until version 9, then an operand. */
function topK(node: NodeView): readonly Operand[] {
  const x = node.input(0);
  const { attributes } = node;
  const k = node.version < 10 ? constant(attributes.int("k") ?? 0) : node.indexList(1, "K")[0];
  if (!k) node.refuse("an empty K", "one number");
  return node.emitAll("topK", [x], {
    axis: node.axis(attributes.int("axis") ?? -1, x.type.shape.length),
    k,
    largest: attributes.flag("largest", true),
    sorted: attributes.flag("sorted", true),
  });
}

/** 1 at the first maximum along the axis, 0 elsewhere. */
function hardmax(node: NodeView): Operand {
  const x = node.input(0);
  const rank = x.type.shape.length;
  const axis = node.axis(node.attributes.int("axis") ?? (node.version < 13 ? 1 : -1), rank);
  if (node.version < 13 && axis !== rank - 1) {
    const [outer, inner] = [x.type.shape.slice(0, axis), x.type.shape.slice(axis)];
    const flat = node.reshape(x, [mul(...outer), mul(...inner)]);
    return node.reshape(oneAtMaximum(node, flat, 1), x.type.shape);
  }
  return oneAtMaximum(node, x, axis);
}

function oneAtMaximum(node: NodeView, x: Operand, axis: number): Operand {
  // Of an empty axis there is no maximum to mark, and nothing to mark it in.
  if (constantValue(x.type.shape[axis]!) === 0) return x;
  const attrs = { kind: "max" as const, axis, keepDims: true, selectLast: false };
  const at = node.emit("argReduce", [x], attrs);
  const counted = node.emit("iota", [], { shape: x.type.shape, axis, dtype: "i64" });
  return node.cast(node.emit("equal", [counted, at], {}), x.type.dtype);
}

function unique(node: NodeView): readonly Operand[] {
  const x = node.input(0);
  const axis = node.attributes.int("axis");
  const sorted = node.attributes.flag("sorted", true);
  if (axis === undefined) return node.emitAll("unique", [x], { sorted });
  return node.emitAll("unique", [x], { sorted, axis: node.axis(axis, x.type.shape.length) });
}

/** ONNX counts rows first; zero in any type is false. */
function nonZero(node: NodeView): Operand {
  return node.emit("nonZero", [node.input(0)], {});
}

const mostBoxes = 2 ** 31;

function nonMaxSuppression(node: NodeView): Operand {
  const number = (i: number, what: string, otherwise: number) =>
    node.optional(i) ? (node.numbers(i, what)[0] ?? otherwise) : otherwise;
  const center = node.attributes.int("center_point_box") ?? 0;
  const boxes = node.input(0);
  const wanted = number(2, "max_output_boxes_per_class", 0);
  if (!Number.isInteger(wanted)) node.refuse(`${wanted} boxes of a class`, "a whole number");
  // Exporters write the largest integer for all boxes.
  const limit = Math.max(0, Math.min(wanted, mostBoxes));
  const count = constantValue(min(limit, boxes.type.shape[1] ?? limit)) ?? limit;
  return node.emit("nonMaxSuppression", [boxes, node.input(1)], {
    centerPoint: center === 1,
    maxPerClass: Math.min(limit, count),
    iouThreshold: number(3, "iou_threshold", 0),
    scoreThreshold: number(4, "score_threshold", -dtypes.f32.max),
  });
}

export const reductionRows = {
  ReduceSum: core("sum", 13, 1, 11, 13),
  ReduceProd: core("prod", 18, 1, 11, 13, 18),
  ReduceMax: core("max", 18, 1, 11, 12, 13, 18, 20),
  ReduceMin: core("min", 18, 1, 11, 12, 13, 18, 20),
  ReduceMean: form("reduceMean", 1, 11, 13, 18),
  ReduceL1: form("reduceL1", 1, 11, 13, 18),
  ReduceL2: form("reduceL2", 1, 11, 13, 18),
  ReduceSumSquare: form("reduceSumSquare", 1, 11, 13, 18),
  ReduceLogSum: form("reduceLogSum", 1, 11, 13, 18),
  ReduceLogSumExp: form("logSumExp", 1, 11, 13, 18),
  ArgMax: argReduce("max"),
  ArgMin: argReduce("min"),
  CumSum: cumulative("sum", 11, 14),
  CumProd: cumulative("prod", 26),
  TopK: { since: [1, 10, 11, 24], convert: topK },
  Hardmax: { since: [1, 11, 13], convert: hardmax },
  Unique: { since: [11], convert: unique },
  NonZero: { since: [9, 13], convert: nonZero },
  NonMaxSuppression: { since: [10, 11], convert: nonMaxSuppression },
} satisfies OperatorTable;
