/**
 * The encoder of T5 as optimum exports it at operator set 14: norms without a mean as Pow, ReduceMean, Sqrt and
 * Div, one table of biases by buckets of distance that all layers add to their scores, no biases of layers and no
 * scale of scores. Weights are drawn as T5 begins its training (queries smaller by the root of a head's size,
 * which stands for the scale).
 */
import {
  batchOfSequences,
  joinHeads,
  type LinearShape,
  linear,
  paddingMask,
  sizeOf,
  splitHeads,
  transpose,
} from "./layers.ts";
import { rmsNorm } from "./llama.ts";
import type { ModelBuilder, ValueName } from "./model-builder.ts";

export interface T5Shape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly headSize: number;
  readonly inner: number;
  readonly vocabulary: number;
  /** Products with weights are of bytes, the data quantised when it runs. */
  readonly isDynamic?: boolean;
}

export const t5Small: T5Shape = {
  layers: 6,
  width: 512,
  heads: 8,
  headSize: 64,
  inner: 2048,
  vocabulary: 32_128,
};

/** Distances have so many buckets, half of them for each direction, the last one from `mostDistance` on. */
const [buckets, mostDistance] = [32, 128];

export function buildT5Encoder(b: ModelBuilder, shape: T5Shape): void {
  const ids = b.input("input_ids", "i64", batchOfSequences);
  const mask = b.input("attention_mask", "i64", batchOfSequences);
  const table = b.weight("shared.weight", [shape.vocabulary, shape.width], { deviation: 1 });
  let x = b.op("Gather", [table, ids]);
  const added = b.within("encoder", () =>
    b.op("Add", [positionBias(b, shape, ids), paddingMask(b, mask)]),
  );
  for (let i = 0; i < shape.layers; i++) {
    x = b.within("encoder", () => b.within(`block.${i}`, () => block(b, shape, x, added)));
  }
  const last = b.within("encoder", () => rmsNorm(b, "final_layer_norm", x, shape));
  b.output("last_hidden_state", last, "f32", [...batchOfSequences, shape.width]);
}

function block(b: ModelBuilder, s: T5Shape, x: ValueName, added: ValueName): ValueName {
  const attended = b.within("layer.0", () => {
    const normal = rmsNorm(b, "layer_norm", x, s);
    return b.op("Add", [x, b.within("SelfAttention", () => attention(b, s, normal, added))]);
  });
  return b.within("layer.1", () => {
    const normal = rmsNorm(b, "layer_norm", attended, s);
    return b.op("Add", [attended, b.within("DenseReluDense", () => feedForward(b, s, normal))]);
  });
}

function attention(b: ModelBuilder, s: T5Shape, x: ValueName, added: ValueName): ValueName {
  const heads = { count: s.heads, size: s.headSize };
  const all = s.heads * s.headSize;
  const unscaled = { deviation: 1 / Math.sqrt(s.width * s.headSize) };
  const query = linear(b, "q", x, { ...sized(s, s.width, all), draw: unscaled });
  const [keys, values] = ["k", "v"].map((name) => linear(b, name, x, sized(s, s.width, all)));
  const turned = splitHeads(b, keys!, heads, [0, 2, 3, 1]);
  const scores = b.op("Add", [b.op("MatMul", [splitHeads(b, query, heads), turned]), added]);
  const shares = b.op("Softmax", [scores], { axis: -1n });
  const mixed = joinHeads(b, b.op("MatMul", [shares, splitHeads(b, values!, heads)]), heads);
  return linear(b, "o", mixed, sized(s, all, s.width));
}

function feedForward(b: ModelBuilder, s: T5Shape, x: ValueName): ValueName {
  const inner = b.op("Relu", [linear(b, "wi", x, sized(s, s.width, s.inner))]);
  return linear(b, "wo", inner, sized(s, s.inner, s.width));
}

function sized({ isDynamic = false }: T5Shape, from: number, to: number): LinearShape {
  return { from, to, bias: false, isDynamic };
}

/** [1, heads, sequence, sequence]: the bias of each head by the bucket of key minus query. */
function positionBias(b: ModelBuilder, s: T5Shape, ids: ValueName): ValueName {
  return b.within("block.0/layer.0/SelfAttention", () => {
    const length = b.op("Squeeze", [sizeOf(b, ids, 1), b.integers(0)]);
    const places = b.op("Range", [b.integer(0), length, b.integer(1)]);
    const [queries, keys] = [1, 0].map((axis) => b.op("Unsqueeze", [places, b.integers(axis)]));
    const bucket = bucketOf(b, b.op("Sub", [keys!, queries!]));
    const name = "relative_attention_bias.weight";
    const table = b.weight(name, [buckets, s.heads], { deviation: 1 / Math.sqrt(s.width) });
    const biases = transpose(b, b.op("Gather", [table, bucket]), 2, 0, 1);
    return b.op("Unsqueeze", [biases, b.integers(0)]);
  });
}

/** Small distances have a bucket each, the others grow with their logarithm. */
function bucketOf(b: ModelBuilder, distance: ValueName): ValueName {
  const half = buckets / 2;
  const exact = half / 2;
  const behind = b.cast(b.op("Greater", [distance, b.integer(0)]), "i64");
  const far = b.op("Abs", [distance]);
  const log = b.op("Log", [b.op("Div", [b.cast(far, "f32"), b.scalar(exact)])]);
  const part = b.op("Div", [log, b.scalar(Math.log(mostDistance / exact))]);
  const step = b.cast(b.op("Mul", [part, b.scalar(half - exact)]), "i64");
  const large = b.op("Min", [b.op("Add", [step, b.integer(exact)]), b.integer(half - 1)]);
  const isSmall = b.op("Less", [far, b.integer(exact)]);
  const base = b.op("Mul", [behind, b.integer(half)]);
  return b.op("Add", [base, b.op("Where", [isSmall, far, large])]);
}
