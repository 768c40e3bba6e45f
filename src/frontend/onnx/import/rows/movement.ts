/** Operators that reshape, cut, join, permute and repeat. */

import {
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  indexEquals,
  mul,
} from "../../../../semantics/index-expr.ts";
import { rangeOf, simplify } from "../../../../semantics/index-range.ts";
import { checkShapeSize } from "../extent-limits.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

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
  if (fixed === 0) return constant(0);
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
  return node.concat(filled, axis);
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

function depthToSpace(node: NodeView): Operand {
  const mode = node.attributes.choice("mode", "DCR", "CRD");
  const lower = mode === "DCR" ? "dcr" : "crd";
  const attrs = { blockSize: readBlockSize(node), mode: lower } as const;
  const channels =
    constantValue(node.input(0).type.shape[1] ?? constant(0)) ?? attrs.blockSize ** 2;
  if (channels < 1 || channels % attrs.blockSize ** 2 !== 0) {
    node.refuse(`${channels} channels`, `a multiple of ${attrs.blockSize ** 2}`);
  }
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

export function trilu(node: NodeView): Operand {
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

export const movementRows = {
  Reshape: { since: [1, 5, 13, 14, 19, 21, 23, 24, 25], convert: reshape },
  Flatten: { since: [1, 9, 11, 13, 21, 23, 24, 25], convert: flatten },
  Transpose: { since: [1, 13, 21, 23, 24, 25], convert: transpose },
  Squeeze: { since: [1, 11, 13, 21, 23, 24, 25], convert: squeeze },
  Unsqueeze: { since: [1, 11, 13, 21, 23, 24, 25], convert: unsqueeze },
  Concat: { since: [1, 4, 11, 13], convert: concat },
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
  DepthToSpace: { since: [1, 11, 13], convert: depthToSpace },
  SpaceToDepth: { since: [1, 13], convert: spaceToDepth },
  Trilu: { since: [14], convert: trilu },
  ReverseSequence: { since: [10], convert: reverseSequence },
  Compress: { since: [9, 11], convert: compress },
} satisfies OperatorTable;
