/** Quantised tensors and the layers that work on them. */
import type { DType } from "../../../../semantics/dtype.ts";
import { constantValue } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { checkSpatial, kernelShape, matMul, readWindow } from "./linear.ts";

/** A scalar or one-element scale is for the whole tensor. */
function quantizationAxis(node: NodeView, x: Operand, scale: Operand) {
  const { attributes } = node;
  const blockSize = node.version >= 21 ? (attributes.int("block_size") ?? 0) : 0;
  const given = attributes.int("axis") ?? 1;
  const whole =
    scale.type.shape.length === 0 ||
    (scale.type.shape.length === 1 &&
      constantValue(scale.type.shape[0]!) === 1 &&
      x.type.shape.length !== 1);
  if (whole) return { whole, attrs: {} };
  const axis = node.axis(given, x.type.shape.length);
  return { whole, attrs: { axis, ...(blockSize > 0 && { blockSize }) } };
}

export function quantizeLinear(node: NodeView): Operand {
  const { attributes } = node;
  const [x, scale, zero] = [node.input(0), node.input(1), node.optional(2)];
  const stated = attributes.int("output_dtype") ?? 0;
  attributes.ignore("precision");
  const to: DType = zero?.type.dtype ?? (stated === 0 ? "u8" : node.dtype(stated));
  const { whole, attrs } = quantizationAxis(node, x, scale);
  const scalar = (o: Operand) => (whole ? node.reshape(o, []) : o);
  const point = zero ?? zeroLike(node, to, scale);
  const saturate = attributes.flag("saturate", true);
  return node.emit("quantize", [x, scalar(scale), scalar(point)], { ...attrs, to, saturate });
}

export function dequantizeLinear(node: NodeView): Operand {
  const { attributes } = node;
  const [x, scale, zero] = [node.input(0), node.input(1), node.optional(2)];
  const stated = attributes.int("output_dtype") ?? 0;
  const to = stated === 0 ? scale.type.dtype : node.dtype(stated);
  const { whole, attrs } = quantizationAxis(node, x, scale);
  const scalar = (o: Operand) => (whole ? node.reshape(o, []) : o);
  const point = zero ?? zeroLike(node, x.type.dtype, scale);
  return node.emit("dequantize", [x, scalar(scale), scalar(point)], { ...attrs, to });
}

function zeroLike(node: NodeView, dtype: DType, scale: Operand): Operand {
  return node.emit("broadcast", [node.splat(dtype, 0)], { shape: scale.type.shape });
}

interface Quantized {
  readonly values: Operand;
  readonly scale: Operand;
  readonly zero: Operand;
}

function quantized(node: NodeView, first: number): Quantized {
  return { values: node.input(first), scale: node.input(first + 1), zero: node.input(first + 2) };
}

const isWhole = (scale: Operand): boolean => scale.type.shape.every((d) => constantValue(d) === 1);

/** Values in the type of the scale; a vector of scales runs along `axis`. */
function dequantized(node: NodeView, { values, scale, zero }: Quantized, axis: number): Operand {
  const to = scale.type.dtype;
  const whole = isWhole(scale);
  const scalar = (x: Operand) => (whole ? node.reshape(x, []) : x);
  const attrs = whole ? { to } : { axis, to };
  return node.emit("dequantize", [values, scalar(scale), scalar(zero)], attrs);
}

function requantized(node: NodeView, x: Operand, scale: Operand, zero: Operand): Operand {
  const cast = node.cast(x, scale.type.dtype);
  const operands = [cast, node.reshape(scale, []), node.reshape(zero, [])];
  return node.emit("quantize", operands, { to: zero.type.dtype, saturate: true });
}

/** The product of the dequantised matrices, quantised; scales of a are per row, of b per column. */
function quantizedMatMul(node: NodeView): Operand {
  const [a, b] = [quantized(node, 0), quantized(node, 3)];
  const rows = a.values.type.shape.length - 2;
  const columns = b.values.type.shape.length - 1;
  const wide = (x: Operand) => node.cast(x, "f32");
  const left = wide(dequantized(node, a, Math.max(0, rows)));
  const product = matMul(node, left, wide(dequantized(node, b, columns)));
  return requantized(node, product, node.input(6), node.input(7));
}

/** The bias is quantised with the product of both scales and zero point 0. */
export function quantizedConvolution(node: NodeView): Operand {
  const [x, w, bias] = [quantized(node, 0), quantized(node, 3), node.optional(8)];
  checkSpatial(node, x.values, w.values);
  const groups = node.attributes.int("group") ?? 1;
  const window = readWindow(node, x.values, kernelShape(node, w.values));
  const operands = [dequantized(node, x, 1), dequantized(node, w, 0)];
  let y = node.emit("convolution", operands, { ...window, groups });
  if (bias) {
    const scale = node.emit("mul", [node.reshape(x.scale, []), w.scale], {});
    const real = node.emit("mul", [node.cast(bias, scale.type.dtype), scale], {});
    node.checkRank(bias, 1, "a bias");
    const spatial = y.type.shape.slice(2).map(() => one);
    y = node.emit("add", [y, node.reshape(real, [bias.type.shape[0]!, ...spatial])], {});
  }
  return requantized(node, y, node.input(6), node.input(7));
}

export const quantizationRows = {
  QuantizeLinear: { since: [10, 13, 19, 21, 23, 24, 25], convert: quantizeLinear },
  DequantizeLinear: { since: [10, 13, 19, 21, 23, 24, 25], convert: dequantizeLinear },
  DynamicQuantizeLinear: {
    since: [11],
    convert: (node) => node.emitAll("dynamicQuantizeLinear", [node.input(0)], {}),
  },
  QLinearMatMul: { since: [10, 21], convert: quantizedMatMul },
  QLinearConv: { since: [10], convert: quantizedConvolution },
} satisfies OperatorTable;
