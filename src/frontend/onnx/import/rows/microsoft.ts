/**
 * Operators of com.microsoft that exporters and ONNX Runtime's optimizer put into transformers: fused
 * forms of arithmetic that exists, so each is that arithmetic again. Their definitions are those of
 * ONNX Runtime's ContribOperators page; test/differential/microsoft-ops.test.ts compares with it.
 */
import { constant } from "../../../../semantics/index-expr.ts";
import type { NodeView } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { matMul } from "./linear.ts";
import { sliceAxis } from "./slicing.ts";

type Approximation = "none" | "tanh";

/** gelu(x + bias), where there is a bias. */
function gelu(approximate: Approximation) {
  return (node: NodeView): Operand => {
    const bias = node.optional(1);
    const x = bias ? node.emit("add", [node.input(0), bias], {}) : node.input(0);
    return node.emit("gelu", [x], { approximate });
  };
}

/** x * sigmoid(alpha x) */
function quickGelu(node: NodeView): Operand {
  const x = node.input(0);
  const alpha = node.splat(x.type.dtype, node.attributes.float("alpha") ?? 1.702);
  const gate = node.emit("sigmoid", [node.emit("mul", [x, alpha], {})], {});
  return node.emit("mul", [x, gate], {});
}

/** alpha * A B with either operand's last two axes exchanged first. */
function fusedMatMul(node: NodeView): Operand {
  const { attributes } = node;
  if (attributes.flag("transBatchA", false) || attributes.flag("transBatchB", false)) {
    node.refuse("transposed batches", "transA and transB");
  }
  const [a, b] = (["transA", "transB"] as const).map((name, i) => {
    const x = node.input(i);
    const rank = x.type.shape.length;
    if (!attributes.flag(name, false) || rank < 2) return x;
    const order = x.type.shape.map((_, axis) => axis);
    return node.transpose(x, [...order.slice(0, -2), rank - 1, rank - 2]);
  }) as [Operand, Operand];
  const product = matMul(node, a, b);
  const alpha = attributes.float("alpha") ?? 1;
  if (alpha === 1) return product;
  return node.emit("mul", [product, node.splat(product.type.dtype, alpha)], {});
}

/** The norm of input + skip (+ bias), and as the last output that sum. */
function skipNorm(kind: "layerNorm" | "rmsNorm") {
  return (node: NodeView): readonly (Operand | undefined)[] => {
    const epsilon = node.attributes.float("epsilon") ?? (kind === "layerNorm" ? 1e-12 : 1e-5);
    const biasAt = kind === "layerNorm" ? 4 : 3;
    const bias = node.optional(biasAt);
    const shift = kind === "layerNorm" ? node.optional(3) : undefined;
    const added = node.emit("add", [node.input(0), node.input(1)], {});
    const sum = bias ? node.emit("add", [added, bias], {}) : added;
    const operands = [sum, node.input(2), ...(shift ? [shift] : [])];
    const axis = sum.type.shape.length - 1;
    return [node.emit(kind, operands, { axis, epsilon }), undefined, undefined, sum];
  };
}

/** softmax(Q K^T scale + bias) V for [batch, length, heads * size], with keys and values of before. */
function multiHeadAttention(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const heads = attributes.int("num_heads") ?? 0;
  if (node.inputs[4]) node.refuse("a key padding mask", "an attention bias");
  if (attributes.flag("unidirectional", false)) node.refuse("unidirectional", "an attention bias");
  attributes.ignore("mask_filter_value");
  const [query, newKey, newValue] = [0, 1, 2].map((i) =>
    splitHeads(node, biased(node, i), heads),
  ) as [Operand, Operand, Operand];
  const [key, value] = [newKey, newValue].map((x, i) => {
    const past = node.optional(6 + i);
    return past ? node.emit("concat", [past, x], { axis: 2 }) : x;
  }) as [Operand, Operand];
  const size = node.fixedExtent(query.type.shape[3]!, "the head size");
  const given = attributes.float("scale") ?? 0;
  const scale = given === 0 ? 1 / Math.sqrt(size) : given;
  const { dtype } = query.type;
  const products = node.emit("contract", [query, key], {
    lhs: ["b", "h", "q", "d"],
    rhs: ["b", "h", "k", "d"],
    output: ["b", "h", "q", "k"],
    accumulator: dtype,
  });
  const scaled = node.emit("mul", [products, node.splat(dtype, scale)], {});
  const bias = node.optional(5);
  const scores = bias ? node.emit("add", [scaled, bias], {}) : scaled;
  const weights = node.emit("softmax", [scores], { axis: 3 });
  const mixed = node.emit("contract", [weights, value], {
    lhs: ["b", "h", "q", "k"],
    rhs: ["b", "h", "k", "d"],
    output: ["b", "q", "h", "d"],
    accumulator: dtype,
  });
  const [b, q, , d] = mixed.type.shape;
  const width = heads * node.fixedExtent(d!, "the head size");
  return [node.reshape(mixed, [b!, q!, constant(width)]), key, value];
}

/** Operand `index` with its third of the bias. */
function biased(node: NodeView, index: number): Operand {
  const x = node.input(index);
  node.checkRank(x, 3, "an operand");
  const bias = node.optional(3);
  if (!bias) return x;
  const width = x.type.shape[2]!;
  const before = [0, 1].slice(0, index).map((i) => node.input(i).type.shape[2]!);
  const start = before.reduce((sum, d) => sum + node.fixedExtent(d, "a width"), 0);
  const part = sliceAxis(node, bias, { axis: 0, start: constant(start), step: 1, size: width });
  return node.emit("add", [x, part], {});
}

function splitHeads(node: NodeView, x: Operand, heads: number): Operand {
  const width = node.fixedExtent(x.type.shape[2]!, "the hidden size");
  if (heads < 1 || width % heads !== 0)
    node.refuse(`${width} channels in ${heads} heads`, "a multiple");
  const [b, s] = x.type.shape;
  const split = node.reshape(x, [b!, s!, constant(heads), constant(width / heads)]);
  return node.transpose(split, [0, 2, 1, 3]);
}

export const microsoftRows = {
  Gelu: { since: [1], convert: gelu("none") },
  BiasGelu: { since: [1], convert: gelu("none") },
  FastGelu: { since: [1], convert: gelu("tanh") },
  QuickGelu: { since: [1], convert: quickGelu },
  FusedMatMul: { since: [1], convert: fusedMatMul },
  SkipLayerNormalization: { since: [1], convert: skipNorm("layerNorm") },
  SkipSimplifiedLayerNormalization: { since: [1], convert: skipNorm("rmsNorm") },
  MultiHeadAttention: { since: [1], convert: multiHeadAttention },
} satisfies OperatorTable;
