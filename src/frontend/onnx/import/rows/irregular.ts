/** Windows whose places the data decide: deformable convolution and pooling of regions. */
import { constant, constantValue, type IndexExpr, mul } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { kernelShape, readWindow } from "./linear.ts";
import { sliceAxis } from "./slicing.ts";

/** What a spatial axis of a deformable convolution is made of. */
interface SpatialAxis {
  readonly extent: IndexExpr;
  readonly result: IndexExpr;
  readonly window: number;
  readonly stride: number;
  readonly dilation: number;
  readonly padding: number;
}

/** The axis of the offsets [n, groups, kh, kw, 2, oh, ow] on which offsets along y and x stand. */
const offsetAxis = 4;

function readAxes(
  node: NodeView,
  x: Operand,
  offsets: Operand,
): readonly [SpatialAxis, SpatialAxis] {
  const window = kernelShape(node, node.input(1));
  const { strides, dilations, padLow, padHigh } = readWindow(node, x, window);
  const axes = window.map((size, i): SpatialAxis => {
    const [extent, result] = [x.type.shape[i + 2]!, offsets.type.shape[i + 2]!];
    const [from, to] = [extent, result].map(constantValue);
    const span = (size - 1) * dilations[i]! + 1;
    const places =
      from === undefined
        ? undefined
        : Math.floor((from + padLow[i]! + padHigh[i]! - span) / strides[i]!) + 1;
    if (places !== undefined && to !== undefined && places !== to)
      node.refuse(`offsets for ${to} places of ${places}`, "offsets for each place");
    return {
      extent,
      result,
      window: size,
      stride: strides[i]!,
      dilation: dilations[i]!,
      padding: padLow[i]!,
    };
  });
  return axes as unknown as readonly [SpatialAxis, SpatialAxis];
}

/** Where taps stand along one axis, in pixels, as [n groups, 1, places]. */
function coordinates(node: NodeView, offsets: Operand, axis: SpatialAxis, at: 0 | 1): Operand {
  const { dtype, shape } = offsets.type;
  const [n, groups, kh, kw, , oh, ow] = shape as [
    IndexExpr,
    IndexExpr,
    IndexExpr,
    IndexExpr,
    IndexExpr,
    IndexExpr,
    IndexExpr,
  ];
  const number = (value: number) => node.splat(dtype, value);
  const counted = (extent: IndexExpr, place: number) =>
    node.emit("iota", [], {
      shape: [0, 1, 2, 3].map((i) => (i === place ? extent : one)),
      axis: place,
      dtype,
    });
  const places = node.emit("mul", [counted(axis.result, at + 2), number(axis.stride)], {});
  const taps = node.emit("mul", [counted(constant(axis.window), at), number(axis.dilation)], {});
  const regular = node.emit(
    "add",
    [node.emit("add", [places, taps], {}), number(-axis.padding)],
    {},
  );
  const part = sliceAxis(node, offsets, {
    axis: offsetAxis,
    start: constant(at),
    step: 1,
    size: one,
  });
  const moved = node.emit("add", [node.reshape(part, [n, groups, kh, kw, oh, ow]), regular], {});
  return node.reshape(moved, [mul(n, groups), one, mul(kh, kw, oh, ow)]);
}

/** Pixels around places between them. */
interface Neighbour {
  /** The pixel, as a real number. */
  readonly pixel: Operand;
  readonly weight: Operand;
  readonly isInside: Operand;
}

/** The pixels before and behind each place along one axis, and how much of each is taken. */
function neighbours(node: NodeView, place: Operand, extent: IndexExpr): readonly Neighbour[] {
  const number = (value: number) => node.splat(place.type.dtype, value);
  const before = node.emit("floor", [place], {});
  const behind = node.emit("sub", [place, before], {});
  const limit = node.cast(node.indices([extent], []), place.type.dtype);
  return [0, 1].map((step) => {
    const pixel = step === 0 ? before : node.emit("add", [before, number(1)], {});
    const isInside = node.emit(
      "and",
      [node.emit("lessEqual", [number(0), pixel], {}), node.emit("less", [pixel, limit], {})],
      {},
    );
    const weight = step === 1 ? behind : node.emit("sub", [number(1), behind], {});
    return { pixel, weight, isInside };
  });
}

/** Data [b, c, h, w] at places [b, 1, p] between pixels, with zeros outside: [b, c, p]. */
function sampledBetween(node: NodeView, data: Operand, y: Operand, x: Operand): Operand {
  const { dtype, shape } = data.type;
  const [b, c, h, w] = shape as [IndexExpr, IndexExpr, IndexExpr, IndexExpr];
  const flat = node.reshape(data, [b, c, mul(h, w)]);
  const full = [b, c, y.type.shape[2]!];
  const width = node.indices([w], []);
  const corners = neighbours(node, y, h).flatMap((row) =>
    neighbours(node, x, w).map((column): Operand => {
      const isInside = node.emit("and", [row.isInside, column.isInside], {});
      const known = (pixel: Operand) =>
        node.cast(node.emit("select", [isInside, pixel, node.splat(dtype, 0)], {}), "i64");
      const start = node.emit("mul", [known(row.pixel), width], {});
      const at = node.emit("add", [start, known(column.pixel)], {});
      const index = node.emit("broadcast", [at], { shape: full });
      const value = node.emit("gatherElements", [flat, index], { axis: 2 });
      const weight = node.emit("mul", [row.weight, column.weight], {});
      const part = node.emit("mul", [value, weight], {});
      return node.emit("select", [isInside, part, node.splat(dtype, 0)], {});
    }),
  );
  return corners.reduce((sum, part) => node.emit("add", [sum, part], {}));
}

/**
 * A convolution that reads each tap at a place of its own: the taps are sampled between pixels (zeros
 * outside), then summed by the weights as one product.
 */
function deformableConvolution(node: NodeView): Operand {
  const { attributes } = node;
  const [x, weights, given] = [node.input(0), node.input(1), node.input(2)];
  for (const o of [x, weights, given]) node.checkRank(o, 4, "an operand");
  const groups = constant(attributes.int("group") ?? 1);
  const own = constant(attributes.int("offset_group") ?? 1);
  const [n, , h, w] = x.type.shape as [IndexExpr, IndexExpr, IndexExpr, IndexExpr];
  const channels = node.fixedExtent(x.type.shape[1]!, "the number of channels");
  const results = node.fixedExtent(weights.type.shape[0]!, "the number of results");
  const [g, og] = [groups, own].map((e) => constantValue(e)!) as [number, number];
  if (g < 1 || og < 1 || channels % g !== 0 || channels % og !== 0 || results % g !== 0)
    node.refuse(`${channels} channels to ${results} in groups of ${g} and ${og}`, "divisors");
  const axes = readAxes(node, x, given);
  const [oh, ow] = axes.map((a) => a.result) as [IndexExpr, IndexExpr];
  const [kh, kw] = axes.map((a) => a.window) as [number, number];
  const taps = constant(kh * kw);
  const offsets = node.reshape(given, [n, own, constant(kh), constant(kw), constant(2), oh, ow]);
  const [y0, x0] = axes.map((axis, i) => coordinates(node, offsets, axis, i as 0 | 1)) as [
    Operand,
    Operand,
  ];
  const data = node.reshape(x, [mul(n, own), constant(channels / og), h, w]);
  const sampled = sampledBetween(node, data, y0, x0);
  const mask = node.optional(4);
  const split = node.reshape(sampled, [n, own, constant(channels / og), taps, oh, ow]);
  const masked = mask
    ? node.emit("mul", [split, node.reshape(mask, [n, own, one, taps, oh, ow])], {})
    : split;
  const lhs = node.reshape(masked, [n, groups, constant(channels / g), taps, oh, ow]);
  const rhs = node.reshape(weights, [groups, constant(results / g), constant(channels / g), taps]);
  const product = node.emit("contract", [lhs, rhs], {
    lhs: ["n", "g", "c", "k", "y", "x"],
    rhs: ["g", "o", "c", "k"],
    output: ["n", "g", "o", "y", "x"],
    accumulator: x.type.dtype,
  });
  const y = node.reshape(product, [n, constant(results), oh, ow]);
  const bias = node.optional(3);
  return bias ? node.emit("add", [y, node.reshape(bias, [constant(results), one, one])], {}) : y;
}

/** Half away from zero. */
function rounded(node: NodeView, x: Operand): Operand {
  const half = node.splat(x.type.dtype, 0.5);
  const away = node.emit("mul", [node.emit("sign", [x], {}), half], {});
  return node.emit("trunc", [node.emit("add", [x, away], {})], {});
}

interface Bins {
  /** [r, bins, extent]: whether a pixel lies in a bin. */
  readonly inside: Operand;
  /** [r, bins] */
  readonly isEmpty: Operand;
}

/** The pixels of each of `count` bins between two ends [r], which are pixels too; bins may overlap. */
function bins(
  node: NodeView,
  { low, high }: { readonly low: Operand; readonly high: Operand },
  { count, extent }: { readonly count: number; readonly extent: IndexExpr },
): Bins {
  const { dtype, shape } = low.type;
  const number = (value: number) => node.splat(dtype, value);
  const column = (x: Operand) => node.reshape(x, [shape[0]!, one]);
  const length = node.emit("add", [node.emit("sub", [high, low], {}), number(1)], {});
  const size = node.emit("div", [node.emit("max", [length, number(1)], {}), number(count)], {});
  const bin = node.emit("iota", [], { shape: [one, constant(count)], axis: 1, dtype });
  const last = node.cast(node.indices([extent], []), dtype);
  const end = (index: Operand, op: "floor" | "ceil") => {
    const inBins = node.emit(op, [node.emit("mul", [index, column(size)], {})], {});
    const moved = node.emit("add", [inBins, column(low)], {});
    return node.emit("max", [node.emit("min", [moved, last], {}), number(0)], {});
  };
  const next = node.emit("add", [bin, number(1)], {});
  const [from, to] = [end(bin, "floor"), end(next, "ceil")];
  const pixel = node.emit("iota", [], { shape: [one, one, extent], axis: 2, dtype });
  const wide = (x: Operand) => node.reshape(x, [shape[0]!, constant(count), one]);
  const after = node.emit("lessEqual", [wide(from), pixel], {});
  const before = node.emit("less", [pixel, wide(to)], {});
  return {
    inside: node.emit("and", [after, before], {}),
    isEmpty: node.emit("lessEqual", [to, from], {}),
  };
}

/** The maximum of each bin of each region [batch, x1, y1, x2, y2], rows first; 0 where a bin is empty. */
function maxRegionPool(node: NodeView): Operand {
  const { attributes } = node;
  const [x, regions] = [node.input(0), node.input(1)];
  node.checkRank(x, 4, "pictures");
  node.checkRank(regions, 2, "regions");
  const [height, width] = attributes.ints("pooled_shape") ?? [];
  if (!height || !width || height < 1 || width < 1)
    return attributes.refuse("pooled_shape", `[${height}, ${width}]`, "two positive extents");
  const { dtype } = x.type;
  const [, c, h, w] = x.type.shape as [IndexExpr, IndexExpr, IndexExpr, IndexExpr];
  const r = regions.type.shape[0]!;
  const field = (i: number) => {
    const part = sliceAxis(node, regions, { axis: 1, start: constant(i), step: 1, size: one });
    return node.reshape(part, [r]);
  };
  const scale = node.splat(dtype, attributes.float("spatial_scale") ?? 1);
  const corner = (i: number) => rounded(node, node.emit("mul", [field(i), scale], {}));
  const rows = bins(node, { low: corner(2), high: corner(4) }, { count: height, extent: h });
  const columns = bins(node, { low: corner(1), high: corner(3) }, { count: width, extent: w });
  const own = node.emit("gather", [x, node.cast(field(0), "i64")], { axis: 0 });
  const lowest = node.splat(dtype, -Infinity);
  const [ph, pw] = [constant(height), constant(width)];
  const inRow = node.reshape(rows.inside, [r, one, ph, h, one]);
  const byRow = node.emit("select", [inRow, node.reshape(own, [r, c, one, h, w]), lowest], {});
  const tall = node.emit("reduce", [byRow], { kind: "max", axes: [3], keepDims: false });
  const inColumn = node.reshape(columns.inside, [r, one, one, pw, w]);
  const wide = node.reshape(tall, [r, c, ph, one, w]);
  const both = node.emit("select", [inColumn, wide, lowest], {});
  const most = node.emit("reduce", [both], { kind: "max", axes: [4], keepDims: false });
  const empty = node.emit(
    "or",
    [
      node.reshape(rows.isEmpty, [r, one, ph, one]),
      node.reshape(columns.isEmpty, [r, one, one, pw]),
    ],
    {},
  );
  return node.emit("select", [empty, node.splat(dtype, 0), most], {});
}

export const irregularRows = {
  DeformConv: { since: [19, 22], convert: deformableConvolution },
  MaxRoiPool: { since: [1, 22], convert: maxRegionPool },
} satisfies OperatorTable;
