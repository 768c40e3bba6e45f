/**
 * Rows of the exported models: what each is run on. Sequence lengths are in ranges, so that one program
 * serves them all; the first case is the one that latency is usually told of.
 */
import type { RecipeName } from "./export/recipes.ts";
import type { InputSpec, ModelCase, ModelRow } from "./table.ts";

export const exportedRows: readonly ModelRow[] = [
  ...sentenceRows("bert-base", "bert-base-fp16", "bert-base-bf16"),
  ...sentenceRows("minilm-l6", "minilm-l6-fp16", "minilm-l6-dynamic"),
  ...textEncoderRows("t5-small-encoder", "t5-small-encoder-dynamic"),
  ...textRows("gpt-2", "gpt-2-fp16"),
  stepRow("gpt-2-step"),
  ...["vit-b" as const, "vit-b-fp16" as const, "vit-b-bf16" as const].map((name) =>
    exportedRow(name, "vision-transformer", {
      cases: [{ name: "1x3x224x224", inputs: [normal("pixel_values", [1, 3, 224, 224])] }],
    }),
  ),
  exportedRow("vit-b-x32-bf16", "vision-transformer", {
    cases: [{ name: "32x3x224x224", inputs: [normal("pixel_values", [32, 3, 224, 224])] }],
  }),
  ...encoderRows("whisper-tiny-encoder", "whisper-tiny-encoder-fp16"),
  ...decoderRows("whisper-tiny-decoder", "whisper-tiny-decoder-fp16"),
  ...mixtureRows("moe-block", "moe-block-fp16", "moe-block-routed"),
  ...blockRows("llama-block", 2048),
  ...blockRows("llama-block-fp16", 2048),
  ...blockRows("llama-block-bf16", 2048),
  ...blockRows("llama-8b-block-fp16", 4096),
  pictureRow("resnet-50", "resnet"),
  pictureRow("resnet-50-bf16", "resnet"),
  pictureRow("resnet-50-int8", "resnet-int8"),
  pictureRow("mobilenet-v2", "mobilenet"),
  pictureRow("mobilenet-v2-int8", "mobilenet-int8"),
  lightRow("light-bvlc-alexnet", "data_0"),
  lightRow("light-densenet121", "data_0"),
  lightRow("light-inception-v1", "data_0"),
  lightRow("light-inception-v2", "data_0"),
  lightRow("light-resnet50", "gpu_0/data_0"),
  lightRow("light-shufflenet", "gpu_0/data_0"),
  lightRow("light-squeezenet", "data_0"),
  lightRow("light-vgg19", "data_0"),
  lightRow("light-zfnet512", "gpu_0/data_0"),
];

function exportedRow(
  recipe: RecipeName,
  family: string,
  rest: Pick<ModelRow, "shapes" | "cases">,
): ModelRow {
  return {
    name: recipe,
    family,
    source: { kind: "exported", recipe },
    file: "model.onnx",
    ...(rest.shapes?.batch_size !== undefined && { batch: ["batch_size"] }),
    ...rest,
  };
}

/** Token ids, the mask of padding, and the types of sentences. */
function sentenceRows(...names: readonly RecipeName[]): ModelRow[] {
  const shapes = { batch_size: "1..8", sequence_length: "1..512" };
  const cases = [sentences([1, 128]), sentences([1, 16]), sentences([1, 512]), sentences([2, 37])];
  return names.map((name) => exportedRow(name, "sentence-encoder", { shapes, cases }));
}

function sentences(dims: readonly number[]): ModelCase {
  const inputs = [
    tokens("input_ids", dims, 30_522),
    padding(dims),
    tokens("token_type_ids", dims, 2),
  ];
  return { name: dims.join("x"), inputs };
}

/** Token ids and the mask of padding. */
function textEncoderRows(...names: readonly RecipeName[]): ModelRow[] {
  const shapes = { batch_size: "1", sequence_length: "1..512" };
  const cases = [128, 16].map((length): ModelCase => {
    const dims = [1, length];
    return { name: dims.join("x"), inputs: [tokens("input_ids", dims, 32_128), padding(dims)] };
  });
  return names.map((name) => exportedRow(name, "text-encoder", { shapes, cases }));
}

/** A prompt, whole. */
function textRows(...names: readonly RecipeName[]): ModelRow[] {
  const shapes = { batch_size: "1", sequence_length: "1..512" };
  const cases = [64, 1, 200, 512].map((length): ModelCase => {
    const dims = [1, length];
    const inputs = [tokens("input_ids", dims, 50_257), padding(dims), places(dims, 0)];
    return { name: dims.join("x"), inputs };
  });
  return names.map((name) => exportedRow(name, "text-decoder", { shapes, cases }));
}

/** New tokens after kept keys and values. */
function stepRow(name: RecipeName): ModelRow {
  const past = "past_sequence_length";
  const shapes = {
    batch_size: "1",
    sequence_length: "1..16",
    [past]: "1..512",
    [`${past} + sequence_length`]: `${past} + sequence_length`,
  };
  const steps: readonly (readonly [number, number])[] = [
    [63, 1],
    [5, 16],
  ];
  const cases = steps.map(([kept, length]): ModelCase => {
    const caches = Array.from({ length: 12 }, (_, i) =>
      ["key", "value"].map((kind) => normal(`past_key_values.${i}.${kind}`, [1, 12, kept, 64])),
    );
    const ids = tokens("input_ids", [1, length], 50_257);
    const inputs = [ids, padding([1, kept + length]), places([1, length], kept), ...caches.flat()];
    return { name: `${kept}+${length}`, inputs };
  });
  return exportedRow(name, "text-decoder-step", { shapes, cases });
}

function encoderRows(...names: readonly RecipeName[]): ModelRow[] {
  const shapes = { batch_size: "1" };
  const cases = [{ name: "1x80x3000", inputs: [normal("input_features", [1, 80, 3000])] }];
  return names.map((name) => exportedRow(name, "speech-encoder", { shapes, cases }));
}

function decoderRows(...names: readonly RecipeName[]): ModelRow[] {
  const shapes = { batch_size: "1", sequence_length: "1..448" };
  const cases = [4, 32].map((length): ModelCase => {
    const heard = normal("encoder_hidden_states", [1, 1500, 384]);
    return { name: `1x${length}`, inputs: [tokens("input_ids", [1, length], 51_865), heard] };
  });
  return names.map((name) => exportedRow(name, "speech-decoder", { shapes, cases }));
}

function mixtureRows(...names: readonly RecipeName[]): ModelRow[] {
  const shapes = { batch_size: "1", sequence_length: "1..128" };
  const cases = [16, 1].map((length) => ({
    name: `1x${length}`,
    inputs: [normal("hidden_states", [1, length, 1024])],
  }));
  return names.map((name) => exportedRow(name, "mixture-block", { shapes, cases }));
}

function places(dims: readonly number[], from: number): InputSpec {
  return { name: "position_ids", type: "int64", dims, fill: { kind: "count", from } };
}

function tokens(name: string, dims: readonly number[], count: number): InputSpec {
  return { name, type: "int64", dims, fill: { kind: "uniform", low: 0, high: count } };
}

function padding(dims: readonly number[]): InputSpec {
  return { name: "attention_mask", type: "int64", dims, fill: { kind: "padding" } };
}

/** A decoder block: hidden states and where they stand. */
function blockRows(name: RecipeName, width: number): ModelRow[] {
  const shapes = { batch_size: "1", sequence_length: "1..512" };
  const cases = [32, 1, 128].map((length): ModelCase => {
    const states = normal("hidden_states", [1, length, width]);
    return { name: `1x${length}`, inputs: [states, places([1, length], 0)] };
  });
  return [exportedRow(name, "decoder-block", { shapes, cases })];
}

function pictureRow(name: RecipeName, family: string): ModelRow {
  const cases = [{ name: "1x3x224x224", inputs: [normal("input", [1, 3, 224, 224])] }];
  return exportedRow(name, family, { shapes: { batch_size: "1" }, cases });
}

function lightRow(name: RecipeName, input: string): ModelRow {
  const cases = [{ name: "1x3x224x224", inputs: [normal(input, [1, 3, 224, 224])] }];
  return exportedRow(name, "light-cnn", { cases });
}

function normal(name: string, dims: readonly number[]): InputSpec {
  return { name, type: "float32", dims, fill: { kind: "normal", deviation: 1 } };
}
