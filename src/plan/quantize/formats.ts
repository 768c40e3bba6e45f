/**
 * The weight formats: bits a weight with their scales, the error that rounding to them makes, and what
 * a machine must have. Bits are those of the block layouts: GGML (ggml-common.h) Q8_0 34 bytes for 32
 * weights, Q6_K 210, Q5_K 176 and Q4_K 144 for 256; NVFP4 9 bytes for 16, MXFP4 17 for 32 (OCP MX 1.0);
 * AWQ 4 bits with a half and a 4-bit zero point for each 128 (Lin et al. 2023); INT8 a half a row.
 * `error` is the relative error (root mean square) on normally distributed weights, which
 * round-weights.test-support.ts recomputes; trained weights and clever scales do better.
 */
import type { NumberType } from "../../target/machine.ts";

export type FormatName =
  | "FP32"
  | "FP16"
  | "BF16"
  | "FP8"
  | "INT8"
  | "Q8_0"
  | "Q6_K"
  | "Q5_K_M"
  | "Q4_K_M"
  | "NVFP4"
  | "MXFP4"
  | "INT4-AWQ";

export interface WeightFormat {
  readonly name: FormatName;
  /** Of a matrix in this format, scales included. */
  readonly bits: number;
  /** Averaged over a model, where some of its layers' matrices stay in a larger format. */
  readonly mixedBits: number;
  /** Format and share of the matrices that stay larger: those that llama.cpp names more important. */
  readonly important?: { readonly bits: number; readonly share: number };
  /** Weights that share a scale: a row that is no multiple stays unquantized. */
  readonly block: number;
  readonly error: number;
  /** The GPU feature without which the format is not offered. */
  readonly needs?: "fp8" | "fp4" | "bf16";
  /** Type in which its matrix instructions multiply; the weights are widened to it. */
  readonly multiplies: NumberType;
  /** Cannot be made from the weights alone. */
  readonly needsCalibration?: boolean;
  /**
   * Embedding and output: at 16 bits in all that the format's tools write (AutoAWQ, and compressed-tensors,
   * which quantizes "Linear" but not lm_head), or at 16 in some checkpoints and in the format in others;
   * absent: by the format's own rules.
   */
  readonly ends?: "kept" | "varies";
}

export const weightFormats: readonly WeightFormat[] = [
  { name: "FP32", bits: 32, mixedBits: 32, block: 1, error: 0, multiplies: "f32" },
  { name: "FP16", bits: 16, mixedBits: 16, block: 1, error: 0.000208, multiplies: "f16" },
  {
    name: "BF16",
    bits: 16,
    mixedBits: 16,
    block: 1,
    error: 0.00166,
    needs: "bf16",
    multiplies: "bf16",
  },
  { name: "Q8_0", bits: 8.5, mixedBits: 8.5, block: 32, error: 0.0054, multiplies: "f16" },
  {
    name: "INT8",
    bits: 8.004,
    mixedBits: 8.004,
    block: 1,
    error: 0.0086,
    multiplies: "int8",
    ends: "kept",
  },
  {
    name: "FP8",
    bits: 8,
    mixedBits: 8,
    block: 1,
    error: 0.0264,
    needs: "fp8",
    multiplies: "fp8",
    ends: "kept",
  },
  { name: "Q6_K", bits: 6.5625, mixedBits: 6.5625, block: 256, error: 0.0194, multiplies: "f16" },
  {
    name: "Q5_K_M",
    bits: 5.5,
    mixedBits: 5.67,
    important: { bits: 6.5625, share: 0.16 },
    block: 256,
    error: 0.0358,
    multiplies: "f16",
  },
  {
    name: "Q4_K_M",
    bits: 4.5,
    mixedBits: 4.83,
    important: { bits: 6.5625, share: 0.16 },
    block: 256,
    error: 0.0722,
    multiplies: "f16",
  },
  {
    name: "NVFP4",
    bits: 4.5,
    mixedBits: 4.5,
    block: 16,
    error: 0.0949,
    needs: "fp4",
    multiplies: "fp4",
    ends: "varies",
  },
  {
    name: "MXFP4",
    bits: 4.25,
    mixedBits: 4.25,
    block: 32,
    error: 0.115,
    needs: "fp4",
    multiplies: "fp4",
    ends: "varies",
  },
  {
    name: "INT4-AWQ",
    bits: 4.15625,
    mixedBits: 4.15625,
    block: 128,
    error: 0.101,
    multiplies: "f16",
    needsCalibration: true,
    ends: "kept",
  },
];

/** Matrices that Q4_K_M and Q5_K_M keep in Q6_K: the output, and half of the value and down ones. */
const halfImportant = /(?:attn_v|v_proj|ffn_down|down_proj)\b.*weight/;
const outputMatrix = /^(?:output|lm_head)\.weight$/;

/** Share of a tensor that stays in the larger format. */
export function importantShare(tensor: string): number {
  if (outputMatrix.test(tensor)) return 1;
  return halfImportant.test(tensor) ? 0.5 : 0;
}

const formatByName: ReadonlyMap<string, WeightFormat> = new Map(
  weightFormats.map((f) => [f.name, f]),
);

export function formatNamed(name: string): WeightFormat | undefined {
  return formatByName.get(name.toUpperCase());
}
