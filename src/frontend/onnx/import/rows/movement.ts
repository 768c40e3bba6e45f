/** Operators that reshape, cut, join, permute and repeat. */

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
} from "../../../../semantics/index-expr.ts";
import { rangeOf, simplify } from "../../../../semantics/index-range.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import { readTensorProto } from "../../tensor-proto.ts";
import { checkShapeSize } from "../extent-limits.ts";
import { type NodeView, one } from "../node-view.ts";
import { constantFromRef, constantOperand, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

const zero = constant(0);

const ranges = (node: NodeView) => node.emitter.assembly.symbols.ranges;

/** 0 copies the operand's extent (unless allowzero), -1 takes what is left. */
function reshape(node: NodeView): Operand {
  const x = node.input(0);
  const target =
    node.version < 5
      ? (node.attributes.ints("shape") ?? []).map(constant)
      : node.indexList(1, "shape");
  const allowZero = node.attributes.flag("allowzero", false);
  const filled = target.map((d, i) => {
    if (allowZero || constantValue(d) !== 0) return d;
    return (
      x.type.shape[i] ?? node.refuse(`extent 0 at axis ${i} of the shape`, "axes of the operand")
    );
  });
  const open = filled.flatMap((d, i) => (constantValue(d) === -1 ? [i] : []));
  if (open.length > 1) node.refuse("several -1 in the shape", "at most one");
  if (open.length === 0) return node.reshape(x, filled);
  const rest = filled.filter((_, i) => i !== open[0]);
  checkShapeSize(rest, node.origin.at);
  const known = filled.map((d, i) => (i === open[0] ? quotient(node, x.type.shape, rest) : d));
  return node.reshape(x, known);
}

/** prod(all) / prod(part), after cancelling equal factors. */
function quotient(
  node: NodeView,
  all: readonly IndexExpr[],
  part: readonly IndexExpr[],
): IndexExpr {
  const left = [...all];
  const below: IndexExpr[] = [];
  for (const d of part) {
    const at = left.findIndex((e) => indexEquals(e, d));
    if (at >= 0 && constantValue(d) !== 0) left.splice(at, 1);
    else below.push(d);
  }
  const divisor = mul(...below);
  const fixed = constantValue(divisor);
  if (fixed === 0) return zero;
  if (rangeOf(divisor, ranges(node)).min <= 0) {
    node.refuse(`a shape of which ${divisor.key} elements must be divided out`, "positive extents");
  }
  return simplify(floorDiv(mul(...left), divisor), ranges(node));
}

function flatten(node: NodeView): Operand {
  const x = node.input(0);
  const rank = x.type.shape.length;
  const given = node.attributes.int("axis") ?? 1;
  const axis = given === rank ? rank : node.axis(given, Math.max(rank, 1));
  return node.reshape(x, [mul(...x.type.shape.slice(0, axis)), mul(...x.type.shape.slice(axis))]);
}

function transpose(node: NodeView): Operand {
  const x = node.input(0);
  const rank = x.type.shape.length;
  const perm = node.attributes.ints("perm") ?? Array.from({ length: rank }, (_, i) => rank - 1 - i);
  if ([...perm].sort((a, b) => a - b).join() !== x.type.shape.map((_, i) => i).join()) {
    node.attributes.refuse("perm", `[${perm}]`, `a permutation of ${rank} axes`);
  }
  return node.transpose(x, perm);
}

/** Axes as an attribute before version 13, as an operand since. */
function axesOf(node: NodeView): readonly number[] | undefined {
  if (node.version < 13) return node.attributes.ints("axes");
  return node.optional(1) && node.integers(1, "axes");
}

function squeeze(node: NodeView): Operand {
  const x = node.input(0);
  const { shape } = x.type;
  const given = axesOf(node);
  const axes = given
    ? node.axes(given, shape.length)
    : shape.flatMap((d, i) => (constantValue(d) === 1 ? [i] : []));
  for (const axis of axes) {
    const extent = constantValue(shape[axis]!);
    if (extent !== undefined && extent !== 1)
      node.refuse(`axis ${axis} of extent ${extent}`, "extent 1");
  }
  return node.reshape(
    x,
    shape.filter((_, i) => !axes.includes(i)),
  );
}

function unsqueeze(node: NodeView): Operand {
  const x = node.input(0);
  const given = axesOf(node) ?? [];
  const axes = node.axes(given, x.type.shape.length + given.length);
  const shape = [...x.type.shape];
  for (const axis of axes) shape.splice(axis, 0, one);
  return node.reshape(x, shape);
}

function concat(node: NodeView): Operand {
  const inputs = node.allInputs();
  const rank = node.input(0).type.shape.length;
  const axis = node.axis(node.attributes.int("axis") ?? 1, rank);
  const filled = inputs.filter(
    (x) => x.type.shape.length !== 1 || constantValue(x.type.shape[0]!) !== 0,
  );
  if (filled.length === 0) return inputs[0]!;
  return filled.length === 1 ? filled[0]! : node.emit("concat", filled, { axis });
}

/** Lengths from an attribute (before 13), an operand, or equal parts of num_outputs. */
function split(node: NodeView): readonly Operand[] {
  const x = node.input(0);
  const axis = node.axis(node.attributes.int("axis") ?? 0, x.type.shape.length);
  const extent = x.type.shape[axis]!;
  const parts = node.attributes.int("num_outputs") ?? node.outputs.length;
  const given =
    node.version < 13
      ? node.attributes.ints("split")?.map(constant)
      : node.optional(1) && node.indexList(1, "split");
  const lengths = given ?? equalParts(extent, parts);
  const results: Operand[] = [];
  let start: IndexExpr = zero;
  for (const length of lengths) {
    results.push(sliceAxis(node, x, { axis, start, step: 1, size: length }));
    start = add(start, length);
  }
  return results;
}

/** Chunks of ceil(extent / parts), the last one smaller. */
function equalParts(extent: IndexExpr, parts: number): readonly IndexExpr[] {
  const chunk = ceilDiv(extent, Math.max(1, parts));
  return Array.from({ length: parts }, (_, i) =>
    i < parts - 1 ? chunk : sub(extent, mul(parts - 1, chunk)),
  );
}

interface AxisSlice {
  readonly axis: number;
  readonly start: IndexExpr;
  readonly step: number;
  readonly size: IndexExpr;
}

/** A slice of one axis. */
export function sliceAxis(
  node: NodeView,
  x: Operand,
  { axis, start, step, size }: AxisSlice,
): Operand {
  const { shape } = x.type;
  if (constantValue(start) === 0 && step === 1 && indexEquals(size, shape[axis]!)) return x;
  return node.emit("slice", [x], {
    starts: shape.map((_, i) => (i === axis ? start : zero)),
    steps: shape.map((_, i) => (i === axis ? step : 1)),
    sizes: shape.map((d, i) => (i === axis ? size : d)),
  });
}

interface SliceBounds {
  readonly starts: readonly IndexExpr[];
  readonly ends: readonly IndexExpr[];
  readonly axes: readonly number[] | undefined;
  readonly steps: readonly number[] | undefined;
}

function sliceBounds(node: NodeView): SliceBounds {
  const { attributes } = node;
  if (node.version < 10) {
    const ints = (name: string) => (attributes.ints(name) ?? []).map(constant);
    return {
      starts: ints("starts"),
      ends: ints("ends"),
      axes: attributes.ints("axes"),
      steps: undefined,
    };
  }
  return {
    starts: node.indexList(1, "starts"),
    ends: node.indexList(2, "ends"),
    axes: node.optional(3) && node.integers(3, "axes"),
    steps: node.optional(4) && node.integers(4, "steps"),
  };
}

/** numpy slicing: negative positions count from the end, then everything is clamped to the axis. */
function slice(node: NodeView): Operand {
  const { starts, ends, axes, steps } = sliceBounds(node);
  let x = node.input(0);
  const rank = x.type.shape.length;
  const chosen = (axes ?? starts.map((_, i) => i)).map((a) => node.axis(a, rank));
  const lists = [ends.length, chosen.length, steps?.length ?? starts.length];
  if (lists.some((n) => n !== starts.length) || new Set(chosen).size !== chosen.length) {
    node.refuse(
      "starts, ends, axes and steps that do not match",
      "lists of one length, distinct axes",
    );
  }
  for (const [i, axis] of chosen.entries()) {
    const step = steps?.[i] ?? 1;
    if (step === 0) node.refuse("step 0", "steps other than 0");
    x = sliceOne(node, x, { axis, start: starts[i]!, end: ends[i]!, step });
  }
  return x;
}

interface RawSlice {
  readonly axis: number;
  readonly start: IndexExpr;
  readonly end: IndexExpr;
  readonly step: number;
}

function sliceOne(node: NodeView, x: Operand, { axis, start, end, step }: RawSlice): Operand {
  const extent = x.type.shape[axis]!;
  const clampTo = (e: IndexExpr, low: number, high: IndexExpr) =>
    simplify(min(max(e, low), high), ranges(node));
  const from = fromEnd(node, start, extent);
  const to = fromEnd(node, end, extent);
  if (step > 0) {
    const first = clampTo(from, 0, extent);
    const size = sliceSize(node, sub(clampTo(to, 0, extent), first), step);
    return sliceAxis(node, x, { axis, start: first, step, size });
  }
  // Backwards: reverse the axis; position p becomes extent - 1 - p.
  const first = clampTo(from, 0, sub(extent, 1));
  const size = sliceSize(node, sub(first, clampTo(to, -1, sub(extent, 1))), -step);
  const reversed = node.emit("reverse", [x], { axes: [axis] });
  const start_ = sub(sub(extent, 1), first);
  return sliceAxis(node, reversed, {
    axis,
    start: simplify(start_, ranges(node)),
    step: -step,
    size,
  });
}

function sliceSize(node: NodeView, span: IndexExpr, step: number): IndexExpr {
  return simplify(max(0, ceilDiv(simplify(span, ranges(node)), step)), ranges(node));
}

/** A position that may count from the end; its sign must be known. */
function fromEnd(node: NodeView, position: IndexExpr, extent: IndexExpr): IndexExpr {
  const range = rangeOf(position, ranges(node));
  if (range.min >= 0) return position;
  if (range.max < 0) return add(position, extent);
  return node.refuse(
    `a slice position ${position.key} of unknown sign`,
    "positions whose sign is known",
  );
}

function gather(node: NodeView): Operand {
  const data = node.input(0);
  const axis = node.axis(node.attributes.int("axis") ?? 0, data.type.shape.length);
  return node.emit("gather", [data, node.input(1)], { axis });
}

function gatherElements(node: NodeView): Operand {
  const data = node.input(0);
  const axis = node.axis(node.attributes.int("axis") ?? 0, data.type.shape.length);
  return node.emit("gatherElements", [data, node.input(1)], { axis });
}

function scatterElements(node: NodeView): Operand {
  const data = node.input(0);
  const axis = node.axis(node.attributes.int("axis") ?? 0, data.type.shape.length);
  const reduction = node.attributes.choice("reduction", "none", "add", "mul", "max", "min");
  return node.emit("scatterElements", [data, node.input(1), node.input(2)], { axis, reduction });
}

function scatterNd(node: NodeView): Operand {
  const reduction = node.attributes.choice("reduction", "none", "add", "mul", "max", "min");
  return node.emit("scatterNd", [node.input(0), node.input(1), node.input(2)], { reduction });
}

/** Both sides broadcast: an extent of 1 in the shape keeps the operand's. */
function expand(node: NodeView): Operand {
  const x = node.input(0);
  const target = node.indexList(1, "shape");
  const rank = Math.max(target.length, x.type.shape.length);
  const at = (list: readonly IndexExpr[], i: number) => list[i - rank + list.length] ?? one;
  const shape = Array.from({ length: rank }, (_, i) => {
    const wanted = at(target, i);
    return constantValue(wanted) === 1 ? at(x.type.shape, i) : wanted;
  });
  return broadcastTo(node, x, shape);
}

export function broadcastTo(node: NodeView, x: Operand, shape: readonly IndexExpr[]): Operand {
  const same =
    shape.length === x.type.shape.length && shape.every((d, i) => indexEquals(d, x.type.shape[i]!));
  return same ? x : node.emit("broadcast", [x], { shape });
}

/** [a, b] tiled (m, n) is reshape [1, a, 1, b] -> broadcast [m, a, n, b] -> reshape [m a, n b]. */
function tile(node: NodeView): Operand {
  const x = node.input(0);
  const { shape } = x.type;
  const repeats = node.indexList(1, "repeats");
  if (repeats.length !== shape.length)
    node.refuse(`${repeats.length} repeats`, `one per axis (${shape.length})`);
  if (repeats.every((r) => constantValue(r) === 1)) return x;
  checkShapeSize([...shape, ...repeats], node.origin.at);
  const split_ = shape.flatMap((d) => [one, d]);
  const repeated = shape.flatMap((d, i) => [repeats[i]!, d]);
  const spread = broadcastTo(node, node.reshape(x, split_), repeated);
  return node.reshape(
    spread,
    shape.map((d, i) => mul(d, repeats[i]!)),
  );
}

function pad(node: NodeView): Operand {
  const x = node.input(0);
  const rank = x.type.shape.length;
  const mode = node.attributes.choice("mode", "constant", "reflect", "edge", "wrap");
  const asInput = node.version >= 11;
  const pads = asInput
    ? node.indexList(1, "pads")
    : (node.attributes.ints("pads") ?? []).map(constant);
  const axes =
    asInput && node.optional(3)
      ? node.integers(3, "axes").map((a) => node.axis(a, rank))
      : x.type.shape.map((_, i) => i);
  if (pads.length !== 2 * axes.length)
    node.refuse(`${pads.length} pads`, `two per axis (${2 * axes.length})`);
  const spread = (offset: number) =>
    x.type.shape.map((_, axis) => {
      const at = axes.indexOf(axis);
      return at < 0 ? zero : pads[at + offset]!;
    });
  const attrs = { low: spread(0), high: spread(axes.length), mode };
  if ([...attrs.low, ...attrs.high].every((p) => constantValue(p) === 0)) return x;
  if (mode !== "constant") return node.emit("pad", [x], attrs);
  const fill = asInput
    ? (node.optional(2) ?? node.splat(x.type.dtype, 0))
    : node.splat(x.type.dtype, node.attributes.float("value") ?? 0);
  return node.emit("pad", [x, node.reshape(fill, [])], attrs);
}

function depthToSpace(node: NodeView): Operand {
  const mode = node.attributes.choice("mode", "DCR", "CRD");
  const lower = mode === "DCR" ? "dcr" : "crd";
  const attrs = { blockSize: readBlockSize(node), mode: lower } as const;
  return node.emit("depthToSpace", [node.input(0)], attrs);
}

function spaceToDepth(node: NodeView): Operand {
  return node.emit("spaceToDepth", [node.input(0)], { blockSize: readBlockSize(node) });
}

function readBlockSize(node: NodeView): number {
  const size = node.attributes.int("blocksize") ?? 0;
  return size >= 1 && size <= 2 ** 20
    ? size
    : node.attributes.refuse("blocksize", size, "1 to 2^20");
}

/** Python slicing of the shape; the extents are known symbolically. */
function shape(node: NodeView): Operand {
  const extents = node.input(0).type.shape;
  const bound = (name: string, otherwise: number) => {
    const value = node.attributes.int(name) ?? otherwise;
    return Math.max(0, Math.min(extents.length, value < 0 ? value + extents.length : value));
  };
  const [start, end] = [bound("start", 0), bound("end", extents.length)];
  return node.indices(extents.slice(start, Math.max(start, end)));
}

/** One of the value attributes; tensors keep their name for the weight. */
function constantNode(node: NodeView): Operand {
  const { attributes } = node;
  const name = node.outputs[0] ?? "";
  const value = attributes.tensor("value");
  if (value) {
    const tensor = readTensorProto(value, node.origin.at);
    if (tensor.kind === "inline") return constantOperand(tensor.tensor, name);
    node.refuse("a Constant with external data", "inline contents");
  }
  const f32 = (shape: readonly number[], data: readonly number[]) =>
    constantFromRef(refTensor("f32", shape, data.map(Math.fround)), name);
  const i64 = (shape: readonly number[], data: readonly number[]) =>
    constantFromRef(refTensor("i64", shape, data), name);
  if (attributes.has("value_float")) return f32([], [attributes.float("value_float")!]);
  if (attributes.has("value_int")) return i64([], [attributes.int("value_int")!]);
  const [floats, ints] = [attributes.floats("value_floats"), attributes.ints("value_ints")];
  if (floats) return f32([floats.length], floats);
  if (ints) return i64([ints.length], ints);
  return node.refuse("a Constant without a numeric value", "value, value_float(s), value_int(s)");
}

function constantOfShape(node: NodeView): Operand {
  const extents = node.indexList(0, "shape");
  const value = node.attributes.tensor("value");
  let fill = node.splat("f32", 0);
  if (value) {
    const tensor = readTensorProto(value, node.origin.at);
    if (tensor.kind === "external") node.refuse("external data as the value", "one inline element");
    fill = constantOperand(tensor.tensor);
  }
  return broadcastTo(node, node.reshape(fill, []), extents);
}

/** start + i * delta for integers known at import (any number of them that shapes decide). */
function range(node: NodeView): Operand {
  const [start, limit, delta] = [0, 1, 2].map(
    (i) => node.symbolic(i, ["start", "limit", "delta"][i]!)[0],
  );
  if (!start || !limit || !delta) node.refuse("an empty operand", "scalars");
  const { dtype } = node.input(0).type;
  const fixed = [start, limit, delta].map((n) => {
    const [a, b] = [constantValue(n.numerator), constantValue(n.denominator)];
    return a === undefined || b === undefined ? undefined : a / b;
  });
  const step = fixed[2];
  if (step === undefined || step === 0)
    node.refuse("a delta that is 0 or not constant", "constants");
  const count = rangeCount(node, fixed, [start.numerator, limit.numerator]);
  const counted = node.emit("iota", [], { shape: [count], axis: 0, dtype });
  const scaled = step === 1 ? counted : node.emit("mul", [counted, node.splat(dtype, step)], {});
  if (fixed[0] === 0) return scaled;
  return node.emit("add", [scaled, node.reshape(node.input(0), [])], {});
}

function rangeCount(
  node: NodeView,
  [start, limit, delta]: readonly (number | undefined)[],
  [first, last]: readonly IndexExpr[],
): IndexExpr {
  if (start !== undefined && limit !== undefined) {
    return constant(Math.max(0, Math.ceil((limit - start) / delta!)));
  }
  if (!Number.isInteger(delta)) node.refuse(`a symbolic range with step ${delta}`, "integer steps");
  const span = delta! > 0 ? sub(last!, first!) : sub(first!, last!);
  return simplify(max(0, ceilDiv(span, Math.abs(delta!))), ranges(node));
}

function eyeLike(node: NodeView): Operand {
  const x = node.input(0);
  const k = node.attributes.int("k") ?? 0;
  const given = node.attributes.int("dtype");
  const dtype = given === undefined ? x.type.dtype : node.dtype(given);
  const { shape: extents } = x.type;
  if (extents.length !== 2) node.refuse(`an operand of rank ${extents.length}`, "rank 2");
  const count = (axis: number) => node.emit("iota", [], { shape: extents, axis, dtype: "i64" });
  const shifted = node.emit("add", [count(0), node.splat("i64", k)], {});
  return node.cast(node.emit("equal", [shifted, count(1)], {}), dtype);
}

function oneHot(node: NodeView): Operand {
  const indices = node.input(0);
  const depth = node.indexList(1, "depth")[0];
  if (!depth) node.refuse("an empty depth", "one number");
  const axis = node.axis(node.attributes.int("axis") ?? -1, indices.type.shape.length + 1);
  const index = node.cast(indices, "i64");
  return node.emit("oneHot", [index, node.input(2)], { axis, depth });
}

function trilu(node: NodeView): Operand {
  const diagonal = node.optional(1) ? (node.integers(1, "k")[0] ?? 0) : 0;
  return node.emit("trilu", [node.input(0)], {
    upper: node.attributes.flag("upper", true),
    diagonal,
  });
}

/** Index t of batch b becomes lengths[b] - 1 - t where t < lengths[b]. */
function reverseSequence(node: NodeView): Operand {
  const x = node.input(0);
  const time = node.axis(node.attributes.int("time_axis") ?? 0, x.type.shape.length);
  const batch = node.axis(node.attributes.int("batch_axis") ?? 1, x.type.shape.length);
  const along = x.type.shape.map((d, i) => (i === batch ? d : one));
  const lengths = node.reshape(node.cast(node.input(1), "i64"), along);
  const counted = node.emit("iota", [], { shape: x.type.shape, axis: time, dtype: "i64" });
  const mirrored = node.emit(
    "sub",
    [node.emit("sub", [lengths, node.splat("i64", 1)], {}), counted],
    {},
  );
  const inside = node.emit("less", [counted, lengths], {});
  const index = node.emit("select", [inside, mirrored, counted], {});
  return node.emit("gatherElements", [x, index], { axis: time });
}

/** The positions of the true entries, then a gather. */
function compress(node: NodeView): Operand {
  const given = node.attributes.int("axis");
  const x = node.input(0);
  const data = given === undefined ? node.reshape(x, [mul(...x.type.shape)]) : x;
  const axis = given === undefined ? 0 : node.axis(given, x.type.shape.length);
  const found = node.emit("nonZero", [node.input(1)], {});
  const positions = node.reshape(found, [found.type.shape[1]!]);
  return node.emit("gather", [data, positions], { axis });
}

/** Crops what is too large and pads what is too small, centred; the odd element goes to the end. */
function centerCropPad(node: NodeView): Operand {
  let x = node.input(0);
  const rank = x.type.shape.length;
  const given = node.attributes.ints("axes");
  const axes = given ? given.map((a) => node.axis(a, rank)) : x.type.shape.map((_, i) => i);
  const target = node.indexList(1, "shape");
  for (const [i, axis] of axes.entries()) {
    const extent = node.fixedExtent(x.type.shape[axis]!, "an extent to crop");
    const wanted = node.fixedExtent(target[i] ?? one, "a target extent");
    const before = Math.floor(Math.abs(extent - wanted) / 2);
    if (wanted < extent) {
      x = sliceAxis(node, x, { axis, start: constant(before), step: 1, size: constant(wanted) });
    } else if (wanted > extent) {
      const at = (amount: number) =>
        x.type.shape.map((_, k) => (k === axis ? constant(amount) : zero));
      const attrs = {
        low: at(before),
        high: at(wanted - extent - before),
        mode: "constant" as const,
      };
      x = node.emit("pad", [x, node.splat(x.type.dtype, 0)], attrs);
    }
  }
  return x;
}

export const movementRows = {
  Reshape: { since: [1, 5, 13, 14, 19, 21, 23, 24, 25], convert: reshape },
  Flatten: { since: [1, 9, 11, 13, 21, 23, 24, 25], convert: flatten },
  Transpose: { since: [1, 13, 21, 23, 24, 25], convert: transpose },
  Squeeze: { since: [1, 11, 13, 21, 23, 24, 25], convert: squeeze },
  Unsqueeze: { since: [1, 11, 13, 21, 23, 24, 25], convert: unsqueeze },
  Concat: { since: [1, 4, 11, 13], convert: concat },
  Split: { since: [2, 11, 13, 18], convert: split },
  Slice: { since: [1, 10, 11, 13], convert: slice },
  Gather: { since: [1, 11, 13], convert: gather },
  GatherElements: { since: [11, 13], convert: gatherElements },
  GatherND: {
    since: [11, 12, 13],
    convert: (node) =>
      node.emit("gatherNd", [node.input(0), node.input(1)], {
        batchDims: node.attributes.int("batch_dims") ?? 0,
      }),
  },
  Scatter: { since: [9], convert: scatterElements },
  ScatterElements: { since: [11, 13, 16, 18], convert: scatterElements },
  ScatterND: { since: [11, 13, 16, 18], convert: scatterNd },
  Expand: { since: [8, 13], convert: expand },
  Tile: { since: [6, 13], convert: tile },
  Pad: { since: [2, 11, 13, 18, 19, 21, 23, 24, 25], convert: pad },
  DepthToSpace: { since: [1, 11, 13], convert: depthToSpace },
  SpaceToDepth: { since: [1, 13], convert: spaceToDepth },
  Shape: { since: [1, 13, 15, 19, 21, 23, 24, 25], convert: shape },
  Size: {
    since: [1, 13, 19, 21, 23, 24, 25],
    convert: (node) => node.indices([mul(...node.input(0).type.shape)], []),
  },
  Constant: { since: [1, 9, 11, 12, 13, 19, 21, 23, 24, 25], convert: constantNode },
  ConstantOfShape: { since: [9, 20, 21, 23, 24, 25], convert: constantOfShape },
  Range: { since: [11], convert: range },
  EyeLike: { since: [9, 22], convert: eyeLike },
  OneHot: { since: [9, 11], convert: oneHot },
  Trilu: { since: [14], convert: trilu },
  ReverseSequence: { since: [10], convert: reverseSequence },
  CenterCropPad: { since: [18], convert: centerCropPad },
  Compress: { since: [9, 11], convert: compress },
} satisfies OperatorTable;
