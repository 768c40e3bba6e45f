/**
 * GPT-2 (124 million weights) as optimum exports it for text generation, operator set 14: layer norms
 * decomposed, Conv1D as Gemm between two Reshapes, the causal mask sliced out of a stored triangle,
 * GELU by tanh. With `past`, keys and values of earlier tokens come in and all go out.
 */
import { tensorOf } from "../../../src/frontend/onnx/model-writer.ts";
import {
  batchOfSequences,
  fanIn,
  joinHeads,
  layerNorm,
  lowestOf,
  paddingMask,
  sizeOf,
  transpose,
  view,
} from "./layers.ts";
import type { ModelBuilder, ValueName } from "./model-builder.ts";

const width = 768;
const layers = 12;
const heads = { count: 12, size: 64 };
const vocabulary = 50_257;
const positions = 1024;
const norm = { width, epsilon: 1e-5 };

const totalLength = "past_sequence_length + sequence_length";

interface Tokens {
  readonly mask: ValueName;
  readonly past: boolean;
}

export function buildGpt2(b: ModelBuilder, past: boolean): void {
  const ids = b.input("input_ids", "i64", batchOfSequences);
  const total = past ? totalLength : "sequence_length";
  const mask = paddingMask(b, b.input("attention_mask", "i64", ["batch_size", total]));
  const places = b.input("position_ids", "i64", batchOfSequences);
  const words = b.namedWeight("transformer.wte.weight", [vocabulary, width], fanIn(width));
  let x = b.within("transformer", () => {
    const stands = b.weight("wpe.weight", [positions, width], fanIn(width));
    return b.op("Add", [b.op("Gather", [words, ids]), b.op("Gather", [stands, places])]);
  });
  for (let i = 0; i < layers; i++) {
    x = b.within(`transformer.h.${i}`, () => layer(b, x, i, { mask, past }));
  }
  const last = layerNorm(b, "transformer.ln_f", x, norm);
  const head = b.namedWeight("lm_head.weight_t", [width, vocabulary], fanIn(width));
  const logits = b.op("MatMul", [last, head]);
  b.output("logits", logits, "f32", [...batchOfSequences, vocabulary]);
}

function layer(b: ModelBuilder, x: ValueName, index: number, tokens: Tokens): ValueName {
  const attended = b.op("Add", [attention(b, layerNorm(b, "ln_1", x, norm), index, tokens), x]);
  const normal = layerNorm(b, "ln_2", attended, norm);
  const inner = b.within("mlp", () => {
    const wide = geluByTanh(b, conv1d(b, "c_fc", normal, [width, 4 * width]));
    return conv1d(b, "c_proj", wide, [4 * width, width]);
  });
  return b.op("Add", [attended, inner]);
}

/** transformers' Conv1D: rows flattened, Gemm with the weight as stored, and back. */
function conv1d(
  b: ModelBuilder,
  path: string,
  x: ValueName,
  [from, to]: readonly [number, number],
): ValueName {
  return b.within(path, () => {
    const rows = b.op("Reshape", [x, b.integers(-1, from)]);
    const operands = [
      rows,
      b.weight("weight", [from, to], fanIn(from)),
      b.weight("bias", [to], fanIn(from)),
    ];
    const product = b.op("Gemm", operands, { alpha: 1, beta: 1 });
    return view(b, product, [sizeOf(b, x, 0), sizeOf(b, x, 1), to]);
  });
}

function attention(b: ModelBuilder, x: ValueName, index: number, tokens: Tokens): ValueName {
  return b.within("attn", () => {
    const all = conv1d(b, "c_attn", x, [width, 3 * width]);
    const parts = b.ops("Split", [all, b.integers(width, width, width)], { axis: 2n }, 3);
    const [query, ownKeys, ownValues] = parts.map((part) => {
      const split = view(b, part, [
        sizeOf(b, part, 0),
        sizeOf(b, part, 1),
        heads.count,
        heads.size,
      ]);
      return transpose(b, split, 0, 2, 1, 3);
    });
    const keys = remembered(b, ownKeys!, `${index}.key`, tokens.past);
    const values = remembered(b, ownValues!, `${index}.value`, tokens.past);
    const scores = b.op("MatMul", [query!, transpose(b, keys, 0, 1, 3, 2)]);
    const scaled = b.op("Div", [scores, b.scalar(Math.sqrt(heads.size))]);
    const seen = b.op("Where", [causal(b, query!, keys), scaled, b.scalar(lowestOf(b))]);
    const shares = b.op("Softmax", [b.op("Add", [seen, tokens.mask])], { axis: -1n });
    return conv1d(b, "c_proj", joinHeads(b, b.op("MatMul", [shares, values]), heads), [
      width,
      width,
    ]);
  });
}

/** What was kept of earlier tokens before what is new; all of it is an output. */
function remembered(b: ModelBuilder, own: ValueName, name: string, past: boolean): ValueName {
  if (!past) return own;
  const cache = (length: string) => ["batch_size", heads.count, length, heads.size];
  const earlier = b.input(`past_key_values.${name}`, "f32", cache("past_sequence_length"));
  const all = b.op("Concat", [earlier, own], { axis: -2n });
  return b.output(`present.${name}`, all, "f32", cache(totalLength));
}

/** Rows of the triangle for the queries, columns for the keys. */
function causal(b: ModelBuilder, query: ValueName, keys: ValueName): ValueName {
  const triangle = new Uint8Array(positions * positions);
  for (let i = 0; i < positions; i++) triangle.fill(1, i * positions, i * positions + i + 1);
  const shape = [1, 1, positions, positions];
  const stored = b.buffer("bias", tensorOf("bool", shape, triangle));
  const [queries, all] = [sizeOf(b, query, 2), sizeOf(b, keys, 2)];
  const first = b.op("Sub", [all, queries]);
  const rows = b.op("Slice", [stored, first, all, b.integers(2), b.integers(1)]);
  return b.op("Slice", [rows, b.integers(0), all, b.integers(3), b.integers(1)]);
}

/** x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))). */
function geluByTanh(b: ModelBuilder, x: ValueName): ValueName {
  const cube = b.op("Mul", [b.op("Pow", [x, b.scalar(3)]), b.scalar(0.044715)]);
  const inner = b.op("Mul", [b.op("Add", [x, cube]), b.scalar(Math.sqrt(2 / Math.PI))]);
  const share = b.op("Add", [b.op("Tanh", [inner]), b.scalar(1)]);
  return b.op("Mul", [b.op("Mul", [x, b.scalar(0.5)]), share]);
}
