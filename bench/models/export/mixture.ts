/**
 * A mixture-of-experts feed-forward block (router, the best 8 of 32 experts a token, SwiGLU experts;
 * the shapes of Granite-3.0-1B-A400M) as PyTorch exports it at operator set 18. `dense` is the form without
 * shapes that depend on data, as transformers exports batched experts: every expert computes every
 * token, and the router's weights, zero but for the chosen, sum them up. `routed` is transformers' loop
 * over experts: NonZero finds an expert's tokens, Gather takes them, ScatterND adds what it makes.
 */
import { tensorOf } from "../../../src/frontend/onnx/model-writer.ts";
import { batchOfSequences, fanIn, linear, sizeOf, view } from "./layers.ts";
import { rmsNorm } from "./llama.ts";
import type { ModelBuilder, ValueName } from "./model-builder.ts";

export interface MixtureShape {
  readonly width: number;
  readonly inner: number;
  readonly experts: number;
  readonly chosen: number;
}

export const granite: MixtureShape = { width: 1024, inner: 512, experts: 32, chosen: 8 };

/** Of each token: the weights of its experts and which they are, [tokens, chosen]. */
interface Routing {
  readonly shares: ValueName;
  readonly indices: ValueName;
}

export function buildMixture(b: ModelBuilder, s: MixtureShape, form: "dense" | "routed"): void {
  const states = [...batchOfSequences, s.width];
  const x = b.input("hidden_states", "f32", states);
  const normal = rmsNorm(b, "post_attention_layernorm", x, s);
  const mixed = b.within("mlp", () => {
    const rows = b.op("Reshape", [normal, b.integers(-1, s.width)]);
    const routing = route(b, s, rows);
    const sum =
      form === "dense" ? denseExperts(b, s, rows, routing) : routedExperts(b, s, rows, routing);
    return view(b, sum, [sizeOf(b, x, 0), sizeOf(b, x, 1), s.width]);
  });
  b.output("last_hidden_state", b.op("Add", [x, mixed]), "f32", states);
}

/** Softmax over all experts in f32, the largest of it. */
function route(b: ModelBuilder, s: MixtureShape, rows: ValueName): Routing {
  const logits = linear(b, "gate", rows, { from: s.width, to: s.experts, bias: false });
  const wide = b.hasWideStatistics ? b.cast(logits, "f32") : logits;
  const shares = b.op("Softmax", [wide], { axis: 1n });
  const attributes = { axis: -1n, largest: 1n, sorted: 1n };
  const [best, indices] = b.ops("TopK", [shares, b.integers(s.chosen)], attributes, 2);
  return { shares: b.hasWideStatistics ? b.cast(best!, b.dtype) : best!, indices: indices! };
}

function denseExperts(b: ModelBuilder, s: MixtureShape, rows: ValueName, r: Routing): ValueName {
  const count = sizeOf(b, rows, 0);
  const square = b.op("Concat", [count, b.integers(s.experts)], { axis: 0n });
  const zero = tensorOf(b.dtype, [1], b.dtype !== "f32" ? new Uint16Array(1) : new Float32Array(1));
  const none = b.op("ConstantOfShape", [square], { value: zero });
  const weights = b.op("ScatterElements", [none, r.indices, r.shares], { axis: 1n });
  const stacked = (name: string, from: number, to: number): ValueName =>
    b.weight(`experts.${name}`, [s.experts, from, to], fanIn(from));
  const each = b.op("Unsqueeze", [rows, b.integers(0)]);
  const gate = b.op("MatMul", [each, stacked("gate_proj", s.width, s.inner)]);
  const up = b.op("MatMul", [each, stacked("up_proj", s.width, s.inner)]);
  const active = b.op("Mul", [b.op("Mul", [gate, b.op("Sigmoid", [gate])]), up]);
  const made = b.op("MatMul", [active, stacked("down_proj", s.inner, s.width)]);
  const turned = b.op("Transpose", [weights], { perm: [1n, 0n] });
  const weighted = b.op("Mul", [made, b.op("Unsqueeze", [turned, b.integers(2)])]);
  return b.op("ReduceSum", [weighted, b.integers(0)], { keepdims: 0n });
}

function routedExperts(b: ModelBuilder, s: MixtureShape, rows: ValueName, r: Routing): ValueName {
  const zero = tensorOf(b.dtype, [1], b.dtype !== "f32" ? new Uint16Array(1) : new Float32Array(1));
  let sum = b.op("ConstantOfShape", [b.op("Shape", [rows])], { value: zero });
  const narrow = b.cast(r.indices, "i32");
  for (let i = 0; i < s.experts; i++) {
    sum = b.within(`experts.${i}`, () => {
      const expert = b.constant(tensorOf("i32", [], Int32Array.of(i)));
      const found = b.op("NonZero", [b.op("Equal", [narrow, expert])]);
      const pairs = b.op("Transpose", [found], { perm: [1n, 0n] });
      const tokens = b.op("Gather", [found, b.integer(0)], { axis: 0n });
      const taken = b.op("Gather", [rows, tokens], { axis: 0n });
      const gate = linear(b, "gate_proj", taken, { from: s.width, to: s.inner, bias: false });
      const up = linear(b, "up_proj", taken, { from: s.width, to: s.inner, bias: false });
      const active = b.op("Mul", [b.op("Mul", [gate, b.op("Sigmoid", [gate])]), up]);
      const made = linear(b, "down_proj", active, { from: s.inner, to: s.width, bias: false });
      const share = b.op("Unsqueeze", [b.op("GatherND", [r.shares, pairs]), b.integers(1)]);
      const places = b.op("Unsqueeze", [tokens, b.integers(1)]);
      return b.op("ScatterND", [sum, places, b.op("Mul", [made, share])], { reduction: "add" });
    });
  }
  return sum;
}
