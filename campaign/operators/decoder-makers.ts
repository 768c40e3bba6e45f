/** Random cases of operators of com.microsoft that newer decoders are exported with, by name. */
import type { Rng } from "../../src/support/rng.ts";
import type { CaseMaker } from "./microsoft-makers.ts";
import type { OperandSpec } from "./operator-case.ts";

const big = (value: number): bigint => BigInt(value);
const flip = (rng: Rng): boolean => rng.integer(0, 1) === 1;
const positive = (...shape: number[]): OperandSpec => ({ shape, range: [0.1, 1] });
const negative = (...shape: number[]): OperandSpec => ({ shape, range: [-2, -0.1] });

const gatedRmsNorm: CaseMaker = (rng) => {
  const [b, h, c] = [rng.integer(1, 4), rng.integer(1, 3), rng.integer(1, 9)];
  const activation = rng.pick(["silu", "swish", "sigmoid"]);
  return {
    node: { op: "GatedRMSNorm", attributes: { activation, epsilon: 1e-4 } },
    operands: [[b, h * c], [c], [b, h * c]],
  };
};

const gatedAdd: CaseMaker = (rng) => {
  const [b, s, c] = [rng.integer(1, 3), rng.integer(1, 4), rng.integer(1, 9)];
  return {
    node: { op: "GatedAdd" },
    operands: [
      [b, s, c],
      [b, s, c],
      [b, s, 1],
    ],
  };
};

const branchwiseRmsNorm: CaseMaker = (rng) => {
  const [b, c, h] = [rng.integer(1, 3), rng.integer(2, 4), rng.integer(1, 9)];
  const flat = flip(rng);
  return {
    node: {
      op: "BranchwiseRMSNorm",
      attributes: flat ? { num_branches: big(c) } : {},
    },
    operands: [flat ? [b, c * h] : [b, c, h], rng.pick([[c * h], [c, h], [h], undefined])],
  };
};

const scaledSilu: CaseMaker = (rng) => ({
  node: { op: "ScaledSiLU", attributes: { alpha: 0.5 + rng.uniform() } },
  operands: [[rng.integer(1, 4), rng.integer(1, 20)], flip(rng) ? positive() : undefined],
});

const preMix: CaseMaker = (rng) => {
  const [b, c, h] = [rng.integer(1, 3), rng.integer(2, 4), rng.integer(5, 9)];
  const flat = flip(rng);
  return {
    node: {
      op: "HyperConnectionPreMix",
      attributes: { reduction_scale: 0.5, ...(flat && { num_branches: big(c) }) },
    },
    operands: [
      flat ? [b, c * h] : [b, c, h],
      rng.pick([
        [b, c],
        [b, c, 1],
        [b, c, h],
      ]),
    ],
    outputs: [["y", "f32", 2]],
  };
};

const postMix: CaseMaker = (rng) => {
  const [b, c, h] = [rng.integer(1, 3), rng.integer(2, 4), rng.integer(5, 9)];
  const flat = flip(rng);
  return {
    node: {
      op: "HyperConnectionPostMix",
      attributes: flat ? { num_branches: big(c) } : {},
    },
    operands: [
      flat ? [b, c * h] : [b, c, h],
      [b, h],
      rng.pick([
        [b, c],
        [b, c, 1],
        [b, c, h],
      ]),
      flip(rng) ? [b, c, c] : undefined,
    ],
  };
};

const threePositions: CaseMaker = (rng) => {
  const [b, s, heads] = [rng.integer(1, 3), rng.integer(1, 5), rng.integer(1, 3)];
  const sections = [rng.integer(1, 3), rng.integer(1, 3), rng.integer(1, 3)];
  const layout = rng.integer(0, 1);
  if (layout === 1) sections.splice(0, 3, rng.integer(2, 4), 2, 2);
  const half = sections.reduce((x, y) => x + y, 0);
  const whole = flip(rng);
  const size = whole ? 2 * half : 2 * half + 2 * rng.integer(1, 2);
  return {
    node: {
      op: "MRotaryEmbedding",
      attributes: {
        mrope_section: sections.map(big),
        mrope_layout: big(layout),
        interleaved: big(rng.integer(0, 1)),
        num_heads: big(heads),
        ...(!whole && { rotary_embedding_dim: big(2 * half) }),
      },
    },
    operands: [
      [b, s, heads * size],
      { shape: [3, b, s], dtype: "i64", range: [0, 9] },
      [10, half],
      [10, half],
    ],
    outputs: [["y", "f32", 3]],
  };
};

const router: CaseMaker = (rng) => {
  const [groups, size] = [rng.integer(1, 4), rng.integer(2, 4)];
  const kept = rng.integer(1, groups);
  return {
    node: {
      op: "MoEGroupRouter",
      attributes: {
        n_group: big(groups),
        topk_group: big(kept),
        top_k: big(rng.integer(1, kept * size)),
        group_topk: big(rng.integer(1, 2)),
      },
    },
    operands: [[rng.integer(1, 6), groups * size], [groups * size]],
  };
};

const gatedDeltaNet: CaseMaker = (rng) => {
  const [b, s, keys] = [rng.integer(1, 3), rng.integer(1, 6), rng.integer(1, 2)];
  const heads = keys * rng.integer(1, 2);
  const [d, m] = [rng.integer(2, 6), rng.integer(2, 6)];
  const rows = flip(rng) ? [b, s] : [b * s];
  const packed = flip(rng);
  const rule = rng.pick(["linear", "gated", "delta", "gated_delta"]);
  const each = flip(rng) ? [] : [d];
  const past: OperandSpec = { shape: [b, heads, m, d] };
  const gated = rule.startsWith("gated");
  const gate = gated ? rng.pick(["none", "softplus", "sigmoid"]) : "none";
  const opened = gate !== "none";
  const decay = gate === "none" ? negative(...rows, heads, ...each) : [...rows, heads, ...each];
  return {
    node: {
      op: "GatedDeltaNet",
      attributes: {
        update_rule: rule,
        gate_activation: gate,
        beta_activation: rng.pick(["none", "sigmoid"]),
        qk_l2_norm: 1n,
      },
    },
    operands: [
      packed ? [...rows, 2 * keys * d + heads * m] : [...rows, keys, d],
      packed ? undefined : [...rows, keys, d],
      packed ? undefined : [...rows, heads, m],
      undefined,
      gated ? decay : undefined,
      rule.endsWith("delta") ? positive(...rows, heads) : undefined,
      past,
      opened ? [heads] : undefined,
      opened ? [heads, ...each] : undefined,
    ],
    outputs: [
      ["y", "f32", rows.length + 2],
      ["state", "f32", 4],
    ],
    tolerance: 1e-4,
  };
};

const quantisedConvolution: CaseMaker = (rng) => {
  const [c, m, groups] = [rng.integer(1, 3), rng.integer(1, 4), rng.integer(1, 2)];
  const last = flip(rng);
  const scalar = (value: number): OperandSpec => ({ shape: [], values: [value], weight: true });
  const zero = (value: number): OperandSpec => ({ ...scalar(value), dtype: "u8" });
  const spatial = [rng.integer(3, 7), rng.integer(3, 7)];
  const channels = c * groups;
  return {
    node: {
      op: "QLinearConv",
      attributes: {
        group: big(groups),
        pads: [1n, 0n, 1n, 1n],
        strides: [1n, big(rng.integer(1, 2))],
        ...(last && { channels_last: 1n }),
      },
    },
    operands: [
      {
        shape: last ? [2, ...spatial, channels] : [2, channels, ...spatial],
        dtype: "u8",
        range: [0, 255],
      },
      scalar(0.02),
      zero(120),
      { shape: [m * groups, c, 3, 3], dtype: "u8", range: [0, 255], weight: true },
      scalar(0.01),
      zero(130),
      scalar(0.1),
      zero(rng.integer(100, 150)),
      flip(rng)
        ? { shape: [m * groups], dtype: "i32", range: [-500, 500], weight: true }
        : undefined,
    ],
    outputs: [["y", "u8", 4]],
  };
};

const inverse: CaseMaker = (rng) => {
  const [b, n] = [rng.integer(1, 3), rng.integer(1, 4)];
  // Far from singular, with the large entries anywhere in a row.
  const values = Array.from({ length: b }, () => {
    const rows = Array.from({ length: n }, (_, i) =>
      Array.from({ length: n }, (_, j) => (i === j ? n + 1 : 2 * rng.uniform() - 1)),
    );
    const turn = rng.integer(0, n - 1);
    return [...rows.slice(turn), ...rows.slice(0, turn)].flat();
  }).flat();
  return { node: { op: "Inverse" }, operands: [{ shape: [b, n, n], values }] };
};

const forbidRepeats: CaseMaker = (rng) => {
  const [b, s] = [rng.integer(1, 3), rng.integer(1, 12)];
  return {
    node: { op: "NGramRepeatBlock", attributes: { ngram_size: big(rng.integer(1, 4)) } },
    operands: [{ shape: [b, s], dtype: "i64", range: [0, 3] }, [b, 4]],
  };
};

/** Those that onnxruntime-node has. */
export const peerDecoderMakers: Readonly<Record<string, CaseMaker>> = {
  GatedAdd: gatedAdd,
  QLinearConv: quantisedConvolution,
  Inverse: inverse,
  NGramRepeatBlock: forbidRepeats,
};

/** Those that newer versions of onnxruntime have. */
export const decoderMakers: Readonly<Record<string, CaseMaker>> = {
  GatedRMSNorm: gatedRmsNorm,
  BranchwiseRMSNorm: branchwiseRmsNorm,
  ScaledSiLU: scaledSilu,
  HyperConnectionPreMix: preMix,
  HyperConnectionPostMix: postMix,
  MRotaryEmbedding: threePositions,
  MoEGroupRouter: router,
  GatedDeltaNet: gatedDeltaNet,
};
