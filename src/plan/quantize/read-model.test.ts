import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  AttributeProto_AttributeType,
  ModelProtoSchema,
} from "../../frontend/onnx/generated/onnx_pb.ts";
import type { SafetensorEntry } from "../../frontend/safetensors/safetensors-header.ts";
import { formatNamed } from "./formats.ts";
import { kvCacheBytes } from "./memory.ts";
import type { ModelDescription } from "./model.ts";
import { modelOfGguf, modelOfOnnx, modelOfSafetensors } from "./read-model.ts";
import { isAbove, weightBytes } from "./weights.ts";

const floatType = 1;
const int64Type = 7;

function constant(name: string, dataType: number, ...dims: number[]) {
  const bytes = dims.reduce((n, d) => n * d, dataType === floatType ? 4 : 8);
  const t = { dims: dims.map(BigInt), dataType, rawData: new Uint8Array(bytes) };
  return {
    opType: "Constant",
    output: [name],
    attribute: [{ name: "value", type: AttributeProto_AttributeType.TENSOR, t }],
  };
}

describe("ONNX models to plan for", () => {
  it("have the float tensors of Constant nodes as weights, as well as initializers", () => {
    const initializer = [
      { name: "b", dims: [6n], dataType: floatType, rawData: new Uint8Array(24) },
    ];
    const node = [constant("w", floatType, 4, 6), constant("axes", int64Type, 2)];
    const model = create(ModelProtoSchema, { graph: { initializer, node } });
    expect(modelOfOnnx("m", toBinary(ModelProtoSchema, model))).toMatchObject({
      value: {
        parameters: { value: 4 * 6 + 6 },
        originalFormat: "FP32",
        tensors: [{ name: "b" }, { name: "w", shape: [4, 6] }, { name: "axes", fixed: true }],
      },
    });
  });
});

function entry(name: string, type: SafetensorEntry["type"], ...shape: number[]): SafetensorEntry {
  return { name, type, shape, begin: 0, end: 0 } as SafetensorEntry;
}

function described(entries: readonly SafetensorEntry[], config: unknown): ModelDescription {
  const model = modelOfSafetensors("m", entries, config);
  if (!model.ok) throw new Error(model.diagnostics[0]!.message);
  return model.value;
}

const w = entry("model.layers.0.mlp.up_proj.weight", "BF16", 256, 256);
const sizes = {
  num_hidden_layers: 61,
  hidden_size: 7168,
  num_attention_heads: 128,
  num_key_value_heads: 128,
  intermediate_size: 18432,
  vocab_size: 129280,
};
const load = { context: 10_000, batch: 2, kvBits: 16 };

describe("configurations", () => {
  it("of latent attention keep a latent a token: DeepSeek-V3 576 numbers a layer", () => {
    const config = {
      ...sizes,
      kv_lora_rank: 512,
      qk_rope_head_dim: 64,
      qk_nope_head_dim: 128,
      n_routed_experts: 256,
      num_experts_per_tok: 8,
    };
    const model = described([w], config);
    expect(kvCacheBytes(model, load)).toBe(2 * 10_000 * 61 * 576 * 2);
    expect(model.decoder).toMatchObject({ experts: 256, expertsUsed: 8, headWidth: 192 });
    const metadata = {
      "general.architecture": "deepseek2",
      "deepseek2.block_count": 61,
      "deepseek2.embedding_length": 7168,
      "deepseek2.attention.head_count": 128,
      "deepseek2.attention.kv_lora_rank": 512,
      "deepseek2.rope.dimension_count": 64,
      "deepseek2.vocab_size": 129280,
    };
    const tensors = [{ name: "w", shape: [8], type: "F16", bitsPerElement: 16, integer: false }];
    const gguf = modelOfGguf("m", { metadata, tensors } as unknown as Parameters<
      typeof modelOfGguf
    >[1]);
    if (!gguf.ok) throw new Error("no model");
    expect(kvCacheBytes(gguf.value, load)).toBe(kvCacheBytes(model, load));
  });
  it("of windows keep the latest tokens in the layers that say so", () => {
    const kept = (more: object): number =>
      kvCacheBytes(described([w], { ...sizes, ...more }), load);
    const layer = 2 * 2 * 128 * 56 * 2;
    expect(kept({})).toBe(61 * 10_000 * layer);
    // What a window alone means differs from model to model.
    expect(kept({ sliding_window: 1024 })).toBe(61 * 10_000 * layer);
    expect(kept({ sliding_window: 1024, sliding_window_pattern: 6 })).toBe(
      (10 * 10_000 + 51 * 1024) * layer,
    );
    const kinds = Array.from({ length: 61 }, (_, i) =>
      i % 4 === 3 ? "full_attention" : i % 4 === 2 ? "sliding_attention" : "linear_attention",
    );
    expect(kept({ sliding_window: 1024, layer_types: kinds })).toBe(
      (15 * 10_000 + 15 * 1024) * layer,
    );
  });
});

describe("packed weights", () => {
  const own = (entries: readonly SafetensorEntry[], quantization_config: object) =>
    described(entries, { quantization_config });

  it("of AWQ and GPTQ stand eight to an integer, with their scales", () => {
    const entries = [
      entry("a.qweight", "I32", 4096, 512),
      entry("a.qzeros", "I32", 32, 512),
      entry("a.scales", "F16", 32, 4096),
      entry("lm_head.weight", "F16", 1000, 64),
    ];
    for (const quant_method of ["awq", "gptq"]) {
      const model = own(entries, { quant_method, bits: 4 });
      expect(model).toMatchObject({ originalFormat: "INT4-AWQ" });
      expect(model.parameters.value).toBe(4096 * 4096 + 64_000);
      const bytes = 4 * (4096 * 512 + 32 * 512) + 2 * (32 * 4096 + 64_000);
      expect(weightBytes(model, formatNamed("INT4-AWQ")!).total).toBe(bytes);
      for (const name of ["Q4_K_M", "Q8_0", "BF16"])
        expect(isAbove(model, formatNamed(name)!)).toBe(true);
    }
  });
  it("of FP4 stand two to a byte", () => {
    const blocks = [entry("mlp.experts.gate_up_proj_blocks", "U8", 32, 90, 16)];
    expect(own(blocks, { quant_method: "mxfp4" })).toMatchObject({
      originalFormat: "MXFP4",
      parameters: { value: 32 * 90 * 32 },
    });
    const bytes = [entry("a.weight", "U8", 64, 32), entry("a.weight_scale", "F8_E4M3", 64, 4)];
    expect(own(bytes, { quant_method: "modelopt", quant_algo: "NVFP4" })).toMatchObject({
      originalFormat: "NVFP4",
      parameters: { value: 64 * 64 },
    });
  });
});
