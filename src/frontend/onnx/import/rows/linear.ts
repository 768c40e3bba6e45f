/** Matrix products and convolutions. */

import type { WindowAttrs } from "../../../../semantics/core-ops.ts";
import type { DType } from "../../../../semantics/dtype.ts";
import { constant, constantValue, type IndexExpr } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

/** Element type of a product's sum: the operands' own. */
const sumType = (x: Operand): DType => x.type.dtype;

const batchLabel = (i: number): string => `b${i}`;

/**
 * numpy.matmul: batch axes broadcast from the right, a vector has no row or column. Batch axes of
 * extent 1 are left out of the contraction (contract does not broadcast) and restored afterwards.
 */
export function matMul(node: NodeView, a: Operand, b: Operand): Operand {
  const [ra, rb] = [a.type.shape.length, b.type.shape.length];
  if (ra === 0 || rb === 0) node.refuse("a scalar operand", "operands of rank 1 or more");
  const batch = Math.max(ra, rb, 2) - 2;
  const [lhs, left] = dropUnits(node, a, ra === 1 ? ["k"] : ["i", "k"], batch);
  const [rhs, right] = dropUnits(node, b, rb === 1 ? ["k"] : ["k", "j"], batch);
  const shared = Array.from({ length: batch }, (_, i) => batchLabel(i));
  const kept = shared.filter((label) => lhs.includes(label) || rhs.includes(label));
  const matrix = [...(ra === 1 ? [] : ["i"]), ...(rb === 1 ? [] : ["j"])];
  const attrs = { lhs, rhs, output: [...kept, ...matrix], accumulator: sumType(a) };
  const product = node.emit("contract", [left, right], attrs);
  const extents = product.type.shape;
  const restored = shared.map((label) => extents[kept.indexOf(label)] ?? one);
  return node.reshape(product, [...restored, ...extents.slice(kept.length)]);
}

/** The operand without batch axes of extent 1, and its labels. */
function dropUnits(
  node: NodeView,
  x: Operand,
  matrix: readonly string[],
  batch: number,
): readonly [readonly string[], Operand] {
  const extra = x.type.shape.length - matrix.length;
  const labels: string[] = [];
  const shape: IndexExpr[] = [];
  for (const [i, extent] of x.type.shape.slice(0, extra).entries()) {
    if (constantValue(extent) === 1) continue;
    labels.push(batchLabel(batch - extra + i));
    shape.push(extent);
  }
  const reshaped = node.reshape(x, [...shape, ...x.type.shape.slice(extra)]);
  return [[...labels, ...matrix], reshaped];
}

/** alpha A' B' + beta C, with A and B transposed on demand. */
export function gemm(node: NodeView): Operand {
  const { attributes } = node;
  const [a, b, c] = [node.input(0), node.input(1), node.optional(2)];
  const [alpha, beta] = [attributes.float("alpha") ?? 1, attributes.float("beta") ?? 1];
  const lhs = attributes.flag("transA", false) ? ["k", "i"] : ["i", "k"];
  const rhs = attributes.flag("transB", false) ? ["j", "k"] : ["k", "j"];
  const attrs = { lhs, rhs, output: ["i", "j"], accumulator: sumType(a) };
  const product = scaled(node, node.emit("contract", [a, b], attrs), alpha);
  if (!c || beta === 0) return product;
  return node.emit("add", [product, scaled(node, c, beta)], {});
}

function scaled(node: NodeView, x: Operand, factor: number): Operand {
  return factor === 1 ? x : node.emit("mul", [x, node.splat(x.type.dtype, factor)], {});
}

/** @returns the axes of each operand that "..." stands for, or would */
function checkEquation(node: NodeView, equation: string, terms: readonly string[]) {
  const inputs = node.allInputs();
  const refuse = (allowed: string): never =>
    node.attributes.refuse("equation", JSON.stringify(equation), allowed);
  const sides = equation.split("->");
  const parts = [...terms, ...sides.slice(1)];
  if (sides.length > 2 || !parts.every((t) => /^[A-Za-z]*(\.\.\.)?[A-Za-z]*$/.test(t))) {
    refuse('terms of letters with at most one "..." each, commas between them, and one "->"');
  }
  if (terms.length !== inputs.length) {
    refuse(`${inputs.length} terms, one for each operand`);
  }
  return terms.map((term, i) => {
    const letters = term.replace("...", "").length;
    const rest = inputs[i]!.type.shape.length - letters;
    const isWhole = term.includes("...") ? rest >= 0 : rest === 0;
    if (!isWhole) {
      refuse(
        `a letter for each axis of an operand, and operand ${i} has ${letters + rest} for the term "${term}"`,
      );
    }
    return rest;
  });
}

/** Only a spelling: letters, "..." for broadcast batch axes, implicit output in alphabetical order. */
function einsum(node: NodeView): Operand {
  const equation = (node.attributes.string("equation") ?? "").replaceAll(/\s/g, "");
  const inputs = node.allInputs();
  const [left = "", right] = equation.split("->");
  const terms = left.split(",");
  const ranks = checkEquation(node, equation, terms);
  const dots = Math.max(0, ...terms.map((t, i) => (t.includes("...") ? ranks[i]! : 0)));
  const expand = (term: string, rank: number): string[] => {
    const [before = "", after = ""] = term.split("...");
    const shared = Array.from({ length: rank }, (_, i) => `dot${dots - rank + i}`);
    return [...before, ...(term.includes("...") ? shared : []), ...after];
  };
  const operands = terms.map((t, i) => expand(t, ranks[i]!));
  const implicit = [...new Set(left.replaceAll(/[^A-Za-z]/g, ""))]
    .filter((l) => left.split(l).length === 2)
    .sort()
    .join("");
  const output = expand(right ?? `${dots > 0 ? "..." : ""}${implicit}`, dots);
  return node.emit("einsum", inputs, { operands, output });
}

/** Strides, dilations and pads of a node over `rank` spatial axes; auto_pad is worked out. */
export function readWindow(
  node: NodeView,
  x: Operand,
  window: readonly number[],
  givenPads?: readonly number[],
): WindowAttrs {
  const { attributes } = node;
  const rank = window.length;
  const list = (name: string, otherwise: number, length = rank): readonly number[] => {
    const values = attributes.ints(name) ?? new Array<number>(length).fill(otherwise);
    if (values.length !== length) attributes.refuse(name, `[${values}]`, `${length} numbers`);
    return values;
  };
  const strides = list("strides", 1);
  const dilations = list("dilations", 1);
  if (strides.some((s) => s < 1)) attributes.refuse("strides", `[${strides}]`, "positive strides");
  if (dilations.some((d) => d < 1)) attributes.refuse("dilations", `[${dilations}]`, "1 or more");
  const auto = attributes.choice("auto_pad", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID");
  const pads = givenPads ?? list("pads", 0, 2 * rank);
  if (pads.length !== 2 * rank) node.refuse(`${pads.length} pads`, `${2 * rank} numbers`);
  if (auto === "NOTSET") {
    return { strides, dilations, padLow: pads.slice(0, rank), padHigh: pads.slice(rank) };
  }
  const total = window.map((w, i) => {
    if (auto === "VALID") return 0;
    const extent = samePadding(node, x.type.shape[i + 2]!, strides[i]!);
    return Math.max(0, (w - 1) * dilations[i]! + 1 - extent);
  });
  const low = total.map((t) => (auto === "SAME_LOWER" ? Math.ceil(t / 2) : Math.floor(t / 2)));
  return { strides, dilations, padLow: low, padHigh: total.map((t, i) => t - low[i]!) };
}

/** extent - (ceil(extent / stride) - 1) * stride: what the last window has of the data. */
function samePadding(node: NodeView, extent: IndexExpr, stride: number): number {
  if (stride === 1) return 1;
  const fixed = node.fixedExtent(extent, "an extent padded by auto_pad");
  return fixed - (Math.ceil(fixed / stride) - 1) * stride;
}

/** The extents of the window: the attribute, or the weights' own. */
export function kernelShape(node: NodeView, weights: Operand): readonly number[] {
  const own = weights.type.shape
    .slice(2)
    .map((d) => node.fixedExtent(d, "an extent of the weights"));
  const given = node.attributes.ints("kernel_shape");
  if (given && given.join() !== own.join()) {
    node.attributes.refuse("kernel_shape", `[${given}]`, `the weights' [${own}]`);
  }
  return own;
}

export function addBias(node: NodeView, y: Operand, bias: Operand | undefined): Operand {
  if (!bias) return y;
  const spatial = y.type.shape.length - 2;
  const shape = [...bias.type.shape, ...new Array<IndexExpr>(spatial).fill(one)];
  return node.emit("add", [y, node.reshape(bias, shape)], {});
}

export function convolution(node: NodeView): Operand {
  const [x, weights] = [node.input(0), node.input(1)];
  checkSpatial(node, x, weights);
  const groups = node.attributes.int("group") ?? 1;
  const window = readWindow(node, x, kernelShape(node, weights));
  return addBias(
    node,
    node.emit("convolution", [x, weights], { ...window, groups }),
    node.optional(2),
  );
}

export function checkSpatial(node: NodeView, x: Operand, weights: Operand): void {
  const [rx, rw] = [x.type.shape.length, weights.type.shape.length];
  if (rx < 3 || rx !== rw) {
    node.refuse(`operands of rank ${rx} and ${rw}`, "data and weights of the same rank, 3 or more");
  }
}

/**
 * `output_shape` fixes the extents and so the padding (ONNX ConvTranspose, total_padding).
 * @param pads [low…, high…] in the place of the attribute's
 */
export function transposedConvolution(node: NodeView, pads?: readonly number[]): Operand {
  const [x, weights] = [node.input(0), node.input(1)];
  checkSpatial(node, x, weights);
  const { attributes } = node;
  const kernel = kernelShape(node, weights);
  const outputPadding = attributes.ints("output_padding") ?? kernel.map(() => 0);
  const outputShape = attributes.ints("output_shape");
  const groups = attributes.int("group") ?? 1;
  const auto = attributes.string("auto_pad") ?? "NOTSET";
  const fixed = outputShape !== undefined || auto.startsWith("SAME");
  if (!fixed) {
    const attrs = { ...readWindow(node, x, kernel, pads), groups, outputPadding };
    const y = node.emit("transposedConvolution", [x, weights], attrs);
    return addBias(node, y, node.optional(2));
  }
  const window = fixedOutputWindow(node, x, { kernel, outputPadding, outputShape, auto });
  const y = node.emit("transposedConvolution", [x, weights], { ...window, groups });
  return addBias(node, y, node.optional(2));
}

interface FixedOutput {
  readonly kernel: readonly number[];
  readonly outputPadding: readonly number[];
  readonly outputShape: readonly number[] | undefined;
  readonly auto: string;
}

/** Padding is what the full result has too much; what it has too little is added at the high end. */
function fixedOutputWindow(node: NodeView, x: Operand, fixed: FixedOutput) {
  const { kernel, outputPadding, outputShape, auto } = fixed;
  const { attributes } = node;
  attributes.ignore("pads");
  const strides = attributes.ints("strides") ?? kernel.map(() => 1);
  const dilations = attributes.ints("dilations") ?? kernel.map(() => 1);
  const excess = kernel.map((w, i) => {
    const beyond = (w - 1) * dilations[i]! + 1 + outputPadding[i]! - strides[i]!;
    if (!outputShape) return beyond;
    const extent = node.fixedExtent(x.type.shape[i + 2]!, "an extent with output_shape");
    return strides[i]! * extent + beyond - outputShape.at(i - kernel.length)!;
  });
  const total = excess.map((e) => Math.max(0, e));
  const half = total.map((t) => Math.floor(t / 2));
  const padLow = auto === "SAME_UPPER" ? half : total.map((t, i) => t - half[i]!);
  return {
    strides,
    dilations,
    padLow,
    padHigh: total.map((t, i) => t - padLow[i]!),
    outputPadding: outputPadding.map((p, i) => p + Math.max(0, -excess[i]!)),
  };
}

/**
 * Sums overlapping blocks [n, c * block, count] into an image: a transposed convolution whose weights
 * put each element of a block in its place.
 */
function columnsToImage(node: NodeView): Operand {
  const x = node.input(0);
  node.checkRank(x, 3, "the columns");
  const [image, block] = [node.integers(1, "image_shape"), node.integers(2, "block_shape")];
  const size = block.reduce((a, b) => a * b, 1);
  const rows = node.fixedExtent(x.type.shape[1]!, "the number of rows");
  const channels = rows / size;
  if (image.length !== block.length || size < 1 || size > 4096 || !Number.isInteger(channels)) {
    node.refuse(`blocks [${block}] of ${rows} rows`, "a divisor of the rows, one extent per axis");
  }
  const window = readWindow(node, x, block);
  const { strides, dilations, padLow, padHigh } = window;
  const counts = image.map((extent, i) => {
    const span = extent + padLow[i]! + padHigh[i]! - dilations[i]! * (block[i]! - 1) - 1;
    return Math.floor(span / strides[i]!) + 1;
  });
  const outputPadding = image.map((extent, i) => {
    const full = (counts[i]! - 1) * strides[i]! + dilations[i]! * (block[i]! - 1) + 1;
    return extent - (full - padLow[i]! - padHigh[i]!);
  });
  const place = node.emit("iota", [], { shape: [constant(size), one], axis: 0, dtype: "i64" });
  const index = node.emit("iota", [], { shape: [one, constant(size)], axis: 1, dtype: "i64" });
  const unit = node.cast(node.emit("equal", [place, index], {}), x.type.dtype);
  const each = [constant(channels), constant(size), constant(size)];
  const spread = node.emit("broadcast", [unit], { shape: each });
  const kernel = node.reshape(spread, [constant(rows), one, ...block.map(constant)]);
  const blocks = node.reshape(x, [...x.type.shape.slice(0, 2), ...counts.map(constant)]);
  const attrs = { ...window, groups: channels, outputPadding };
  return node.emit("transposedConvolution", [blocks, kernel], attrs);
}

function matMulInteger(node: NodeView): Operand {
  const [a, b, aZero, bZero] = [node.input(0), node.input(1), node.optional(2), node.optional(3)];
  const inputs = [a, b, aZero, bZero].filter((x) => x !== undefined);
  return node.emit("matMulInteger", inputs, {
    aZero: aZero !== undefined,
    bZero: bZero !== undefined,
  });
}

function convInteger(node: NodeView): Operand {
  const [x, w, xZero, wZero] = [node.input(0), node.input(1), node.optional(2), node.optional(3)];
  checkSpatial(node, x, w);
  const groups = node.attributes.int("group") ?? 1;
  const window = readWindow(node, x, kernelShape(node, w));
  const inputs = [x, w, xZero, wZero].filter((o) => o !== undefined);
  const zeros = { xZero: xZero !== undefined, wZero: wZero !== undefined };
  return node.emit("convInteger", inputs, { ...window, groups, ...zeros });
}

export const linearRows = {
  MatMul: { since: [1, 9, 13], convert: (node) => matMul(node, node.input(0), node.input(1)) },
  Gemm: { since: [7, 9, 11, 13], convert: gemm },
  Einsum: { since: [12], convert: einsum },
  Conv: { since: [1, 11, 22], convert: convolution },
  ConvTranspose: { since: [1, 11, 22], convert: transposedConvolution },
  Col2Im: { since: [18], convert: columnsToImage },
  MatMulInteger: { since: [10], convert: matMulInteger },
  ConvInteger: { since: [10], convert: convInteger },
} satisfies OperatorTable;
