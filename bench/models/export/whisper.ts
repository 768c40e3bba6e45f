/**
 * Whisper-tiny (39 million weights) as optimum exports it at operator set 17: the encoder of 30 seconds
 * of mel bands, and the decoder without a cache: causal self-attention, attention to the encoder's
 * states, logits through the transposed embedding. LayerNormalization is an operator, attention
 * torch's scaled_dot_product_attention; projections of keys have no bias.
 */
import {
  batchOfSequences,
  fanIn,
  fusedAttention,
  gelu,
  joinHeads,
  layerNorm,
  linear,
  sizeOf,
  splitHeads,
} from "./layers.ts";
import { causalMask } from "./llama.ts";
import type { ModelBuilder, ValueName } from "./model-builder.ts";

const width = 384;
const layers = 4;
const heads = { count: 6, size: 64 };
const frames = 1500;
const bands = 80;
const vocabulary = 51_865;
const positions = 448;
const norm = { width, epsilon: 1e-5 };

export function buildWhisperEncoder(b: ModelBuilder): void {
  const bandsIn = b.input("input_features", "f32", ["batch_size", bands, 2 * frames]);
  let x = b.within("encoder", () => {
    const first = gelu(b, convolution(b, "conv1", bandsIn, [bands, 1]));
    const second = gelu(b, convolution(b, "conv2", first, [width, 2]));
    const turned = b.op("Transpose", [second], { perm: [0n, 2n, 1n] });
    const stands = b.weight("embed_positions.weight", [frames, width], { deviation: 0.5 });
    return b.op("Add", [turned, stands]);
  });
  for (let i = 0; i < layers; i++) {
    x = b.within(`encoder.layers.${i}`, () => {
      const normal = layerNorm(b, "self_attn_layer_norm", x, norm);
      return feedForward(b, b.op("Add", [x, attention(b, "self_attn", normal, normal)]));
    });
  }
  const last = layerNorm(b, "encoder.layer_norm", x, norm);
  b.output("last_hidden_state", last, "f32", ["batch_size", frames, width]);
}

export function buildWhisperDecoder(b: ModelBuilder): void {
  const ids = b.input("input_ids", "i64", batchOfSequences);
  const heard = b.input("encoder_hidden_states", "f32", ["batch_size", frames, width]);
  let x = b.within("decoder", () => embed(b, ids));
  const mask = causalMask(b, x);
  for (let i = 0; i < layers; i++) {
    x = b.within(`decoder.layers.${i}`, () => {
      const first = layerNorm(b, "self_attn_layer_norm", x, norm);
      const told = b.op("Add", [x, attention(b, "self_attn", first, first, mask)]);
      const second = layerNorm(b, "encoder_attn_layer_norm", told, norm);
      return feedForward(b, b.op("Add", [told, attention(b, "encoder_attn", second, heard)]));
    });
  }
  const last = layerNorm(b, "decoder.layer_norm", x, norm);
  const head = b.namedWeight("proj_out.weight_t", [width, vocabulary], fanIn(width));
  b.output("logits", b.op("MatMul", [last, head]), "f32", [...batchOfSequences, vocabulary]);
}

function convolution(
  b: ModelBuilder,
  path: string,
  x: ValueName,
  [from, stride]: readonly [number, number],
): ValueName {
  const attributes = {
    dilations: [1n],
    group: 1n,
    kernel_shape: [3n],
    pads: [1n, 1n],
    strides: [BigInt(stride)],
  };
  return b.within(path, () => {
    const draw = fanIn(3 * from);
    const operands = [
      x,
      b.weight("weight", [width, from, 3], draw),
      b.weight("bias", [width], draw),
    ];
    return b.op("Conv", operands, attributes);
  });
}

function embed(b: ModelBuilder, ids: ValueName): ValueName {
  const words = b.weight("embed_tokens.weight", [vocabulary, width], fanIn(width));
  const stands = b.weight("embed_positions.weight", [positions, width], fanIn(width));
  const bounds = [b.integers(0), sizeOf(b, ids, 1), b.integers(0), b.integers(1)];
  return b.op("Add", [b.op("Gather", [words, ids]), b.op("Slice", [stands, ...bounds])]);
}

function attention(
  b: ModelBuilder,
  path: string,
  x: ValueName,
  source: ValueName,
  mask?: ValueName,
): ValueName {
  return b.within(path, () => {
    const square = { from: width, to: width };
    const query = splitHeads(b, linear(b, "q_proj", x, square), heads);
    const keys = linear(b, "k_proj", source, { ...square, bias: false });
    const operands = {
      query,
      keysTurned: splitHeads(b, keys, heads, [0, 2, 3, 1]),
      values: splitHeads(b, linear(b, "v_proj", source, square), heads),
      headSize: heads.size,
      ...(mask !== undefined && { mask }),
    };
    return linear(b, "out_proj", joinHeads(b, fusedAttention(b, operands), heads), square);
  });
}

function feedForward(b: ModelBuilder, x: ValueName): ValueName {
  const normal = layerNorm(b, "final_layer_norm", x, norm);
  const wide = gelu(b, linear(b, "fc1", normal, { from: width, to: 4 * width }));
  return b.op("Add", [x, linear(b, "fc2", wide, { from: 4 * width, to: width })]);
}
