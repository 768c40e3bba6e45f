/**
 * The exported models by name: operator set, precision, and what builds the graph. The form of each is
 * that of the exporter its file names; the table of models says what they are run on.
 */
import { bertBase, buildBert, miniLm } from "./bert.ts";
import { buildGpt2 } from "./gpt2.ts";
import { buildMobilenetV2, buildResnet50 } from "./image-networks.ts";
import type { LightName } from "./light.ts";
import { buildLlama, llama1b, llama8b } from "./llama.ts";
import { buildMixture, granite } from "./mixture.ts";
import type { ModelBuilder, Precision } from "./model-builder.ts";
import { buildT5Encoder, t5Small } from "./t5.ts";
import { buildVisionTransformer } from "./vision-transformer.ts";
import { buildWhisperDecoder, buildWhisperEncoder } from "./whisper.ts";

/** A graph built here, or a light model of the ONNX suite with seeded weights. */
export type Recipe =
  | {
      readonly opset: number;
      readonly precision: Precision;
      readonly build: (b: ModelBuilder) => void;
    }
  | { readonly light: LightName };

export const recipes = {
  "bert-base": { opset: 14, precision: "f32", build: (b) => buildBert(b, bertBase) },
  "bert-base-fp16": { opset: 14, precision: "f16-converted", build: (b) => buildBert(b, bertBase) },
  "bert-base-bf16": { opset: 14, precision: "bf16", build: (b) => buildBert(b, bertBase) },
  "minilm-l6": { opset: 17, precision: "f32", build: (b) => buildBert(b, miniLm) },
  "minilm-l6-fp16": { opset: 17, precision: "f16", build: (b) => buildBert(b, miniLm) },
  "minilm-l6-dynamic": {
    opset: 17,
    precision: "f32",
    build: (b) => buildBert(b, { ...miniLm, isDynamic: true }),
  },
  "t5-small-encoder": { opset: 14, precision: "f32", build: (b) => buildT5Encoder(b, t5Small) },
  "t5-small-encoder-dynamic": {
    opset: 14,
    precision: "f32",
    build: (b) => buildT5Encoder(b, { ...t5Small, isDynamic: true }),
  },
  "gpt-2": { opset: 14, precision: "f32", build: (b) => buildGpt2(b, false) },
  "gpt-2-fp16": { opset: 14, precision: "f16", build: (b) => buildGpt2(b, false) },
  "gpt-2-step": { opset: 14, precision: "f32", build: (b) => buildGpt2(b, true) },
  "vit-b": { opset: 20, precision: "f32", build: (b) => buildVisionTransformer(b, 1) },
  "vit-b-fp16": { opset: 20, precision: "f16", build: (b) => buildVisionTransformer(b, 1) },
  "vit-b-bf16": { opset: 20, precision: "bf16", build: (b) => buildVisionTransformer(b, 1) },
  "vit-b-x32-bf16": { opset: 20, precision: "bf16", build: (b) => buildVisionTransformer(b, 32) },
  "whisper-tiny-encoder": { opset: 17, precision: "f32", build: buildWhisperEncoder },
  "whisper-tiny-encoder-fp16": { opset: 17, precision: "f16", build: buildWhisperEncoder },
  "whisper-tiny-decoder": { opset: 17, precision: "f32", build: buildWhisperDecoder },
  "whisper-tiny-decoder-fp16": { opset: 17, precision: "f16", build: buildWhisperDecoder },
  "llama-block": { opset: 18, precision: "f32", build: (b) => buildLlama(b, llama1b) },
  "llama-block-fp16": { opset: 18, precision: "f16", build: (b) => buildLlama(b, llama1b) },
  "llama-block-bf16": { opset: 18, precision: "bf16", build: (b) => buildLlama(b, llama1b) },
  "llama-8b-block-fp16": { opset: 18, precision: "f16", build: (b) => buildLlama(b, llama8b) },
  "moe-block": { opset: 18, precision: "f32", build: (b) => buildMixture(b, granite, "dense") },
  "moe-block-fp16": {
    opset: 18,
    precision: "f16",
    build: (b) => buildMixture(b, granite, "dense"),
  },
  "moe-block-routed": {
    opset: 18,
    precision: "f32",
    build: (b) => buildMixture(b, granite, "routed"),
  },
  "resnet-50": { opset: 13, precision: "f32", build: (b) => buildResnet50(b, false) },
  "resnet-50-bf16": { opset: 22, precision: "bf16", build: (b) => buildResnet50(b, false) },
  "resnet-50-int8": { opset: 13, precision: "f32", build: (b) => buildResnet50(b, true) },
  "mobilenet-v2": { opset: 13, precision: "f32", build: (b) => buildMobilenetV2(b, false) },
  "mobilenet-v2-int8": { opset: 13, precision: "f32", build: (b) => buildMobilenetV2(b, true) },
  "light-bvlc-alexnet": { light: "bvlc_alexnet" },
  "light-densenet121": { light: "densenet121" },
  "light-inception-v1": { light: "inception_v1" },
  "light-inception-v2": { light: "inception_v2" },
  "light-resnet50": { light: "resnet50" },
  "light-shufflenet": { light: "shufflenet" },
  "light-squeezenet": { light: "squeezenet" },
  "light-vgg19": { light: "vgg19" },
  "light-zfnet512": { light: "zfnet512" },
} as const satisfies Readonly<Record<string, Recipe>>;

export type RecipeName = keyof typeof recipes;
