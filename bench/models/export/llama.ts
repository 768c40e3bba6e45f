/**
 * One decoder block of the Llama family as PyTorch exports it at operator set 18: RMSNorm as Pow,
 * ReduceMean, Sqrt and Div in f32 whatever the model's type, rotary positions computed from
 * `position_ids`, grouped keys and values repeated by Expand, SwiGLU as Sigmoid and Mul. Hidden states
 * in and out. `llama-block` has the shapes of a 1-billion model, `llama-8b-block` of an 8-billion one.
 */
import { tensorOf } from "../../../src/frontend/onnx/model-writer.ts";
import {
  batchOfSequences,
  eagerAttention,
  joinHeads,
  linear,
  lowestOf,
  meanOfLast,
  sizeOf,
  splitHeads,
  transpose,
  view,
} from "./layers.ts";
import type { ModelBuilder, ValueName } from "./model-builder.ts";

export interface LlamaShape {
  readonly width: number;
  readonly heads: number;
  /** Heads of keys and values. */
  readonly groups: number;
  readonly headSize: number;
  readonly inner: number;
  readonly base: number;
  readonly blocks: number;
}

export const llama1b: LlamaShape = {
  width: 2048,
  heads: 32,
  groups: 8,
  headSize: 64,
  inner: 8192,
  base: 500_000,
  blocks: 1,
};
export const llama8b: LlamaShape = { ...llama1b, width: 4096, headSize: 128, inner: 14_336 };

const epsilon = 1e-5;

/** What the rows of a batch look at, and where they stand. */
interface Places {
  readonly cosine: ValueName;
  readonly sine: ValueName;
  readonly mask: ValueName;
}

export function buildLlama(b: ModelBuilder, shape: LlamaShape): void {
  const states = [...batchOfSequences, shape.width];
  let x = b.input("hidden_states", "f32", states);
  const positions = b.input("position_ids", "i64", batchOfSequences);
  const places = { ...rotaryTables(b, shape, positions), mask: causalMask(b, x) };
  for (let i = 0; i < shape.blocks; i++) {
    x = b.within(`layers.${i}`, () => {
      const attended = b.op("Add", [
        x,
        attention(b, shape, rmsNorm(b, "input_layernorm", x, shape), places),
      ]);
      const normal = rmsNorm(b, "post_attention_layernorm", attended, shape);
      return b.op("Add", [attended, b.within("mlp", () => swiGlu(b, normal, shape))]);
    });
  }
  b.output("last_hidden_state", x, "f32", states);
}

/** x / √(mean x² + ε) in f32, then the model's type and the scale. */
export function rmsNorm(
  b: ModelBuilder,
  path: string,
  x: ValueName,
  { width }: { readonly width: number },
): ValueName {
  return b.within(path, () => {
    const half = b.hasWideStatistics;
    const wide = half ? b.cast(x, "f32") : x;
    const dtype = half ? "f32" : b.dtype;
    const square = meanOfLast(b, b.op("Pow", [wide, b.scalar(2, dtype)]));
    const root = b.op("Sqrt", [b.op("Add", [square, b.scalar(epsilon, dtype)])]);
    const normal = b.op("Mul", [wide, b.op("Div", [b.scalar(1, dtype), root])]);
    const scale = b.weight("weight", [width], { mean: 1, deviation: 0.02 });
    return b.op("Mul", [scale, half ? b.cast(normal, b.dtype) : normal]);
  });
}

/** cos and sin of position · base^(-2i/size), [batch, 1, sequence, size], computed in f32. */
function rotaryTables(b: ModelBuilder, s: LlamaShape, positions: ValueName) {
  return b.within("rotary_emb", () => {
    const half = s.headSize / 2;
    const rates = Float32Array.from({ length: half }, (_, i) => s.base ** (-i / half));
    const rate = b.constant(tensorOf("f32", [1, half, 1], rates));
    const shape = b.op("Concat", [sizeOf(b, positions, 0), b.integers(half), b.integers(1)], {
      axis: 0n,
    });
    const spread = b.op("Expand", [rate, shape]);
    const places = b.cast(b.op("Unsqueeze", [positions, b.integers(1)]), "f32");
    const angles = transpose(b, b.op("MatMul", [spread, places]), 0, 2, 1);
    const both = b.op("Concat", [angles, angles], { axis: -1n });
    const table = (op: string): ValueName => {
      const value = b.op(op, [both]);
      return b.op("Unsqueeze", [b.dtype === "f32" ? value : b.cast(value, b.dtype), b.integers(1)]);
    };
    return { cosine: table("Cos"), sine: table("Sin") };
  });
}

/** [1, 1, sequence, sequence]: the lowest number above the diagonal, 0 elsewhere. */
export function causalMask(b: ModelBuilder, x: ValueName): ValueName {
  const length = sizeOf(b, x, 1);
  const square = b.op("Concat", [length, length], { axis: 0n });
  const value = tensorOf("f32", [1], Float32Array.of(lowestOf(b)));
  const full = b.op("ConstantOfShape", [square], { value });
  const upper = b.op("Trilu", [full, b.integer(1)], { upper: 1n });
  const mask = b.op("Unsqueeze", [upper, b.integers(0, 1)]);
  return b.dtype === "f32" ? mask : b.cast(mask, b.dtype);
}

function attention(b: ModelBuilder, s: LlamaShape, x: ValueName, places: Places): ValueName {
  return b.within("self_attn", () => {
    const project = (name: string, heads: number): ValueName => {
      const to = heads * s.headSize;
      const flat = linear(b, name, x, { from: s.width, to, bias: false });
      return splitHeads(b, flat, { count: heads, size: s.headSize });
    };
    const query = rotate(b, project("q_proj", s.heads), places, s.headSize);
    const keys = rotate(b, project("k_proj", s.groups), places, s.headSize);
    const values = project("v_proj", s.groups);
    const mixed = eagerAttention(b, {
      query,
      keysTurned: transpose(b, repeatGroups(b, keys, s), 0, 1, 3, 2),
      values: repeatGroups(b, values, s),
      mask: places.mask,
      headSize: s.headSize,
    });
    const joined = joinHeads(b, mixed, { count: s.heads, size: s.headSize });
    return linear(b, "o_proj", joined, { from: s.heads * s.headSize, to: s.width, bias: false });
  });
}

/** x·cos + (-second half, first half)·sin. */
function rotate(b: ModelBuilder, x: ValueName, { cosine, sine }: Places, size: number): ValueName {
  const part = (from: number, to: number): ValueName =>
    b.op("Slice", [x, b.integers(from), b.integers(to), b.integers(3), b.integers(1)]);
  const first = part(0, size / 2);
  const second = b.op("Neg", [part(size / 2, Number.MAX_SAFE_INTEGER)]);
  const turned = b.op("Concat", [second, first], { axis: -1n });
  return b.op("Add", [b.op("Mul", [x, cosine]), b.op("Mul", [turned, sine])]);
}

/** Each head of keys or values as often as queries share it. */
function repeatGroups(b: ModelBuilder, x: ValueName, s: LlamaShape): ValueName {
  const times = s.heads / s.groups;
  const [batch, length] = [sizeOf(b, x, 0), sizeOf(b, x, 2)];
  const shape = [batch, b.integers(s.groups), b.integers(times), length, b.integers(s.headSize)];
  const spread = b.op("Unsqueeze", [x, b.integers(2)]);
  const repeated = b.op("Expand", [spread, b.op("Concat", shape, { axis: 0n })]);
  return view(b, repeated, [batch, s.heads, length, s.headSize]);
}

/** down(silu(gate x) · up x). */
function swiGlu(b: ModelBuilder, x: ValueName, s: LlamaShape): ValueName {
  const inward = { from: s.width, to: s.inner, bias: false };
  const gate = linear(b, "gate_proj", x, inward);
  const active = b.op("Mul", [gate, b.op("Sigmoid", [gate])]);
  const product = b.op("Mul", [active, linear(b, "up_proj", x, inward)]);
  return linear(b, "down_proj", product, { from: s.inner, to: s.width, bias: false });
}
