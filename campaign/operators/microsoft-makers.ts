/** Random cases of operators of com.microsoft that onnxruntime has for the processor, by name. */
import type { Rng } from "../../src/support/rng.ts";
import { peerDecoderMakers } from "./decoder-makers.ts";
import type { OperandSpec, OperatorCase, OutputSpec } from "./operator-case.ts";
import { plainMicrosoftMakers } from "./plain-microsoft-makers.ts";
import { smallMicrosoftMakers } from "./small-microsoft-makers.ts";

export type CaseMaker = (rng: Rng) => OperatorCase;

const big = (value: number): bigint => BigInt(value);
const flip = (rng: Rng): boolean => rng.integer(0, 1) === 1;
const maybe = <T>(rng: Rng, value: T): T | undefined => (flip(rng) ? value : undefined);
const ints = (values: readonly number[], shape = [values.length]): OperandSpec => ({
  shape,
  dtype: "i32",
  values,
});
const constantInts = (values: readonly number[], shape?: number[]): OperandSpec => ({
  ...ints(values, shape),
  weight: true,
});
const bytes = (...shape: number[]): OperandSpec => ({
  shape,
  dtype: "u8",
  range: [0, 255],
  weight: true,
});

/** Query, key and value heads: as many keys as queries, fewer, or more. */
function drawHeads(rng: Rng): { queries: number; keys: number; values: number } {
  const values = rng.pick([1, 2, 4]);
  const queries = rng.pick([values, 2 * values, ...(values > 1 ? [values / 2] : [])]);
  return { queries, keys: Math.min(queries, values), values };
}

function linearAttention(rng: Rng): OperatorCase {
  const [b, t] = [rng.integer(1, 3), rng.integer(1, 9)];
  const { queries, keys, values } = drawHeads(rng);
  const [dk, dv] = [rng.pick([2, 5, 8]), rng.pick([3, 8])];
  const rule = rng.pick(["linear", "gated", "delta", "gated_delta"]);
  const gated = rule.startsWith("gated");
  const decay = { shape: [b, t, flip(rng) ? values : values * dk], range: [-2, 0] } as const;
  const beta = { shape: [b, t, flip(rng) ? values : 1], range: [0, 1] } as const;
  return {
    node: {
      op: "LinearAttention",
      attributes: {
        q_num_heads: big(queries),
        kv_num_heads: big(values),
        update_rule: rule,
        ...(flip(rng) && { scale: 0.3 }),
      },
    },
    operands: [
      [b, t, queries * dk],
      { shape: [b, t, keys * dk], range: [-0.5, 0.5] },
      [b, t, values * dv],
      maybe(rng, [b, values, dk, dv]),
      gated ? decay : undefined,
      rule.endsWith("delta") ? beta : undefined,
    ],
    outputs: [
      ["y", "f32"],
      ["state", "f32", 4],
    ],
    tolerance: 1e-4,
  };
}

function linearAttentionGate(rng: Rng): OperatorCase {
  const [b, t, h] = [rng.integer(1, 3), rng.integer(1, 7), rng.integer(1, 9)];
  return {
    node: { op: "LinearAttentionGate" },
    operands: [[b, t, h], [h], [h], [b, t, h]],
    outputs: [
      ["decay", "f32"],
      ["beta", "f32"],
    ],
  };
}

function causalConvolution(rng: Rng): OperatorCase {
  const [b, length] = [rng.integer(1, 3), rng.integer(1, 12)];
  const [k, dilation] = [rng.integer(1, 5), rng.pick([1, 1, 2, 3])];
  const last = flip(rng);
  const inner = last && flip(rng) ? [2, rng.integer(1, 4)] : [rng.integer(1, 9)];
  const channels = inner.reduce((x, y) => x * y, 1);
  const sequence = (extent: number) => (last ? [b, extent, ...inner] : [b, channels, extent]);
  const state = (k - 1) * dilation;
  return {
    node: {
      op: "CausalConvWithState",
      attributes: {
        activation: rng.pick(["none", "silu", "swish"]),
        ...(dilation > 1 && { dilation: big(dilation) }),
        ...(last && { channels_last: 1n }),
      },
    },
    operands: [
      sequence(length),
      [channels, 1, k],
      maybe(rng, [channels]),
      state > 0 ? maybe(rng, sequence(state)) : undefined,
    ],
    outputs: [
      ["y", "f32"],
      ["state", "f32"],
    ],
  };
}

function decoderMaskedAttention(rng: Rng): OperatorCase {
  const [b, heads, d] = [rng.integer(1, 3), rng.integer(1, 4), rng.pick([4, 8])];
  const hidden = heads * d;
  const node = {
    op: "DecoderMaskedMultiHeadAttention",
    attributes: { num_heads: big(heads), ...(flip(rng) && { scale: 0.4 }) },
  };
  if (flip(rng)) {
    const keys = rng.integer(1, 9);
    const store = [b, heads, keys, d];
    const seen = ints(
      Array.from({ length: b * keys }, (_, i) => (i % keys === 0 || flip(rng) ? 1 : 0)),
      [b, keys],
    );
    return { node, operands: [[b, 1, hidden], store, store, maybe(rng, seen)], tolerance: 1e-4 };
  }
  const most = rng.integer(2, 9);
  // With nothing before, the peer does not write the new key and value.
  const past = rng.integer(1, most - 1);
  const store = [b, heads, most, d];
  const fresh = [b, 1, hidden];
  const none = undefined;
  return {
    node: { ...node, attributes: { ...node.attributes, past_present_share_buffer: 1n } },
    operands: [
      fresh,
      fresh,
      fresh,
      none,
      maybe(rng, [1, heads, 1, past + 1]),
      store,
      store,
      constantInts([past]),
      none,
      none,
      maybe(rng, [3 * hidden]),
    ],
    outputs: [
      ["y", "f32"],
      ["key", "f32", 4],
      ["value", "f32", 4],
    ],
    tolerance: 1e-4,
  };
}

interface Blocks {
  readonly ends: OperandSpec;
  readonly columns: OperandSpec;
}

/** Blocks below the diagonal at random, those on it always, in compressed rows. */
function drawBlocks(rng: Rng, layouts: number, blocks: number): Blocks {
  const rows = Array.from({ length: layouts }, () => {
    const columns: number[] = [];
    const ends = [0];
    for (let row = 0; row < blocks; row++) {
      for (let column = 0; column <= row; column++)
        if (column === row || flip(rng)) columns.push(column);
      ends.push(columns.length);
    }
    return { columns, ends };
  });
  const width = Math.max(...rows.map((r) => r.columns.length));
  const filled = rows.flatMap((r) => [
    ...r.columns,
    ...new Array<number>(width - r.columns.length).fill(-1),
  ]);
  return {
    ends: constantInts(
      rows.flatMap((r) => r.ends),
      [layouts, blocks + 1],
    ),
    columns: constantInts(filled, [layouts, width]),
  };
}

function sparseAttention(rng: Rng): OperatorCase {
  const groups = rng.integer(1, 2);
  const layouts = rng.integer(1, 2);
  const heads = 2 * groups;
  const [size, d] = [16, 16];
  const blocks = rng.integer(2, 4);
  const most = blocks * size;
  const prompt = flip(rng);
  const b = rng.integer(1, 2);
  const rows = prompt ? rng.integer(2, most) : 1;
  // The peer mixes up the scores of a step of sequences of several lengths.
  const total = prompt ? rows : rng.integer(1, most);
  const lengths = Array.from({ length: b }, () => total);
  const { ends, columns } = drawBlocks(rng, layouts, blocks);
  const rotated = flip(rng);
  const store = (becomes: string) => ({ shape: [b, groups, most, d], becomes });
  return {
    node: {
      op: "SparseAttention",
      attributes: {
        num_heads: big(heads),
        kv_num_heads: big(groups),
        sparse_block_size: big(size),
        ...(rotated && { do_rotary: 1n, rotary_interleaved: big(rng.integer(0, 1)) }),
      },
    },
    operands: [
      [b, rows, heads * d],
      [b, rows, groups * d],
      [b, rows, groups * d],
      store("key"),
      store("value"),
      ends,
      columns,
      constantInts([total]),
      ints(lengths),
      ...(rotated ? [[most, d / 2] as const, [most, d / 2] as const] : []),
    ],
    outputs: [
      ["y", "f32"],
      ["key", "f32", 4],
      ["value", "f32", 4],
    ],
    tolerance: 1e-4,
  };
}

const activations = ["relu", "gelu", "silu", "identity", "swiglu"] as const;

interface Mixture {
  readonly tokens: readonly number[];
  readonly routes: readonly number[];
  readonly experts: number;
  readonly hidden: number;
  readonly inner: number;
  readonly fused: number;
  readonly attributes: Readonly<Record<string, bigint | string | number>>;
}

function drawMixture(rng: Rng, sizes: readonly number[]): Mixture {
  const experts = rng.integer(2, 8);
  const [b, s] = [rng.integer(1, 2), rng.integer(1, 4)];
  const hidden = rng.pick(sizes);
  const activation = rng.pick(activations);
  const gated = activation === "swiglu";
  return {
    tokens: flip(rng) ? [b * s, hidden] : [b, s, hidden],
    routes: [b * s, experts],
    experts,
    hidden,
    inner: rng.pick(sizes),
    fused: gated ? 2 : 1,
    attributes: {
      k: big(rng.integer(1, Math.min(experts, 3))),
      activation_type: activation,
      normalize_routing_weights: big(rng.integer(0, 1)),
      ...(gated && { swiglu_fusion: 1n, activation_alpha: 1.702, activation_beta: 1 }),
      ...(gated && flip(rng) && { swiglu_limit: 1.5 }),
    },
  };
}

function mixtureOfExperts(rng: Rng): OperatorCase {
  const { tokens, routes, experts, hidden, inner, fused, attributes } = drawMixture(
    rng,
    [4, 6, 12],
  );
  return {
    node: { op: "MoE", attributes },
    operands: [
      tokens,
      routes,
      { shape: [experts, fused * inner, hidden], weight: true },
      maybe(rng, [experts, fused * inner]),
      { shape: [experts, hidden, inner], weight: true },
      maybe(rng, [experts, hidden]),
    ],
    tolerance: 1e-4,
  };
}

function quantizedMixture(rng: Rng): OperatorCase {
  const drawn = drawMixture(rng, [32, 64]);
  const { tokens, routes, experts, hidden, inner, fused } = drawn;
  const bits = rng.pick([4, 8]);
  const pack = 8 / bits;
  // Where the first product has one block, the peer takes one for the second too.
  const blocks = hidden === 32 && inner > 32 ? [0, 16] : [0, 16, 32];
  const block = bits === 4 ? rng.pick(blocks) : 0;
  const scales = (rows: number, depth: number): OperandSpec => ({
    shape: [experts, rows, ...(block > 0 ? [depth / block] : [])],
    range: [0.005, 0.02],
    weight: true,
  });
  return {
    node: {
      op: "QMoE",
      attributes: {
        ...drawn.attributes,
        // The peer takes no notice of it and always does so.
        normalize_routing_weights: 1n,
        expert_weight_bits: big(bits),
        ...(block > 0 && { block_size: big(block) }),
      },
    },
    operands: [
      tokens,
      routes,
      bytes(experts, fused * inner, hidden / pack),
      scales(fused * inner, hidden),
      maybe(rng, { shape: [experts, fused * inner], weight: true }),
      bytes(experts, hidden, inner / pack),
      scales(hidden, inner),
      maybe(rng, { shape: [experts, hidden], weight: true }),
    ],
    tolerance: 1e-3,
  };
}

function matMulBnb4(rng: Rng): OperatorCase {
  const [n, k] = [rng.integer(1, 9), rng.pick([16, 24, 40])];
  const block = rng.pick([16, 32]);
  const count = n * k;
  return {
    node: {
      op: "MatMulBnb4",
      attributes: {
        K: big(k),
        N: big(n),
        block_size: big(block),
        quant_type: big(rng.integer(0, 1)),
      },
    },
    operands: [
      [rng.integer(1, 3), rng.integer(1, 4), k],
      bytes(Math.ceil(count / 2)),
      { shape: [Math.ceil(count / block)], range: [0.1, 2], weight: true },
    ],
    tolerance: 1e-4,
  };
}

function triangle(rng: Rng): OperatorCase {
  const k: OperandSpec = {
    shape: [],
    dtype: "i64",
    values: [rng.integer(-3, 3)],
    weight: true,
  };
  return {
    node: { op: "Trilu", attributes: { upper: big(rng.integer(0, 1)) } },
    operands: [[rng.integer(1, 3), rng.integer(1, 6), rng.integer(1, 6)], maybe(rng, k)],
  };
}

/** Grouped attention whose heads may attend to nothing. */
function sinks(rng: Rng): OperatorCase {
  const groups = rng.integer(1, 2);
  const heads = groups * rng.integer(1, 3);
  const [b, rows, past] = [1, rng.integer(1, 5), rng.integer(0, 4)];
  const d = rng.pick([8, 16]);
  const given = flip(rng);
  const store = past > 0 ? [b, groups, past, d] : undefined;
  const none = undefined;
  const outputs: readonly OutputSpec[] = [
    ["y", "f32"],
    ["key", "f32", 4],
    ["value", "f32", 4],
  ];
  return {
    node: {
      op: "GroupQueryAttention",
      attributes: {
        num_heads: big(heads),
        kv_num_heads: big(groups),
        ...(!given && { smooth_softmax: 1n }),
        ...(flip(rng) && { local_window_size: 3n }),
      },
    },
    operands: [
      [b, rows, heads * d],
      [b, rows, groups * d],
      [b, rows, groups * d],
      store,
      store,
      ints([past + rows - 1], [b, 1]),
      constantInts([past + rows], []),
      none,
      none,
      none,
      none,
      given ? [heads] : none,
    ],
    outputs,
    tolerance: 1e-4,
  };
}

export const microsoftMakers: Readonly<Record<string, CaseMaker>> = {
  LinearAttention: linearAttention,
  LinearAttentionGate: linearAttentionGate,
  CausalConvWithState: causalConvolution,
  DecoderMaskedMultiHeadAttention: decoderMaskedAttention,
  SparseAttention: sparseAttention,
  MoE: mixtureOfExperts,
  QMoE: quantizedMixture,
  MatMulBnb4: matMulBnb4,
  Trilu: triangle,
  "GroupQueryAttention with sinks": sinks,
  ...smallMicrosoftMakers,
  ...plainMicrosoftMakers,
  ...peerDecoderMakers,
};
