/**
 * Encoders of sentences as optimum exports them for feature extraction. BERT-base (110 million
 * weights) in the form of operator set 14: layer norms, GELU and attention decomposed. MiniLM-L6 in
 * that of operator set 17: LayerNormalization, and torch's scaled_dot_product_attention.
 */
import { tensorOf } from "../../../src/frontend/onnx/model-writer.ts";
import {
  batchOfSequences,
  eagerAttention,
  fanIn,
  fusedAttention,
  gelu,
  joinHeads,
  type LinearShape,
  layerNorm,
  linear,
  paddingMask,
  sizeOf,
  splitHeads,
} from "./layers.ts";
import type { ModelBuilder, ValueName } from "./model-builder.ts";

export interface BertShape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly inner: number;
  readonly vocabulary: number;
  readonly positions: number;
  /** Products with weights are of bytes, the data quantised when it runs. */
  readonly isDynamic?: boolean;
}

export const bertBase: BertShape = {
  layers: 12,
  width: 768,
  heads: 12,
  inner: 3072,
  vocabulary: 30522,
  positions: 512,
};
export const miniLm: BertShape = { ...bertBase, layers: 6, width: 384, inner: 1536 };

const epsilon = 1e-12;

export function buildBert(b: ModelBuilder, shape: BertShape): void {
  const ids = b.input("input_ids", "i64", batchOfSequences);
  const mask = b.input("attention_mask", "i64", batchOfSequences);
  const types = b.input("token_type_ids", "i64", batchOfSequences);
  const added = paddingMask(b, mask);
  let x = b.within("embeddings", () => embed(b, shape, ids, types));
  for (let i = 0; i < shape.layers; i++) {
    x = b.within("encoder", () => b.within(`layer.${i}`, () => layer(b, shape, x, added)));
  }
  b.output("last_hidden_state", x, "f32", [...batchOfSequences, shape.width]);
}

function embed(b: ModelBuilder, s: BertShape, ids: ValueName, types: ValueName): ValueName {
  const positions = Array.from({ length: s.positions }, (_, i) => BigInt(i));
  const all = b.buffer(
    "position_ids",
    tensorOf("i64", [1, s.positions], BigInt64Array.from(positions)),
  );
  const bounds = [b.integers(0), sizeOf(b, ids, 1), b.integers(1), b.integers(1)];
  const places = b.op("Slice", [all, ...bounds]);
  const rows = (name: string, count: number, index: ValueName) =>
    b.op("Gather", [b.weight(`${name}.weight`, [count, s.width], fanIn(s.width)), index]);
  const words = rows("word_embeddings", s.vocabulary, ids);
  const sum = b.op("Add", [words, rows("token_type_embeddings", 2, types)]);
  const placed = b.op("Add", [sum, rows("position_embeddings", s.positions, places)]);
  return layerNorm(b, "LayerNorm", placed, { width: s.width, epsilon });
}

function layer(b: ModelBuilder, s: BertShape, x: ValueName, mask: ValueName): ValueName {
  const norm = { width: s.width, epsilon };
  const attended = b.within("attention", () => {
    const own = b.within("self", () => selfAttention(b, s, x, mask));
    return b.within("output", () => {
      const dense = linear(b, "dense", own, sized(s, s.width, s.width));
      return layerNorm(b, "LayerNorm", b.op("Add", [dense, x]), norm);
    });
  });
  const inner = b.within("intermediate", () => {
    return gelu(b, linear(b, "dense", attended, sized(s, s.width, s.inner)));
  });
  return b.within("output", () => {
    const dense = linear(b, "dense", inner, sized(s, s.inner, s.width));
    return layerNorm(b, "LayerNorm", b.op("Add", [dense, attended]), norm);
  });
}

function selfAttention(b: ModelBuilder, s: BertShape, x: ValueName, mask: ValueName): ValueName {
  const square = sized(s, s.width, s.width);
  const heads = { count: s.heads, size: s.width / s.heads };
  const [q, k, v] = ["query", "key", "value"].map((name) => linear(b, name, x, square));
  const operands = {
    query: splitHeads(b, q!, heads),
    keysTurned: splitHeads(b, k!, heads, [0, 2, 3, 1]),
    values: splitHeads(b, v!, heads),
    mask,
    headSize: heads.size,
  };
  const attend = b.opset >= 17 ? fusedAttention : eagerAttention;
  return joinHeads(b, attend(b, operands), heads);
}

function sized({ isDynamic = false }: BertShape, from: number, to: number): LinearShape {
  return { from, to, isDynamic };
}
