/**
 * Rows of the exported models: what each is run on. Sequence lengths are in ranges, so that one program
 * serves them all; the first case is the one that latency is usually told of.
 */
import type { RecipeName } from "./export/recipes.ts";
import type { InputSpec, ModelCase, ModelRow } from "./table.ts";

export const exportedRows: readonly ModelRow[] = [
  ...sentenceRows("bert-base", "bert-base-fp16"),
  ...sentenceRows("minilm-l6", "minilm-l6-fp16"),
  ...blockRows("llama-block", 2048),
  ...blockRows("llama-block-fp16", 2048),
  ...blockRows("llama-8b-block-fp16", 4096),
  pictureRow("resnet-50", "resnet"),
  pictureRow("resnet-50-int8", "resnet-int8"),
  pictureRow("mobilenet-v2", "mobilenet"),
  pictureRow("mobilenet-v2-int8", "mobilenet-int8"),
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
    ...rest,
  };
}

/** Token ids, the mask of padding, and the types of sentences. */
function sentenceRows(...names: readonly RecipeName[]): ModelRow[] {
  const shapes = { batch_size: "1..8", sequence_length: "1..512" };
  const cases = [sentences([1, 128]), sentences([1, 16]), sentences([2, 37])];
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
    const places: InputSpec = {
      name: "position_ids",
      type: "int64",
      dims: [1, length],
      fill: { kind: "count", from: 0 },
    };
    const states = normal("hidden_states", [1, length, width]);
    return { name: `1x${length}`, inputs: [states, places] };
  });
  return [exportedRow(name, "decoder-block", { shapes, cases })];
}

function pictureRow(name: RecipeName, family: string): ModelRow {
  const cases = [{ name: "1x3x224x224", inputs: [normal("input", [1, 3, 224, 224])] }];
  return exportedRow(name, family, { shapes: { batch_size: "1" }, cases });
}

function normal(name: string, dims: readonly number[]): InputSpec {
  return { name, type: "float32", dims, fill: { kind: "normal", deviation: 1 } };
}
