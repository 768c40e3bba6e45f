/** Cases for operators of com.microsoft: attributes, operands and results of one node each. */
import type { OperandSpec, OperatorCase } from "../../campaign/operators/operator-case.ts";

const scalar = (value: number): OperandSpec => ({ shape: [], values: [value] });
const byte = (value: number): OperandSpec => ({ shape: [], dtype: "u8", values: [value] });
const bytes = (...shape: number[]): OperandSpec => ({ shape, dtype: "u8", range: [0, 255] });
const packed = (...shape: number[]): OperandSpec => ({ ...bytes(...shape), weight: true });
const ints = (values: readonly number[], shape = [values.length]): OperandSpec => ({
  shape,
  dtype: "i32",
  values,
});
const longs = (values: readonly number[], shape = [values.length]): OperandSpec => ({
  shape,
  dtype: "i64",
  values,
});
const oneByte = [["y", "u8"]] as const;
const quantizedPair = [bytes(2, 5), scalar(0.02), byte(120)] as const;
const attentionOutputs = [
  ["y", "f32"],
  ["key", "f32", 4],
  ["value", "f32", 4],
] as const;
const none = undefined;

const elementwise: readonly OperatorCase[] = [
  { node: { op: "Gelu" }, operands: [[3, 5]] },
  { node: { op: "BiasGelu" }, operands: [[3, 5], [5]] },
  { node: { op: "FastGelu" }, operands: [[3, 5], [5]] },
  { node: { op: "FastGelu" }, operands: [[3, 5]] },
  { node: { op: "QuickGelu", attributes: { alpha: 1.3 } }, operands: [[3, 5]] },
  {
    node: { op: "FusedMatMul", attributes: { transA: 1n, transB: 1n, alpha: 0.5 } },
    operands: [
      [2, 6, 3],
      [2, 4, 6],
    ],
  },
  {
    node: {
      op: "FusedConv",
      attributes: { activation: "LeakyRelu", activation_params: [0.3], pads: [1n, 1n, 1n, 1n] },
    },
    operands: [[1, 3, 5, 6], [4, 3, 3, 3], [4], [1, 4, 5, 6]],
  },
  {
    node: { op: "FusedConv", attributes: { activation: "Clip", activation_params: [-0.5, 0.7] } },
    operands: [[1, 3, 5, 6], [4, 3, 2, 2], [4]],
  },
  {
    node: { op: "FusedGemm", attributes: { activation: "Tanh", transB: 1n } },
    operands: [[3, 5], [4, 5], [4]],
  },
];

const norms: readonly OperatorCase[] = [
  {
    node: { op: "SkipLayerNormalization", attributes: { epsilon: 1e-5 } },
    operands: [[2, 3, 8], [2, 3, 8], [8], [8], [8]],
    outputs: [["y", "f32"], none, none, ["sum", "f32"]],
  },
  {
    node: { op: "SkipSimplifiedLayerNormalization", attributes: { epsilon: 1e-5 } },
    operands: [[2, 3, 8], [2, 3, 8], [8]],
    outputs: [["y", "f32"], none, none, ["sum", "f32"]],
  },
  {
    node: {
      op: "SimplifiedLayerNormalization",
      domain: "",
      attributes: { epsilon: 1e-5, axis: -1n },
    },
    operands: [[2, 3, 8], [8]],
  },
  {
    node: { op: "EmbedLayerNormalization", attributes: { epsilon: 1e-5 } },
    operands: [
      ints([3, 1, 0, 2, 5, 4], [2, 3]),
      ints([0, 1, 1, 0, 0, 1], [2, 3]),
      [6, 8],
      [4, 8],
      [2, 8],
      [8],
      [8],
      ints([1, 1, 0, 1, 1, 1], [2, 3]),
    ],
    outputs: [
      ["y", "f32", 3],
      ["lengths", "i32", 1],
      ["sum", "f32", 3],
    ],
  },
];

const attention: readonly OperatorCase[] = [
  {
    node: { op: "MultiHeadAttention", attributes: { num_heads: 2n } },
    operands: [[2, 3, 8], [2, 5, 8], [2, 5, 8], [24], none, [2, 2, 3, 5]],
  },
  {
    node: { op: "MultiHeadAttention", attributes: { num_heads: 2n, scale: 0.3 } },
    operands: [[1, 3, 8], [1, 3, 8], [1, 3, 8], none, none, none, [1, 2, 4, 4], [1, 2, 4, 4]],
    outputs: attentionOutputs,
  },
  {
    node: { op: "MultiHeadAttention", attributes: { num_heads: 2n } },
    operands: [[2, 3, 8], [2, 5, 8], [2, 5, 8], none, ints([1, 1, 1, 0, 0, 1, 1, 1, 1, 0], [2, 5])],
  },
  {
    node: { op: "MultiHeadAttention", attributes: { num_heads: 2n, unidirectional: 1n } },
    operands: [
      [2, 4, 8],
      [2, 4, 8],
      [2, 4, 8],
    ],
  },
  {
    node: { op: "Attention", attributes: { num_heads: 2n } },
    operands: [[2, 3, 8], [8, 24], [24], ints([2, 3])],
  },
  {
    node: { op: "Attention", attributes: { num_heads: 2n } },
    operands: [[2, 3, 8], [8, 24], [24], ints([1, 1, 0, 1, 0, 0], [2, 3])],
  },
  {
    node: { op: "Attention", attributes: { num_heads: 2n, unidirectional: 1n } },
    operands: [[1, 3, 8], [8, 24], [24], none, [2, 1, 2, 4, 4]],
    outputs: [
      ["y", "f32"],
      ["present", "f32", 5],
    ],
  },
  {
    node: { op: "RotaryEmbedding" },
    operands: [[2, 3, 8], longs([2]), [10, 2], [10, 2]],
  },
  {
    node: { op: "RotaryEmbedding", attributes: { interleaved: 1n } },
    operands: [[2, 2, 3, 4], longs([0, 1, 2, 4, 5, 6], [2, 3]), [10, 2], [10, 2]],
  },
  {
    node: {
      op: "RotaryEmbedding",
      attributes: { num_heads: 2n, rotary_embedding_dim: 4n },
    },
    operands: [[2, 3, 16], longs([0, 1, 2, 4, 5, 6], [2, 3]), [10, 2], [10, 2]],
  },
];

const grouped = { num_heads: 4n, kv_num_heads: 2n };
const groupedCases: readonly OperatorCase[] = [
  // The first step: nothing is in the cache.
  {
    node: { op: "GroupQueryAttention", attributes: grouped },
    operands: [
      [2, 3, 32],
      [2, 3, 16],
      [2, 3, 16],
      none,
      none,
      ints([2, 2], [2, 1]),
      { ...ints([3], []), weight: true },
    ],
    outputs: attentionOutputs,
  },
  // One token more, in rows of different length, with rotated heads.
  {
    node: { op: "GroupQueryAttention", attributes: { ...grouped, do_rotary: 1n, scale: 0.4 } },
    operands: [
      [2, 1, 64],
      [2, 1, 32],
      [2, 1, 32],
      [2, 2, 5, 16],
      [2, 2, 5, 16],
      ints([5, 3], [2, 1]),
      { ...ints([6], []), weight: true },
      [10, 8],
      [10, 8],
    ],
    outputs: attentionOutputs,
    // What the cache holds behind the keys of a row is not defined.
    compared: ["y"],
  },
  // The same in rows of one length.
  {
    node: { op: "GroupQueryAttention", attributes: { ...grouped, do_rotary: 1n, scale: 0.4 } },
    operands: [
      [2, 1, 64],
      [2, 1, 32],
      [2, 1, 32],
      [2, 2, 5, 16],
      [2, 2, 5, 16],
      ints([5, 5], [2, 1]),
      { ...ints([6], []), weight: true },
      [10, 8],
      [10, 8],
    ],
    outputs: attentionOutputs,
  },
  // Packed operands and a window.
  {
    node: { op: "GroupQueryAttention", attributes: { ...grouped, local_window_size: 3n } },
    operands: [
      [1, 2, 64],
      none,
      none,
      [1, 2, 4, 8],
      [1, 2, 4, 8],
      ints([5], [1, 1]),
      { ...ints([6], []), weight: true },
    ],
    outputs: attentionOutputs,
  },
  {
    node: { op: "GroupQueryAttention", attributes: { ...grouped, softcap: 2 } },
    operands: [
      [1, 3, 32],
      [1, 3, 16],
      [1, 3, 16],
      none,
      none,
      ints([2], [1, 1]),
      { ...ints([3], []), weight: true },
      none,
      none,
      none,
      [1, 1, 3, 3],
    ],
  },
];

const quantized: readonly OperatorCase[] = [
  {
    node: { op: "QLinearAdd" },
    operands: [...quantizedPair, bytes(5), scalar(0.03), byte(100), scalar(0.05), byte(128)],
    outputs: oneByte,
  },
  {
    node: { op: "QLinearMul" },
    operands: [...quantizedPair, bytes(5), scalar(0.03), byte(100), scalar(0.06), byte(128)],
    outputs: oneByte,
  },
  {
    node: { op: "QLinearSigmoid" },
    operands: [...quantizedPair, scalar(1 / 256), byte(0)],
    outputs: oneByte,
  },
  {
    node: { op: "QLinearLeakyRelu", attributes: { alpha: 0.2 } },
    operands: [...quantizedPair, scalar(0.03), byte(50)],
    outputs: oneByte,
  },
  {
    node: { op: "QLinearSoftmax", attributes: { axis: -1n, opset: 13n } },
    operands: [...quantizedPair, scalar(1 / 256), byte(0)],
    outputs: oneByte,
  },
  {
    node: { op: "QLinearGlobalAveragePool" },
    operands: [bytes(1, 3, 4, 5), scalar(0.02), byte(120), scalar(0.01), byte(120)],
    outputs: oneByte,
  },
  {
    node: { op: "QLinearAveragePool", attributes: { kernel_shape: [2n, 2n], strides: [2n, 2n] } },
    operands: [bytes(1, 3, 4, 6), scalar(0.02), byte(120), scalar(0.02), byte(120)],
    outputs: oneByte,
  },
  {
    node: { op: "QLinearConcat", attributes: { axis: 1n } },
    operands: [
      scalar(0.04),
      byte(110),
      ...quantizedPair,
      { ...bytes(2, 3) },
      scalar(0.03),
      byte(100),
    ],
    outputs: [["y", "u8", 2]],
  },
  {
    node: { op: "QGemm", attributes: { transB: 1n, alpha: 1 } },
    operands: [
      bytes(3, 6),
      scalar(0.02),
      byte(120),
      packed(4, 6),
      scalar(0.03),
      byte(130),
      ints([500, -300, 20, 7]),
    ],
  },
  {
    node: { op: "DynamicQuantizeMatMul" },
    operands: [[3, 6], packed(6, 4), { shape: [4], range: [0.01, 0.03] }, none, [4]],
    tolerance: 1e-4,
  },
  {
    node: { op: "MatMulIntegerToFloat" },
    operands: [bytes(3, 6), packed(6, 4), scalar(0.02), scalar(0.03), byte(120), byte(125), [4]],
  },
  {
    node: { op: "QAttention", attributes: { num_heads: 2n } },
    operands: [
      bytes(2, 3, 8),
      packed(8, 24),
      [24],
      scalar(0.01),
      scalar(0.01),
      none,
      byte(120),
      byte(125),
    ],
  },
];

const blocks = { K: 40n, N: 5n, block_size: 16n };
const blockScales: OperandSpec = { shape: [15], range: [0.01, 0.1], weight: true };
const packedCases: readonly OperatorCase[] = [
  {
    node: { op: "MatMulNBits", attributes: { ...blocks, bits: 4n } },
    operands: [[2, 3, 40], packed(5, 3, 8), blockScales],
    tolerance: 1e-4,
  },
  {
    node: { op: "MatMulNBits", attributes: { ...blocks, bits: 4n } },
    operands: [[3, 40], packed(5, 3, 8), blockScales, packed(10), none, [5]],
    tolerance: 1e-4,
  },
  {
    node: { op: "MatMulNBits", attributes: { ...blocks, bits: 8n } },
    operands: [[3, 40], packed(5, 3, 16), blockScales, packed(15)],
    tolerance: 1e-4,
  },
  {
    node: {
      op: "GatherBlockQuantized",
      attributes: { bits: 4n, block_size: 16n, gather_axis: 0n, quantize_axis: 1n },
    },
    operands: [
      packed(7, 16),
      longs([6, 0, 3, 3], [2, 2]),
      { shape: [7, 2], range: [0.01, 0.1], weight: true },
      packed(7, 1),
    ],
    outputs: [["y", "f32", 3]],
  },
];

export const microsoftCases: readonly OperatorCase[] = [
  ...elementwise,
  ...norms,
  ...attention,
  ...groupedCases,
  ...quantized,
  ...packedCases,
];
