/**
 * Quantised operators of com.microsoft. Layers over quantised tensors are the layer between dequantise
 * and quantise; weights packed by blocks (MatMulNBits, GatherBlockQuantized) become tensors of 2, 4 or 8
 * bits with a scale for each block, in the form that integer kernels read. Definitions: ONNX Runtime's
 * ContribOperators page.
 */
import type { DType } from "../../../../semantics/dtype.ts";
import { constant, constantValue, type IndexExpr } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { matMul } from "./linear.ts";
import { projectedAttention } from "./microsoft-attention.ts";
import { columns, decodedBlocks, packedTypes, unpacked } from "./packed-weights.ts";
import { pool } from "./pooling.ts";
import { dequantizeLinear, quantizedConvolution, quantizeLinear } from "./quantization.ts";
import { quantizedLstm } from "./recurrent.ts";

type Layer = (node: NodeView, x: Operand) => Operand;

const isWhole = (x: Operand): boolean => x.type.shape.every((d) => constantValue(d) === 1);

/** Operand `first` with its scale and zero point behind it, as real numbers. */
function real(node: NodeView, first: number, axis = 0): Operand {
  const [x, scale] = [node.input(first), node.input(first + 1)];
  const zero = node.optional(first + 2) ?? zeroLike(node, x.type.dtype, scale);
  const whole = isWhole(scale);
  const scalar = (o: Operand) => (whole ? node.reshape(o, []) : o);
  const attrs = whole ? { to: scale.type.dtype } : { axis, to: scale.type.dtype };
  return node.emit("dequantize", [x, scalar(scale), scalar(zero)], attrs);
}

function zeroLike(node: NodeView, dtype: DType, scale: Operand, value = 0): Operand {
  return node.emit("broadcast", [node.splat(dtype, value)], { shape: scale.type.shape });
}

/** Quantised by the scale and zero point at `at`, in the type that the operands have. */
function quantized(node: NodeView, y: Operand, at: number, dtype: DType): Operand {
  const zero = node.optional(at + 1) ?? node.splat(dtype, 0);
  const operands = [y, node.reshape(node.input(at), []), node.reshape(zero, [])];
  return node.emit("quantize", operands, { to: zero.type.dtype, saturate: true });
}

function onReals(layer: Layer) {
  return (node: NodeView): Operand =>
    quantized(node, layer(node, real(node, 0)), 3, node.input(0).type.dtype);
}

function pairwise(op: "add" | "mul") {
  return (node: NodeView): Operand => {
    const y = node.emit(op, [real(node, 0), real(node, 3)], {});
    return quantized(node, y, 6, node.input(0).type.dtype);
  };
}

/** Before operator set 13 the axes from `axis` on are one. */
const softmax: Layer = (node, x) => {
  const { shape } = x.type;
  const axis = node.axis(node.attributes.int("axis") ?? -1, shape.length);
  const joined = (node.attributes.int("opset") ?? 13) < 13 && axis !== shape.length - 1;
  if (joined) node.refuse("several axes of one softmax", "the last axis, or operator set 13");
  return node.emit("softmax", [x], { axis });
};

/** Between channels first, in which layers are defined, and last, if the attribute says so. */
function channelsFirst(layer: Layer): Layer {
  return (node, x) => {
    const rank = x.type.shape.length;
    if (!node.attributes.flag("channels_last", false)) return layer(node, x);
    const spatial = Array.from({ length: rank - 2 }, (_, i) => i);
    const turned = node.transpose(x, [0, rank - 1, ...spatial.map((i) => i + 1)]);
    return node.transpose(layer(node, turned), [0, ...spatial.map((i) => i + 2), 1]);
  };
}

const averagePool: Layer = (node, x) => {
  return pool("average")(node.withInputs([x]))[0]!;
};

const mean: Layer = (node, x) => {
  const { attributes } = node;
  const rank = x.type.shape.length;
  const axes = attributes.ints("axes") ?? Array.from({ length: rank }, (_, i) => i);
  const keepDims = attributes.flag("keepdims", true);
  return node.emit("reduceMean", [x], { axes: node.axes(axes, rank), keepDims });
};

/** Elements of one or the other quantised operand. */
function where(node: NodeView): Operand {
  const y = node.emit("select", [node.input(0), real(node, 1), real(node, 4)], {});
  return quantized(node, y, 7, node.input(1).type.dtype);
}

/** The largest of windows of a picture with channels last; quantised or not, in its own type. */
function channelsLastMaxPool(node: NodeView): Operand {
  const x = node.input(0);
  const rank = x.type.shape.length;
  if (rank < 3) node.refuse(`a picture of rank ${rank}`, "rank 3 or more");
  const spatial = Array.from({ length: rank - 2 }, (_, i) => i);
  const turned = node.transpose(x, [0, rank - 1, ...spatial.map((i) => i + 1)]);
  const y = pool("max")(node.withInputs([turned]))[0]!;
  return node.transpose(y, [0, ...spatial.map((i) => i + 2), 1]);
}

/** Scale and zero point of the result stand first, then three operands for each part. */
function concat(node: NodeView): Operand {
  const count = node.inputs.length;
  if (count < 5 || count % 3 !== 2) node.refuse(`${count} operands`, "2 and 3 for each part");
  const parts = Array.from({ length: (node.inputs.length - 2) / 3 }, (_, i) =>
    real(node, 2 + 3 * i),
  );
  const axis = node.axis(node.attributes.int("axis") ?? 0, parts[0]!.type.shape.length);
  const joined = parts.length === 1 ? parts[0]! : node.emit("concat", parts, { axis });
  return quantized(node, joined, 0, node.input(2).type.dtype);
}

function transposedIf(node: NodeView, name: string, x: Operand): Operand {
  return node.attributes.flag(name, false) ? node.transpose(x, [1, 0]) : x;
}

/** alpha A B + C, where C counts in units of both scales; without a scale of the result it is real. */
function gemm(node: NodeView): Operand {
  const columns = node.attributes.flag("transB", false) ? 0 : 1;
  const a = transposedIf(node, "transA", real(node, 0));
  const b = transposedIf(node, "transB", real(node, 3, columns));
  const { dtype } = a.type;
  const alpha = node.splat(dtype, node.attributes.float("alpha") ?? 1);
  let y = node.emit("mul", [matMul(node, a, b), alpha], {});
  const added = node.optional(6);
  if (added) {
    const unit = node.emit("mul", [node.input(1), node.input(4)], {});
    const scaled = node.emit("mul", [node.cast(added, dtype), unit], {});
    y = node.emit("add", [y, node.emit("mul", [scaled, alpha], {})], {});
  }
  return node.inputs[7] ? quantized(node, y, 7, node.input(0).type.dtype) : y;
}

interface IntegerProduct {
  readonly a: Operand;
  readonly b: Operand;
  readonly aZero: Operand | undefined;
  readonly bZero: Operand | undefined;
  readonly scales: readonly [Operand, Operand];
  readonly bias: Operand | undefined;
}

/** (A - zero)(B - zero), exact, then both scales and the bias. */
function scaledProduct(node: NodeView, given: IntegerProduct): Operand {
  const { a, b, aZero, bZero, scales, bias } = given;
  const inputs = [a, b, aZero, bZero].filter((x) => x !== undefined);
  const zeros = { aZero: aZero !== undefined, bZero: bZero !== undefined };
  const sum = node.emit("matMulInteger", inputs, zeros);
  const { dtype } = scales[1].type;
  const factor = node.emit("mul", [...scales], {});
  const y = node.emit("mul", [node.cast(sum, dtype), factor], {});
  return bias ? node.emit("add", [y, bias], {}) : y;
}

function dynamicQuantizeMatMul(node: NodeView): Operand {
  const [a, scale, aZero] = node.emitAll("dynamicQuantizeLinear", [node.input(0)], {});
  return scaledProduct(node, {
    a: a!,
    b: node.input(1),
    aZero: aZero!,
    bZero: node.optional(3),
    scales: [scale!, node.input(2)],
    bias: node.optional(4),
  });
}

function integerMatMulToFloat(node: NodeView): Operand {
  return scaledProduct(node, {
    a: node.input(0),
    b: node.input(1),
    aZero: node.optional(4),
    bZero: node.optional(5),
    scales: [node.input(2), node.input(3)],
    bias: node.optional(6),
  });
}

/** Attention whose input and weights are quantised. */
function quantizedAttention(node: NodeView): readonly Operand[] {
  const part = (values: number, scale: number, zero: number): Operand =>
    real(node.withInputs([node.input(values), node.input(scale), node.inputs[zero]]), 0, 1);
  const inputs = [part(0, 3, 6), part(1, 4, 7), node.input(2), node.inputs[5], node.inputs[8]];
  return projectedAttention(node.withInputs(inputs));
}

/** A W' + bias, where W [N, K] has a scale and a zero point for each block of a row. */
function matMulNBits(node: NodeView): Operand {
  node.attributes.ignore("weight_prepacked");
  if (node.inputs[4]) node.refuse("groups in another order (g_idx)", "blocks in order");
  return blockProduct(node, node.attributes.int("N") ?? 0);
}

/** The operand times `n` columns of packed weights, and a bias. */
function blockProduct(node: NodeView, n: number): Operand {
  const { attributes } = node;
  attributes.ignore("accuracy_level");
  const k = attributes.int("K") ?? 0;
  const [bits, block] = [attributes.int("bits") ?? 4, attributes.int("block_size") ?? 0];
  if (k < 1 || n < 1 || block < 16 || !Number.isInteger(Math.log2(block)))
    node.refuse(`K ${k}, N ${n}, block_size ${block}`, "positive extents, blocks of 16, 32, 64...");
  const blocks = Math.ceil(k / block);
  const weights = columns(node, unpacked(node, 1, { bits, shape: [n, blocks * block] }), k);
  const scales = node.reshape(node.input(2), [constant(n), constant(blocks)]);
  const zeros = blockZeros(node, { bits, rows: n, blocks });
  const real = blockReals(node, { weights, scales, zeros, block });
  const a = node.input(0);
  const labels = a.type.shape.map((_, i) => `a${i}`);
  const shared = labels.at(-1)!;
  const product = node.emit("contract", [a, real], {
    lhs: labels,
    rhs: ["n", shared],
    output: [...labels.slice(0, -1), "n"],
    accumulator: a.type.dtype,
  });
  const bias = node.optional(5);
  return bias ? node.emit("add", [product, bias], {}) : product;
}

/** The operand of several projections: as it is, or the norm of it (and of what skips), and that sum. */
function normed(node: NodeView): { readonly x: Operand; readonly sum: Operand } {
  const [x, skip, scale] = [node.input(0), node.optional(1), node.optional(2)];
  const sum = skip ? node.emit("add", [x, skip], {}) : x;
  if (!scale) return { x: sum, sum };
  const isQkv = node.op === "MatMulNBitsQkv";
  const epsilon = node.attributes.float("epsilon") ?? (isQkv ? 1e-6 : 1e-5);
  return {
    x: node.emit("rmsNorm", [sum, scale], { axis: sum.type.shape.length - 1, epsilon }),
    sum,
  };
}

/** The projection whose weights, scales and bias stand from operand `first` on. */
function projection(node: NodeView, x: Operand, first: number, columns: string): Operand {
  const [weights, scales, bias] = [0, 1, 2].map((i) => node.inputs[first + i]);
  const n = node.attributes.int(columns) ?? 0;
  return blockProduct(node.withInputs([x, weights, scales, undefined, undefined, bias]), n);
}

/** activation(x G) * (x U) */
function gatedProjections(node: NodeView): readonly Operand[] {
  const { x, sum } = normed(node);
  const [gate, up] = [3, 6].map((first) => projection(node, x, first, "N"));
  const kind = node.attributes.string("activation");
  if (kind !== "silu") node.attributes.refuse("activation", kind, "silu");
  return [node.emit("mul", [node.emit("silu", [gate!], {}), up!], {}), sum];
}

function threeProjections(node: NodeView): readonly Operand[] {
  const { x, sum } = normed(node);
  const columns = ["Nq", "Nkv", "Nkv"];
  return [...columns.map((name, i) => projection(node, x, 3 + 3 * i, name)), sum];
}

interface BlockZeros {
  readonly bits: number;
  readonly rows: number;
  readonly blocks: number;
}

/** Zero points are packed like weights, each row in whole bytes; or real numbers; or all in the middle. */
function blockZeros(node: NodeView, { bits, rows, blocks }: BlockZeros): Operand {
  const given = node.optional(3);
  const shape = [rows, blocks];
  if (!given) return node.splat(packedTypes[bits]!, 2 ** (bits - 1), shape);
  if (given.type.dtype !== "u8") return node.reshape(given, shape.map(constant));
  const stored = Math.ceil((blocks * bits) / 8) * (8 / bits);
  return columns(node, unpacked(node, 3, { bits, shape: [rows, stored] }), blocks);
}

interface Blocks {
  readonly weights: Operand;
  readonly scales: Operand;
  readonly zeros: Operand;
  readonly block: number;
}

function blockReals(node: NodeView, { weights, scales, zeros, block }: Blocks): Operand {
  const to = scales.type.dtype;
  const attrs = { axis: 1, blockSize: block, to };
  if (zeros.type.dtype === weights.type.dtype)
    return node.emit("dequantize", [weights, scales, zeros], attrs);
  const none = zeroLike(node, weights.type.dtype, scales);
  const raised = node.emit("dequantize", [weights, scales, none], attrs);
  // A zero point that is no integer: its product with the scale is taken off again, block by block.
  const offset = node.emit("mul", [scales, node.cast(zeros, to)], {});
  const [rows, count] = offset.type.shape as [IndexExpr, IndexExpr];
  const wide = node.emit("broadcast", [node.reshape(offset, [rows, count, one])], {
    shape: [rows, count, constant(block)],
  });
  const total = node.fixedExtent(count, "the number of blocks") * block;
  const flat = node.reshape(wide, [rows, constant(total)]);
  const width = node.fixedExtent(weights.type.shape[1]!, "the width");
  return node.emit("sub", [raised, columns(node, flat, width)], {});
}

/** A W' (or A W) with W [N, K] as codes of four bits that stand for the sixteen numbers of a table. */
function matMulBnb4(node: NodeView): Operand {
  const { attributes } = node;
  attributes.ignore("training_mode");
  const weights = decodedBlocks(node);
  const transposed = attributes.flag("transB", true);
  return matMul(node, node.input(0), transposed ? node.transpose(weights, [1, 0]) : weights);
}

/** Rows of a quantised table, picked first and dequantised then. */
function gatherBlockQuantized(node: NodeView): Operand {
  const { attributes } = node;
  const bits = attributes.int("bits") ?? 4;
  const blockSize = attributes.int("block_size") ?? 128;
  const packed = node.input(0).type.dtype === "u8" && bits < 8;
  const table = packed ? unpackedRows(node, 0, bits) : node.input(0);
  const rank = table.type.shape.length;
  if (node.axis(attributes.int("gather_axis") ?? 0, rank) !== 0)
    attributes.refuse("gather_axis", "not 0", "0");
  const axis = node.axis(attributes.int("quantize_axis") ?? 1, rank);
  if (axis === 0) attributes.refuse("quantize_axis", 0, "another axis than that of the rows");
  const [indices, scales] = [node.input(1), node.input(2)];
  const { dtype } = table.type;
  const middle = node.input(0).type.dtype === "u8" ? 2 ** (bits - 1) : 0;
  const stored = node.optional(3);
  const zeros = stored
    ? packed
      ? columns(
          node,
          unpackedRows(node, 3, bits),
          node.fixedExtent(scales.type.shape[1]!, "blocks"),
        )
      : stored
    : zeroLike(node, dtype, scales, middle);
  const picked = [table, scales, zeros].map((x) => node.emit("gather", [x, indices], { axis: 0 }));
  const moved = axis + indices.type.shape.length - 1;
  return node.emit("dequantize", picked, { axis: moved, blockSize, to: scales.type.dtype });
}

function unpackedRows(node: NodeView, index: number, bits: number): Operand {
  const extents = node.input(index).type.shape.map((d) => node.fixedExtent(d, "an extent"));
  if (extents.length !== 2) node.refuse(`a packed table of rank ${extents.length}`, "a matrix");
  return unpacked(node, index, { bits, shape: [extents[0]!, (extents[1]! * 8) / bits] });
}

export const microsoftQuantizationRows = {
  QuantizeLinear: { since: [1], convert: quantizeLinear },
  DequantizeLinear: { since: [1], convert: dequantizeLinear },
  QLinearAdd: { since: [1], convert: pairwise("add") },
  QLinearMul: { since: [1], convert: pairwise("mul") },
  QLinearSigmoid: { since: [1], convert: onReals((node, x) => node.emit("sigmoid", [x], {})) },
  QLinearLeakyRelu: {
    since: [1],
    convert: onReals((node, x) =>
      node.emit("leakyRelu", [x], { alpha: node.attributes.float("alpha") ?? 0.01 }),
    ),
  },
  QLinearConv: {
    since: [1],
    convert: (node) =>
      channelsFirst((inner, x) =>
        quantizedConvolution(inner.withInputs([x, ...inner.inputs.slice(1)])),
      )(node, node.input(0)),
  },
  QLinearSoftmax: { since: [1], convert: onReals(softmax) },
  QLinearAveragePool: { since: [1], convert: onReals(channelsFirst(averagePool)) },
  QLinearGlobalAveragePool: {
    since: [1],
    convert: onReals(channelsFirst((node, x) => node.emit("globalAveragePool", [x], {}))),
  },
  QLinearReduceMean: { since: [1], convert: onReals(mean) },
  QLinearWhere: { since: [1], convert: where },
  NhwcMaxPool: { since: [1], convert: channelsLastMaxPool },
  DynamicQuantizeLSTM: { since: [1], convert: quantizedLstm },
  QLinearConcat: { since: [1], convert: concat },
  QGemm: { since: [1], convert: gemm },
  DynamicQuantizeMatMul: { since: [1], convert: dynamicQuantizeMatMul },
  MatMulIntegerToFloat: { since: [1], convert: integerMatMulToFloat },
  QAttention: { since: [1], convert: quantizedAttention },
  MatMulNBits: { since: [1], convert: matMulNBits },
  MatMulNBitsMlp: { since: [1], convert: gatedProjections },
  MatMulNBitsQkv: { since: [1], convert: threeProjections },
  MatMulBnb4: { since: [1], convert: matMulBnb4 },
  GatherBlockQuantized: { since: [1], convert: gatherBlockQuantized },
} satisfies OperatorTable;
