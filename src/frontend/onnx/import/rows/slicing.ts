/** Operators that cut and pad: Slice, Split, Pad and what is made of them. */

import {
  add,
  ceilDiv,
  constant,
  constantValue,
  type IndexExpr,
  indexEquals,
  max,
  min,
  mul,
  sub,
} from "../../../../semantics/index-expr.ts";
import { rangeOf, simplify } from "../../../../semantics/index-range.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

const zero = constant(0);

const ranges = (node: NodeView) => node.emitter.assembly.symbols.ranges;

/** Lengths from an attribute (before 13), an operand, or equal parts, as many as outputs. */
function split(node: NodeView): readonly Operand[] {
  const x = node.input(0);
  const axis = node.axis(node.attributes.int("axis") ?? 0, x.type.shape.length);
  const extent = x.type.shape[axis]!;
  const parts = node.outputs.length;
  const stated = node.attributes.int("num_outputs") ?? parts;
  if (stated !== parts) node.attributes.refuse("num_outputs", stated, `${parts}, one an output`);
  const given =
    node.version < 13
      ? node.attributes.ints("split")?.map(constant)
      : node.optional(1) && node.indexList(1, "split");
  const lengths = given ?? equalParts(extent, parts);
  checkParts(node, extent, lengths);
  const results: Operand[] = [];
  let start: IndexExpr = zero;
  for (const length of lengths) {
    results.push(sliceAxis(node, x, { axis, start, step: 1, size: length }));
    start = add(start, length);
  }
  return results;
}

/** That the parts are what the axis has, as far as constants tell. */
function checkParts(node: NodeView, extent: IndexExpr, lengths: readonly IndexExpr[]): void {
  const total = constantValue(extent);
  const known = lengths.map((length) => constantValue(length));
  if (total === undefined || known.some((n) => n === undefined)) return;
  const sizes = known as readonly number[];
  if (sizes.every((n) => n >= 0) && sizes.reduce((a, b) => a + b, 0) === total) return;
  const isEqual = sizes.some((n) => n < 0) && sizes.slice(1, -1).every((n) => n === sizes[0]);
  const found = isEqual
    ? `${sizes.length} parts of ${sizes[0]} elements`
    : `parts of ${sizes.join(", ")} elements`;
  node.refuse(`${found} of an axis of ${total}`, "parts that add up to the axis");
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
  const clampTo = (e: IndexExpr, low: number, high: IndexExpr): IndexExpr => {
    // The axis exists, so its extent is not negative and low <= high.
    if ((constantValue(e) ?? Infinity) <= low) return constant(low);
    if (indexEquals(e, high)) return high;
    return simplify(min(max(e, low), high), ranges(node));
  };
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

/** INT64_MAX and INT32_MAX say "to the end": no symbolic axis is taken to be longer. */
const beyondAnyAxis = 2 ** 31 - 1;

/** A position that may count from the end; its sign must be known. */
function fromEnd(node: NodeView, position: IndexExpr, extent: IndexExpr): IndexExpr {
  const fixed = constantValue(position) ?? 0;
  if (fixed >= beyondAnyAxis && (constantValue(extent) ?? 0) <= fixed) return extent;
  if (fixed <= -beyondAnyAxis) return constant(-1);
  const range = rangeOf(position, ranges(node));
  if (range.min >= 0) return position;
  if (range.max < 0) return add(position, extent);
  return node.refuse(
    `a slice position ${position.key} of unknown sign`,
    "positions whose sign is known",
  );
}

/** What negative pads take away goes first, so that what is wrapped around is what is left (onnxruntime, numpy). */
function cropped(
  node: NodeView,
  x: Operand,
  { low, high }: { readonly low: readonly IndexExpr[]; readonly high: readonly IndexExpr[] },
): {
  readonly x: Operand;
  readonly low: readonly IndexExpr[];
  readonly high: readonly IndexExpr[];
} {
  const taken = (pads: readonly IndexExpr[]): number[] =>
    pads.map((p) => Math.max(0, -(constantValue(p) ?? 0)));
  const [before, behind] = [taken(low), taken(high)];
  let left = x;
  for (const [axis, extent] of x.type.shape.entries()) {
    const [start, end] = [before[axis]!, behind[axis]!];
    if (start + end === 0) continue;
    if ((constantValue(extent) ?? Infinity) < start + end)
      node.refuse(
        `pads that take ${start + end} of ${extent.key} elements`,
        "no more than there are",
      );
    const size = simplify(max(0, sub(extent, start + end)), ranges(node));
    left = sliceAxis(node, left, { axis, start: constant(start), step: 1, size });
  }
  const rest = (pads: readonly IndexExpr[], gone: readonly number[]): readonly IndexExpr[] =>
    pads.map((p, axis) => (gone[axis]! > 0 ? zero : p));
  return { x: left, low: rest(low, before), high: rest(high, behind) };
}

function pad(node: NodeView): Operand {
  const x = node.input(0);
  const rank = x.type.shape.length;
  const mode = node.attributes.choice("mode", "constant", "reflect", "edge", "wrap");
  const asInput = node.version >= 11;
  if (!asInput) node.attributes.ignore("value");
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
  if (mode === "wrap") {
    const { x: left, ...pads } = cropped(node, x, attrs);
    return node.emit("pad", [left], { ...pads, mode });
  }
  if (mode !== "constant") return node.emit("pad", [x], attrs);
  const fill = asInput
    ? (node.optional(2) ?? node.splat(x.type.dtype, 0))
    : node.splat(x.type.dtype, node.attributes.float("value") ?? 0);
  return node.emit("pad", [x, node.reshape(fill, [])], attrs);
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

export const slicingRows = {
  Split: { since: [2, 11, 13, 18], convert: split },
  Slice: { since: [1, 10, 11, 13], convert: slice },
  Pad: { since: [2, 11, 13, 18, 19, 21, 23, 24, 25], convert: pad },
  CenterCropPad: { since: [18], convert: centerCropPad },
} satisfies OperatorTable;
