/**
 * Rounding of weights to each format, written from the formats' definitions (GGML block layouts, OCP FP8
 * and MX specifications, NVFP4: 16 values with an E4M3 scale), to judge the error column of the table.
 * Scales come from the largest magnitude of a block, as simple quantizers choose them.
 */
import { roundHalfEven, roundToFloat } from "../../semantics/float-codec.ts";
import type { FormatName } from "./formats.ts";

type Round = (x: Float64Array) => Float64Array;

const half = (x: number): number => roundToFloat("f16", x);

function inBlocks(size: number, body: (block: Float64Array) => Float64Array): Round {
  return (x) => {
    const result = new Float64Array(x.length);
    for (let at = 0; at < x.length; at += size) result.set(body(x.subarray(at, at + size)), at);
    return result;
  };
}

const peak = (block: Float64Array): number => block.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
const clamp = (v: number, low: number, high: number): number => Math.max(low, Math.min(high, v));

/** Symmetric integers with a half-precision scale. */
function symmetric(size: number, most: number): Round {
  return inBlocks(size, (block) => {
    const scale = half(peak(block) / most) || 1;
    return block.map((v) => clamp(roundHalfEven(v / scale), -most - 1, most) * scale);
  });
}

/** Unsigned integers with a scale and a minimum, both kept as integers of the super-block's scales. */
function withMinimum(size: number, most: number, scaleBits: number): Round {
  const levels = 2 ** scaleBits - 1;
  return inBlocks(256, (superBlock) => {
    const blocks = Array.from({ length: 256 / size }, (_, i) =>
      superBlock.subarray(i * size, (i + 1) * size),
    );
    const low = blocks.map((b) => Math.min(0, Math.min(...b)));
    const span = blocks.map((b, i) => (Math.max(...b) - low[i]!) / most);
    const scaleUnit = half(Math.max(...span) / levels) || 1;
    const minUnit = half(-Math.min(...low) / levels) || 1;
    const result = new Float64Array(256);
    blocks.forEach((block, i) => {
      const scale = roundHalfEven(span[i]! / scaleUnit) * scaleUnit || 1;
      const min = roundHalfEven(-low[i]! / minUnit) * minUnit;
      block.forEach((v, j) => {
        result[i * size + j] = clamp(roundHalfEven((v + min) / scale), 0, most) * scale - min;
      });
    });
    return result;
  });
}

/** Q6_K: 16 blocks of 16, signed 8-bit block scales, 6-bit values. */
const q6k: Round = inBlocks(256, (superBlock) => {
  const blocks = Array.from({ length: 16 }, (_, i) => superBlock.subarray(i * 16, i * 16 + 16));
  const scales = blocks.map((b) => peak(b) / 31);
  const unit = half(Math.max(...scales) / 127) || 1;
  const result = new Float64Array(256);
  blocks.forEach((block, i) => {
    const scale = roundHalfEven(scales[i]! / unit) * unit || 1;
    block.forEach((v, j) => {
      result[i * 16 + j] = clamp(roundHalfEven(v / scale), -32, 31) * scale;
    });
  });
  return result;
});

const q4k = withMinimum(32, 15, 6);
const q5k = withMinimum(32, 31, 6);

/** Q4_K_M and Q5_K_M keep about one weight in six in Q6_K. */
function mixed(base: Round): Round {
  return (x) => {
    const cut = Math.floor(x.length / 6 / 256) * 256;
    const result = base(x);
    result.set(q6k(x.subarray(0, cut)), 0);
    return result;
  };
}

export const roundWeights: Readonly<Record<FormatName, Round>> = {
  FP32: (x) => x.map((v) => roundToFloat("f32", v)),
  FP16: (x) => x.map(half),
  BF16: (x) => x.map((v) => roundToFloat("bf16", v)),
  FP8: inBlocks(4096, (row) => {
    const scale = peak(row) / 448;
    return row.map((v) => roundToFloat("f8e4m3fn", v / scale, "saturate") * scale);
  }),
  INT8: symmetric(4096, 127),
  Q8_0: symmetric(32, 127),
  Q6_K: q6k,
  Q5_K_M: mixed(q5k),
  Q4_K_M: mixed(q4k),
  "INT4-AWQ": inBlocks(128, (group) => {
    const low = Math.min(0, ...group);
    const scale = half((Math.max(0, ...group) - low) / 15) || 1;
    const zero = roundHalfEven(-low / scale);
    return group.map((v) => (clamp(roundHalfEven(v / scale) + zero, 0, 15) - zero) * scale);
  }),
  NVFP4: inBlocks(16, (block) => {
    // The scale of the whole tensor puts the block scales in the middle of E4M3's range.
    const scale = roundToFloat("f8e4m3fn", (peak(block) / 6) * 64, "saturate") / 64 || 1;
    return block.map((v) => roundToFloat("f4e2m1", v / scale, "saturate") * scale);
  }),
  MXFP4: inBlocks(32, (block) => {
    const scale = 2 ** (Math.floor(Math.log2(peak(block) || 1)) - 2);
    return block.map((v) => roundToFloat("f4e2m1", v / scale, "saturate") * scale);
  }),
};

/** Root of the mean squared error over that of the values. */
export function relativeError(format: FormatName, weights: Float64Array): number {
  const rounded = roundWeights[format](weights);
  let error = 0;
  let size = 0;
  weights.forEach((v, i) => {
    error += (v - rounded[i]!) ** 2;
    size += v ** 2;
  });
  return Math.sqrt(error / size);
}
