/**
 * Model descriptions from the headers of model files: safetensors with its config.json, GGUF with its
 * metadata, and the initializers and constants of ONNX.
 */
import type { GgufHeader } from "../../frontend/gguf/gguf-header.ts";
import type { GraphProto, TensorProto } from "../../frontend/onnx/generated/onnx_pb.ts";
import { readModelFile } from "../../frontend/onnx/model-file.ts";
import { safetensorBits } from "../../frontend/safetensors/safetensors.ts";
import type { SafetensorEntry } from "../../frontend/safetensors/safetensors-header.ts";
import type { Result } from "../../support/diagnostic.ts";
import type { FormatName } from "./formats.ts";
import {
  type DecoderShape,
  type ModelDescription,
  type ModelTensor,
  modelOfTensors,
} from "./model.ts";

/** Types of safetensors whose values are no weights to quantize. */
const integerTypes = new Set([
  "BOOL",
  "U8",
  "I8",
  "U16",
  "I16",
  "U32",
  "I32",
  "U64",
  "I64",
  "F8_E8M0",
]);

/** Names of the file formats by those of the format table. */
const formatNames: Readonly<Record<string, FormatName>> = {
  F32: "FP32",
  F16: "FP16",
  BF16: "BF16",
  F8_E4M3: "FP8",
  Q4_K: "Q4_K_M",
  Q5_K: "Q5_K_M",
  Q6_K: "Q6_K",
  Q8_0: "Q8_0",
  MXFP4: "MXFP4",
};

function formatOfType(type: string): string {
  return formatNames[type] ?? type;
}

/** Scales and zero points of packed weights: they belong to the format, and are no weights themselves. */
const scaleName = /[._](?:q?scales?|qzeros|weight_scale(?:_inv|_2)?|weight_zero_point|absmax)$/;
/** As AutoAWQ, GPTQ, compressed-tensors and gpt-oss name weights of several to an integer. */
const packedName = /(?:\.qweight|\.weight_packed|_blocks)$/;

/** Weights that stand several to an integer. */
interface Packing {
  readonly bits: number;
  readonly format: FormatName;
  /** The method packs `.weight` itself, as bytes. */
  readonly plainNames: boolean;
}

/** `quantization_config` of config.json; four bits where it is silent. */
function packingOf(config: unknown): Packing {
  const fields = isFields(config) ? config.quantization_config : undefined;
  const method = isFields(fields) ? fields : {};
  const named = String(method.quant_algo ?? method.format ?? method.quant_method ?? "");
  const bits = positive(method.bits) ?? positive(method.w_bit) ?? 4;
  const format = /nvfp4/i.test(named)
    ? "NVFP4"
    : /mxfp4/i.test(named)
      ? "MXFP4"
      : bits === 8
        ? "INT8"
        : "INT4-AWQ";
  return { bits, format, plainNames: /nvfp4|bitsandbytes/i.test(named) };
}

/** With the extents of the weights that it holds, along the last axis; GPTQ's order is the same in number. */
function packedTensor(
  { name, shape, type }: SafetensorEntry,
  { bits, format, plainNames }: Packing,
): ModelTensor | undefined {
  const packed = packedName.test(name) || (plainNames && type === "U8" && /\.weight$/.test(name));
  if (!packed || (type !== "I32" && type !== "U8")) return undefined;
  const each = safetensorBits[type] / bits;
  const extents = shape.map((n, i) => (i === shape.length - 1 ? n * each : n));
  return { name, shape: extents, bits, format };
}

type Fields = Readonly<Record<string, unknown>>;

export function modelOfSafetensors(
  name: string,
  entries: readonly SafetensorEntry[],
  config: unknown,
): Result<ModelDescription> {
  const packing = packingOf(config);
  const tensors = entries.map(
    (entry): ModelTensor => packedTensor(entry, packing) ?? plainTensor(entry),
  );
  const shape = decoderOfConfig(config);
  const source = shape ? "config.json" : "no config.json with the sizes of a decoder";
  return modelOfTensors(name, tensors, { shape, source });
}

function plainTensor({ name, shape, type }: SafetensorEntry): ModelTensor {
  const fixed = integerTypes.has(type) || scaleName.test(name);
  const format = formatOfType(type);
  return { name, shape, bits: safetensorBits[type], format, ...(fixed && { fixed }) };
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function positive(value: unknown): number | undefined {
  const number = typeof value === "bigint" ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0
    ? number
    : undefined;
}

/** Hugging Face's names; multimodal models keep them under text_config. */
function decoderOfConfig(config: unknown): DecoderShape | undefined {
  if (!isFields(config)) return undefined;
  const fields = isFields(config.text_config) ? config.text_config : config;
  const heads = positive(fields.num_attention_heads) ?? positive(fields.n_head);
  const hidden = positive(fields.hidden_size) ?? positive(fields.n_embd);
  const layers = positive(fields.num_hidden_layers) ?? positive(fields.n_layer);
  const experts =
    positive(fields.num_local_experts) ??
    positive(fields.num_experts) ??
    positive(fields.n_routed_experts);
  const rotated = positive(fields.qk_rope_head_dim) ?? 0;
  const latent = positive(fields.kv_lora_rank);
  const ofQueries = (positive(fields.qk_nope_head_dim) ?? 0) + rotated;
  const evenly = hidden && heads ? hidden / heads : undefined;
  return decoderOf({
    layers,
    hidden,
    heads,
    // Of a latent all heads read the same: it counts as one.
    kvHeads: latent ? 1 : (positive(fields.num_key_value_heads) ?? heads),
    headWidth: positive(fields.head_dim) ?? (latent && ofQueries ? ofQueries : evenly),
    latentWidth: latent && latent + rotated,
    cached: cachedOf(fields, layers),
    intermediate: positive(fields.intermediate_size) ?? (hidden ? 4 * hidden : undefined),
    vocabulary: positive(fields.vocab_size),
    experts,
    expertsUsed: positive(fields.num_experts_per_tok),
  });
}

/**
 * Layers by what they keep: listed one by one (`layer_types`), or every so-manieth whole. A window without
 * either stands in configurations of models that use it in some layers or in none: all layers count whole.
 */
function cachedOf(fields: Fields, layers: number | undefined): DecoderShape["cached"] {
  const window = positive(fields.sliding_window) ?? 0;
  const kinds = fields.layer_types;
  if (layers === undefined) return undefined;
  if (Array.isArray(kinds) && kinds.length === layers) {
    const count = (...names: readonly string[]): number =>
      kinds.filter((k) => names.includes(String(k))).length;
    const windowLayers = window > 0 ? count("sliding_attention") : 0;
    const without = count("linear_attention", "mamba", "conv");
    return { fullLayers: layers - windowLayers - without, windowLayers, windowTokens: window };
  }
  const every = positive(fields.sliding_window_pattern);
  if (every === undefined || window === 0) return undefined;
  const fullLayers = Math.floor(layers / every);
  return { fullLayers, windowLayers: layers - fullLayers, windowTokens: window };
}

export function modelOfGguf(name: string, header: GgufHeader): Result<ModelDescription> {
  const tensors = header.tensors.map(
    (t): ModelTensor => ({
      name: t.name,
      shape: t.shape,
      bits: t.bitsPerElement,
      format: formatOfType(t.type),
      ...(t.integer && { fixed: true }),
    }),
  );
  const shape = decoderOfMetadata(header);
  const source = shape ? "GGUF metadata" : "no sizes of a decoder in the GGUF metadata";
  return modelOfTensors(name, tensors, { shape, source });
}

function decoderOfMetadata({ metadata, tensors }: GgufHeader): DecoderShape | undefined {
  const architecture = String(metadata["general.architecture"] ?? "");
  const read = (key: string): number | undefined => {
    const value = metadata[`${architecture}.${key}`];
    // Some models give a list with one number a layer: the largest bounds the cache.
    if (!Array.isArray(value)) return positive(value);
    return value.reduce<number | undefined>((most, v) => {
      const n = positive(v);
      return n !== undefined && n > (most ?? 0) ? n : most;
    }, undefined);
  };
  const heads = read("attention.head_count");
  const hidden = read("embedding_length");
  const embedding = tensors.find((t) => t.name === "token_embd.weight");
  const latent = read("attention.kv_lora_rank");
  return decoderOf({
    layers: read("block_count"),
    hidden,
    heads,
    kvHeads: latent ? 1 : (read("attention.head_count_kv") ?? heads),
    latentWidth: latent && latent + (read("rope.dimension_count") ?? 0),
    cached: undefined,
    headWidth: read("attention.key_length") ?? (hidden && heads ? hidden / heads : undefined),
    intermediate: read("feed_forward_length") ?? (hidden ? 4 * hidden : undefined),
    vocabulary: read("vocab_size") ?? embedding?.shape[0],
    experts: read("expert_count"),
    expertsUsed: read("expert_used_count"),
  });
}

type PartialShape = { readonly [K in keyof Required<DecoderShape>]: DecoderShape[K] | undefined };

/** Undefined when a size that the formulas need is missing. */
function decoderOf(sizes: PartialShape): DecoderShape | undefined {
  const { layers, hidden, kvHeads, headWidth, intermediate, vocabulary } = sizes;
  if (!layers || !hidden || !kvHeads || !headWidth || !intermediate || !vocabulary)
    return undefined;
  const { heads, experts, expertsUsed, latentWidth, cached } = sizes;
  return {
    layers,
    hidden,
    kvHeads,
    headWidth,
    intermediate,
    vocabulary,
    ...(heads && { heads }),
    ...(experts && { experts }),
    ...(expertsUsed && { expertsUsed }),
    ...(latentWidth && { latentWidth }),
    ...(cached && { cached }),
  };
}

/** TensorProto.DataType of floats: FLOAT, FLOAT16, DOUBLE, BFLOAT16, FLOAT8E4M3FN…FNUZ, FLOAT4E2M1. */
const onnxFloats: ReadonlyMap<number, readonly [bits: number, type: string]> = new Map([
  [1, [32, "F32"]],
  [10, [16, "F16"]],
  [11, [64, "F64"]],
  [16, [16, "BF16"]],
  [17, [8, "F8_E4M3"]],
  [18, [8, "F8_E4M3"]],
  [19, [8, "F8_E5M2"]],
  [20, [8, "F8_E5M2"]],
  [23, [4, "F4"]],
]);

/** Weights are initializers or, as some exporters write them, the tensors of Constant nodes. */
function weightsOfOnnx(graph: GraphProto): readonly ModelTensor[] {
  const constants = graph.node.flatMap(({ opType, output, attribute }) => {
    const value = opType === "Constant" ? attribute.find((a) => a.name === "value")?.t : undefined;
    return value ? [onnxTensor(output[0] ?? value.name, value)] : [];
  });
  return [...graph.initializer.map((t) => onnxTensor(t.name, t)), ...constants];
}

function onnxTensor(name: string, { dataType, dims }: TensorProto): ModelTensor {
  const float = onnxFloats.get(dataType);
  const [bits, type] = float ?? [64, "integer"];
  const shape = dims.map(Number);
  return { name, shape, bits, format: formatOfType(type), ...(!float && { fixed: true }) };
}

/** ONNX says nothing of a KV cache: none is planned for. */
export function modelOfOnnx(name: string, bytes: Uint8Array): Result<ModelDescription> {
  const model = readModelFile(bytes);
  if (!model.ok) return model;
  const { graph } = model.value;
  const tensors = graph ? weightsOfOnnx(graph) : [];
  return modelOfTensors(name, tensors, {
    shape: undefined,
    source: "an ONNX file does not state the sizes of a decoder: no KV cache is counted",
  });
}
