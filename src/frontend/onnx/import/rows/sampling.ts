/** Resize, grid sampling, region pooling, random tensors. */
import type { ResizeAttrs } from "../../../../semantics/core-ops.ts";
import {
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  indexEquals,
  mul,
  sub,
} from "../../../../semantics/index-expr.ts";
import { reject } from "../../../../support/diagnostic.ts";
import { onnxTypeOf } from "../../data-types.ts";
import { multipliesSafely } from "../extent-limits.ts";
import type { NodeView } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { fromNumber, type SymbolicNumber } from "../symbolic-number.ts";
import { sliceAxis } from "./slicing.ts";

/** Extents along the resized axes, with the scales where those are what the model gave. */
interface Target {
  readonly axes: readonly number[];
  readonly sizes: readonly IndexExpr[];
  readonly scales?: readonly number[];
}

/** Sizes floor(extent * scale); the scale itself goes on to the coordinate transform if constant. */
function fromScales(
  node: NodeView,
  shape: readonly IndexExpr[],
  axes: readonly number[],
  scales: readonly SymbolicNumber[],
): Target {
  if (scales.length !== axes.length) node.refuse(`${scales.length} scales`, `${axes.length}`);
  const sizes = axes.map((axis, i) => {
    const { numerator, denominator } = scales[i]!;
    if (!multipliesSafely(shape[axis]!, numerator))
      node.refuse("a scale that overflows", "extents below 2^40");
    return floorDiv(mul(shape[axis]!, numerator), denominator);
  });
  const fixed = scales.map((s) => {
    const [a, b] = [constantValue(s.numerator), constantValue(s.denominator)];
    return a === undefined || b === undefined ? undefined : a / b;
  });
  const known = fixed.filter((f) => f !== undefined);
  return known.length === fixed.length ? { axes, sizes, scales: known } : { axes, sizes };
}

/** Keeping the aspect ratio needs constant extents: one scale for all axes, sizes rounded. */
function keepAspect(
  node: NodeView,
  shape: readonly IndexExpr[],
  target: Target,
  policy: "not_larger" | "not_smaller",
): Target {
  const extents = target.axes.map((a) =>
    node.fixedExtent(shape[a]!, "an extent kept in proportion"),
  );
  const wanted = target.sizes.map((s) => node.fixedExtent(s, "a size kept in proportion"));
  const ratios = wanted.map((w, i) => w / extents[i]!);
  const scale = policy === "not_larger" ? Math.min(...ratios) : Math.max(...ratios);
  const sizes = extents.map((e) => constant(Math.floor(scale * e + 0.5)));
  return { axes: target.axes, sizes, scales: extents.map(() => scale) };
}

function resizeTarget(
  node: NodeView,
  inputs: { readonly scales: number; readonly sizes: number },
): Target {
  const { shape } = node.input(0).type;
  const given = node.attributes.ints("axes");
  const axes = given ? given.map((a) => node.axis(a, shape.length)) : shape.map((_, i) => i);
  const policy = node.attributes.choice(
    "keep_aspect_ratio_policy",
    "stretch",
    "not_larger",
    "not_smaller",
  );
  const scales = node.optional(inputs.scales);
  const hasScales = scales?.type.shape.some((d) => constantValue(d) !== 0);
  if (hasScales) return fromScales(node, shape, axes, scaleList(node, inputs.scales));
  const sizes = node.indexList(inputs.sizes, "sizes");
  if (sizes.length !== axes.length) node.refuse(`${sizes.length} sizes`, `${axes.length}`);
  const target = { axes, sizes };
  return policy === "stretch" ? target : keepAspect(node, shape, target, policy);
}

/** Constant scales may be any float; symbolic ones are quotients of extents. */
function scaleList(node: NodeView, index: number): readonly SymbolicNumber[] {
  const operand = node.input(index);
  if (operand.kind !== "constant") return node.symbolic(index, "scales");
  return node.numbers(index, "scales").map((v) => exactScale(node, v));
}

/** The 24 bits of a scale of 2^-16 end at 2^-40: vocoders reduce phases by 1 / 300. */
const finestScale = 2 ** 40;

function exactScale(node: NodeView, scale: number): SymbolicNumber {
  const exact = fromNumber(scale, finestScale);
  return exact ?? node.refuse(`the scale ${scale}`, "scales from 2^-16 to 2^16");
}

/** Axes that keep their extent are dropped, so that a plain 2-d resize looks like one. */
function dropUnchanged(shape: readonly IndexExpr[], target: Target, anyRegion: boolean): Target {
  const { axes, sizes, scales } = target;
  const changed = axes.map(
    (axis, i) => anyRegion || !indexEquals(shape[axis]!, sizes[i]!) || (scales?.[i] ?? 1) !== 1,
  );
  const pick = <T>(list: readonly T[]) => list.filter((_, i) => changed[i]);
  return { axes: pick(axes), sizes: pick(sizes), ...(scales && { scales: pick(scales) }) };
}

/** Entries in the order of ascending axes. */
function sortByAxis<T>(axes: readonly number[], list: readonly T[]): readonly T[] {
  const order = axes.map((_, i) => i).sort((a, b) => axes[a]! - axes[b]!);
  return order.map((i) => list[i]!);
}

function sortTarget({ axes, sizes, scales }: Target): Target {
  const sorted = { axes: sortByAxis(axes, axes), sizes: sortByAxis(axes, sizes) };
  return scales ? { ...sorted, scales: sortByAxis(axes, scales) } : sorted;
}

function resize(node: NodeView): Operand {
  const { attributes } = node;
  const x = node.input(0);
  const old = node.version < 11;
  const target = resizeTarget(node, old ? { scales: 1, sizes: -1 } : { scales: 2, sizes: 3 });
  const coordinates = readCoordinates(node, old);
  const crop = coordinates === "tf_crop_and_resize";
  const kept = dropUnchanged(x.type.shape, sortTarget(target), crop);
  const region = crop ? node.numbers(1, "roi") : [];
  const attrs: ResizeAttrs = {
    mode: attributes.choice("mode", "nearest", "linear", "cubic"),
    coordinates,
    nearest: old
      ? "floor"
      : attributes.choice(
          "nearest_mode",
          "round_prefer_floor",
          "round_prefer_ceil",
          "floor",
          "ceil",
        ),
    cubicCoefficient: attributes.float("cubic_coeff_a") ?? -0.75,
    excludeOutside: attributes.flag("exclude_outside", false),
    antialias: attributes.flag("antialias", false),
    extrapolation: attributes.float("extrapolation_value") ?? 0,
    ...kept,
    ...(crop && {
      regionStart: sortByAxis(target.axes, region.slice(0, region.length / 2)),
      regionEnd: sortByAxis(target.axes, region.slice(region.length / 2)),
    }),
  };
  return kept.axes.length === 0 ? x : node.emit("resize", [x], attrs);
}

function readCoordinates(node: NodeView, old: boolean): ResizeAttrs["coordinates"] {
  if (old) return "asymmetric";
  const name = "coordinate_transformation_mode";
  if (node.attributes.string(name) === "tf_half_pixel_for_nn") {
    node.attributes.refuse(name, "tf_half_pixel_for_nn", "half_pixel and the modes of version 13");
  }
  return node.attributes.choice(
    name,
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
  );
}

/** Upsample is Resize of old: scales from an attribute or an operand, asymmetric coordinates. */
function upsample(node: NodeView): Operand {
  const x = node.input(0);
  const { shape } = x.type;
  const axes = shape.map((_, i) => i);
  const given = node.version < 9 ? node.attributes.floats("scales") : node.numbers(1, "scales");
  const scales = (given ?? []).map((v) => exactScale(node, v));
  const kept = dropUnchanged(shape, fromScales(node, shape, axes, scales), false);
  const mode = node.attributes.choice("mode", "nearest", "linear");
  if (kept.axes.length === 0) return x;
  return node.emit("resize", [x], {
    mode,
    coordinates: "asymmetric",
    nearest: "floor",
    cubicCoefficient: -0.75,
    excludeOutside: false,
    antialias: false,
    extrapolation: 0,
    ...kept,
  });
}

function gridSample(node: NodeView): Operand {
  const names = { bilinear: "linear", bicubic: "cubic" } as const;
  const { attributes } = node;
  const modes =
    node.version < 20
      ? attributes.choice("mode", "bilinear", "nearest", "bicubic")
      : attributes.choice("mode", "linear", "nearest", "cubic");
  const mode = modes === "bilinear" || modes === "bicubic" ? names[modes] : modes;
  return node.emit("gridSample", [node.input(0), node.input(1)], {
    mode,
    padding: attributes.choice("padding_mode", "zeros", "border", "reflection"),
    alignCorners: attributes.flag("align_corners", false),
  });
}

/** theta [n, r, r + 1] applied to the homogeneous grid over [-1, 1] in each of r axes. */
function affineGrid(node: NodeView): Operand {
  const theta = node.input(0);
  const { dtype } = theta.type;
  node.checkRank(theta, 3, "theta");
  const extents = node.integers(1, "size").slice(2);
  const rank = extents.length;
  const aligned = node.attributes.flag("align_corners", false);
  const shape = extents.map(constant);
  // Coordinates are listed innermost axis first: x, y(, z), 1.
  const coordinates = extents.map((extent, axis): Operand => {
    const count = node.emit("iota", [], { shape, axis, dtype });
    const step = aligned ? 2 / (extent - 1) : 2 / extent;
    const first = aligned ? -1 : -1 + step / 2;
    const scaled = node.emit("mul", [count, node.splat(dtype, step)], {});
    return node.emit("add", [scaled, node.splat(dtype, first)], {});
  });
  const ones = node.emit("broadcast", [node.splat(dtype, 1)], { shape });
  const columns = [...coordinates.reverse(), ones].map((c) =>
    node.reshape(c, [...shape, constant(1)]),
  );
  const grid = node.emit("concat", columns, { axis: rank });
  const space = extents.map((_, i) => `s${i}`);
  const labels = { lhs: ["n", "r", "h"], rhs: [...space, "h"], output: ["n", ...space, "r"] };
  return node.emit("contract", [theta, grid], { ...labels, accumulator: dtype });
}

function roiAlign(node: NodeView): Operand {
  const { attributes } = node;
  const halfPixel =
    node.version >= 16 &&
    attributes.choice("coordinate_transformation_mode", "half_pixel", "output_half_pixel") ===
      "half_pixel";
  return node.emit("roiAlign", [node.input(0), node.input(1), node.input(2)], {
    mode: attributes.choice("mode", "avg", "max"),
    outputHeight: attributes.int("output_height") ?? 1,
    outputWidth: attributes.int("output_width") ?? 1,
    samplingRatio: attributes.int("sampling_ratio") ?? 0,
    spatialScale: attributes.float("spatial_scale") ?? 1,
    halfPixel,
  });
}

/** Shapes and parameters are attributes; without a seed the seed is 0, so that runs repeat. */
function random(op: "randomUniform" | "randomNormal", like: boolean) {
  return (node: NodeView): Operand => {
    const { attributes } = node;
    const dtypeNumber = attributes.int("dtype");
    const x = like ? node.input(0) : undefined;
    const dtype = node.dtype(dtypeNumber ?? (x ? onnxTypeOf[x.type.dtype] : 1));
    const shape = x ? x.type.shape : (attributes.ints("shape") ?? []).map(constant);
    const [a, b] =
      op === "randomUniform" ? (["low", "high"] as const) : (["mean", "scale"] as const);
    return node.emit(op, [], {
      shape,
      dtype,
      a: attributes.float(a) ?? 0,
      b: attributes.float(b) ?? 1,
      seed: Math.trunc(attributes.float("seed") ?? 0),
    });
  };
}

/** 1 with the probability that the operand gives. */
function bernoulli(node: NodeView): Operand {
  const x = node.input(0);
  const given = node.attributes.int("dtype");
  const dtype = given === undefined ? x.type.dtype : node.dtype(given);
  const seed = Math.trunc(node.attributes.float("seed") ?? 0);
  const { shape } = x.type;
  const drawn = node.emit("randomUniform", [], { shape, dtype: x.type.dtype, a: 0, b: 1, seed });
  return node.cast(node.emit("less", [drawn, x], {}), dtype);
}

/**
 * Classes drawn by unnormalised log-probabilities [b, classes]: a uniform number below their sum lies in
 * the part of one class when the classes stand in a row. Without a seed the seed is 0.
 */
function multinomial(node: NodeView): Operand {
  const { attributes } = node;
  const x = node.input(0);
  node.checkRank(x, 2, "log-probabilities");
  const [batch, classes] = x.type.shape as [IndexExpr, IndexExpr];
  const count = attributes.int("sample_size") ?? 1;
  if (count < 1) attributes.refuse("sample_size", count, "1 or more");
  const dtype = node.dtype(attributes.int("dtype") ?? 6);
  const seed = Math.trunc(attributes.float("seed") ?? 0);
  const wide = node.cast(x, "f32");
  const top = node.emit("reduce", [wide], { kind: "max", axes: [1], keepDims: true });
  const likely = node.emit("exp", [node.emit("sub", [wide, top], {})], {});
  const along = { kind: "sum", axis: 1, exclusive: false, reverse: false } as const;
  const ends = node.emit("cumulative", [likely], along);
  const last = sub(classes, 1);
  const whole = sliceAxis(node, ends, { axis: 1, start: last, step: 1, size: constant(1) });
  const shape = [batch, constant(count)];
  const drawn = node.emit("randomUniform", [], { shape, dtype: "f32", a: 0, b: 1, seed });
  const place = node.emit("mul", [drawn, whole], {});
  const [rows, columns] = [
    node.reshape(ends, [batch, constant(1), classes]),
    node.reshape(place, [batch, constant(count), constant(1)]),
  ];
  const passed = node.cast(node.emit("lessEqual", [rows, columns], {}), "i32");
  const index = node.emit("reduce", [passed], { kind: "sum", axes: [2], keepDims: false });
  // Rounding may put a number at the very end of the row.
  const limit = node.cast(node.indices([last], []), "i32");
  return node.cast(node.emit("min", [index, limit], {}), dtype);
}

/** The size of a picture stands in its bytes, and no program decodes them. */
function imageDecoder(node: NodeView): never {
  return reject("ONX009", "pictures in a file format are not decoded", {
    at: node.origin.at,
    help: "decode the picture before the model runs and feed the result: cut ImageDecoder off and declare its output as an input, u8 [height, width, channels]",
  });
}

export const samplingRows = {
  Resize: { since: [10, 11, 13, 18, 19], convert: resize },
  Upsample: { since: [7, 9], convert: upsample },
  GridSample: { since: [16, 20, 22], convert: gridSample },
  AffineGrid: { since: [20], convert: affineGrid },
  RoiAlign: { since: [10, 16, 22], convert: roiAlign },
  Bernoulli: { since: [15, 22], convert: bernoulli },
  Multinomial: { since: [7, 22], convert: multinomial },
  ImageDecoder: { since: [20, 26], convert: imageDecoder },
  RandomUniform: { since: [1, 22], convert: random("randomUniform", false) },
  RandomNormal: { since: [1, 22], convert: random("randomNormal", false) },
  RandomUniformLike: { since: [1, 22], convert: random("randomUniform", true) },
  RandomNormalLike: { since: [1, 22], convert: random("randomNormal", true) },
} satisfies OperatorTable;
