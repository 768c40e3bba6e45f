/**
 * Operators of com.microsoft that exporters and ONNX Runtime's optimizer put into transformers: fused
 * forms of arithmetic that exists, so each is that arithmetic again. Their definitions are those of
 * ONNX Runtime's ContribOperators page; test/differential/peer-ops.test.ts compares with it.
 */
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { convolution, gemm, matMul } from "./linear.ts";
import { microsoftArithmeticRows } from "./microsoft-arithmetic.ts";
import { microsoftAttentionRows } from "./microsoft-attention.ts";
import { microsoftBiasRows } from "./microsoft-biases.ts";
import { microsoftCacheAttentionRows } from "./microsoft-cache-attention.ts";
import { microsoftDecoderRows } from "./microsoft-decoders.ts";
import { microsoftEmbeddingRows } from "./microsoft-embeddings.ts";
import { microsoftEngramRows } from "./microsoft-engram.ts";
import { microsoftExpertRows } from "./microsoft-experts.ts";
import { microsoftPackingRows } from "./microsoft-packing.ts";
import { microsoftPlainRows } from "./microsoft-plain.ts";
import { microsoftQuantizationRows } from "./microsoft-quantization.ts";
import { microsoftStateSpaceRows } from "./microsoft-state-space.ts";
import { trilu } from "./movement.ts";

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

/** x + bias + skip */
function biasAdd(node: NodeView): Operand {
  const sum = node.emit("add", [node.input(0), node.input(1)], {});
  return node.emit("add", [sum, node.input(2)], {});
}

/** Groups of a channels-last picture, with SiLU behind where `activation` is 1. */
function channelsLastGroupNorm(node: NodeView, x = node.input(0)): Operand {
  const { attributes } = node;
  node.checkRank(x, 4, "an operand");
  if (!attributes.flag("channels_last", true)) attributes.refuse("channels_last", 0, "1");
  const groups = attributes.int("groups") ?? 0;
  const epsilon = attributes.float("epsilon") ?? 1e-5;
  const turned = node.transpose(x, [0, 3, 1, 2]);
  const scaled = [1, 2].map((i) => node.cast(node.input(i), x.type.dtype));
  const y = node.emit("groupNorm", [turned, ...scaled], { groups, epsilon });
  const back = node.transpose(y, [0, 2, 3, 1]);
  return attributes.flag("activation", false) ? node.emit("silu", [back], {}) : back;
}

/** The same of x + skip (+ bias), and that sum; a skip is a picture or one number for each channel. */
function skipGroupNorm(node: NodeView): readonly Operand[] {
  const [x, skip, bias] = [node.input(0), node.input(3), node.optional(4)];
  const { shape } = skip.type;
  const [n, c] = [shape[0]!, shape.at(-1)!];
  const wide = shape.length === 2 ? node.reshape(skip, [n, one, one, c]) : skip;
  const added = node.emit("add", [x, wide], {});
  const sum = bias ? node.emit("add", [added, bias], {}) : added;
  return [channelsLastGroupNorm(node, sum), sum];
}

/** What `activation` names, over the parameters of the attribute. */
function activated(
  node: NodeView,
  x: Operand,
  parameters: readonly (number | undefined)[],
): Operand {
  const { attributes } = node;
  const [alpha, beta] = parameters;
  const name = attributes.string("activation") ?? "";
  if (name === "") return x;
  if (name === "Relu") return node.emit("relu", [x], {});
  if (name === "Tanh") return node.emit("tanh", [x], {});
  if (name === "Sigmoid") return node.emit("sigmoid", [x], {});
  if (name === "LeakyRelu") return node.emit("leakyRelu", [x], { alpha: alpha ?? 0.01 });
  if (name === "HardSigmoid")
    return node.emit("hardSigmoid", [x], { alpha: alpha ?? 0.2, beta: beta ?? 0.5 });
  if (name !== "Clip")
    attributes.refuse("activation", name, "Relu Tanh Sigmoid LeakyRelu HardSigmoid Clip");
  const limit = (value: number) => node.splat(x.type.dtype, value);
  const low = node.emit("max", [x, limit(alpha ?? -Infinity)], {});
  return node.emit("min", [low, limit(beta ?? Infinity)], {});
}

/** A convolution with its bias, a sum on top, and an activation. */
function fusedConvolution(node: NodeView): Operand {
  const y = convolution(node);
  const rest = node.optional(3);
  const sum = rest ? node.emit("add", [y, rest], {}) : y;
  return activated(node, sum, node.attributes.floats("activation_params") ?? []);
}

/** The same of pictures with channels last; the weights may have their channels last too. */
function channelsLastConvolution(node: NodeView, weightOrder?: readonly number[]): Operand {
  const [x, w, rest] = [node.input(0), node.input(1), node.optional(3)];
  for (const picture of [x, w]) node.checkRank(picture, 4, "an operand");
  const turned = [x, rest].map((o) => o && node.transpose(o, [0, 3, 1, 2]));
  const weights = weightOrder ? node.transpose(w, weightOrder) : w;
  const inner = node.withInputs([turned[0], weights, node.inputs[2], turned[1]]);
  return node.transpose(fusedConvolution(inner), [0, 2, 3, 1]);
}

/** Parameters of the activation that are attributes of their own. */
function ownParameters({ attributes }: NodeView): readonly (number | undefined)[] {
  return ["activation_alpha", "activation_beta"].map((name) => attributes.float(name));
}

function fusedGemm(node: NodeView): Operand {
  return activated(node, gemm(node), ownParameters(node));
}

function fusedMatMulActivation(node: NodeView): Operand {
  node.attributes.ignore("activation_gamma", "activation_axis");
  return activated(node, fusedMatMul(node), ownParameters(node));
}

export const microsoftRows = {
  Gelu: { since: [1], convert: gelu("none") },
  BiasGelu: { since: [1], convert: gelu("none") },
  FastGelu: { since: [1], convert: gelu("tanh") },
  QuickGelu: { since: [1], convert: quickGelu },
  FusedMatMul: { since: [1], convert: fusedMatMul },
  TransposeMatMul: { since: [1], convert: fusedMatMul },
  SkipLayerNormalization: { since: [1], convert: skipNorm("layerNorm") },
  SkipSimplifiedLayerNormalization: { since: [1], convert: skipNorm("rmsNorm") },
  BiasAdd: { since: [1], convert: biasAdd },
  GroupNorm: { since: [1], convert: (node) => channelsLastGroupNorm(node) },
  SkipGroupNorm: { since: [1], convert: skipGroupNorm },
  Trilu: { since: [1], convert: trilu },
  FusedConv: { since: [1], convert: fusedConvolution },
  FusedGemm: { since: [1], convert: fusedGemm },
  FusedMatMulActivation: { since: [1], convert: fusedMatMulActivation },
  NhwcConv: { since: [1], convert: (node) => channelsLastConvolution(node, [0, 3, 1, 2]) },
  NhwcFusedConv: { since: [1], convert: (node) => channelsLastConvolution(node) },
  ...microsoftArithmeticRows,
  ...microsoftAttentionRows,
  ...microsoftBiasRows,
  ...microsoftCacheAttentionRows,
  ...microsoftDecoderRows,
  ...microsoftEmbeddingRows,
  ...microsoftEngramRows,
  ...microsoftExpertRows,
  ...microsoftPackingRows,
  ...microsoftPlainRows,
  ...microsoftStateSpaceRows,
  ...microsoftQuantizationRows,
} satisfies OperatorTable;
