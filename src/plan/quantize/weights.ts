/**
 * Bytes of a model's weights in a format. With a tensor list each matrix is counted by its own rules:
 * vectors (norms, biases) and rows that are no multiple of the block stay as they are, at 16 bits at
 * most; integers stay. Without one, parameters x average bits.
 */
import { invariant } from "../../support/invariant.ts";
import { formatNamed, importantShare, type WeightFormat } from "./formats.ts";
import { elementsOf, type ModelDescription, type ModelTensor } from "./model.ts";

export interface WeightBytes {
  readonly total: number;
  /** Read for each token: all but the embedding's other rows and the experts that are not used. */
  readonly readPerToken: number;
  /** Of those the experts'. */
  readonly expertsPerToken: number;
  /** Share of the parameters that a token is multiplied by: those that are read. */
  readonly active: number;
  /** The largest tensor: what no split over devices by layers can divide. */
  readonly largest: number;
}

/** A format to come, or each tensor as it is stored. */
export type WeightChoice = WeightFormat | "stored";

/** What a placement moves: the ends of a decoder and everything between them. */
export interface DecoderParts {
  readonly embedding: PartBytes;
  readonly output: PartBytes;
  readonly layers: PartBytes & Pick<WeightBytes, "readPerToken" | "expertsPerToken" | "active">;
}

export interface PartBytes {
  readonly bytes: number;
  readonly parameters: number;
}

/** By the same rules as all weights; an output that is the embedding again holds a copy of it. */
export function decoderParts(model: ModelDescription, format: WeightChoice): DecoderParts {
  if (model.tensors.length === 0) {
    invariant(format !== "stored", () => `${model.name} has no tensors that are stored`);
    return partsOfSize(model, format);
  }
  const bytesOf = tensorBytes(model, format);
  const of = (name: RegExp): PartBytes => {
    const found = model.tensors.filter((t) => name.test(t.name));
    return {
      bytes: found.reduce((n, t) => n + bytesOf(t), 0),
      parameters: found.reduce((n, t) => n + elementsOf(t), 0),
    };
  };
  const [embedding, ownOutput] = [of(embeddingName), of(outputName)];
  const parameters = model.parameters.value - embedding.parameters - ownOutput.parameters;
  const between = sumOf(model, bytesOf, (t) => !isEnd(t));
  return {
    embedding,
    output: ownOutput.parameters > 0 ? ownOutput : embedding,
    layers: {
      bytes: of(/^/).bytes - embedding.bytes - ownOutput.bytes,
      parameters,
      readPerToken: between.readPerToken,
      expertsPerToken: between.expertsPerToken,
      active: between.active / Math.max(1, parameters),
    },
  };
}

/** Averages count the ends in, but for formats that leave them alone. */
function partsOfSize(model: ModelDescription, format: WeightFormat): DecoderParts {
  const { parameters, decoder } = model;
  const size = Math.min((decoder?.vocabulary ?? 0) * (decoder?.hidden ?? 0), parameters.value / 4);
  const end = (name: string): PartBytes => {
    const tensor = { name, shape: [1, decoder?.hidden ?? 1], bits: 64, format: "" };
    return { bytes: Math.ceil((size * bitsOf(tensor, format)) / 8), parameters: size };
  };
  const [embedding, output] = [end("token_embd.weight"), end("output.weight")];
  const between = parameters.value - 2 * size;
  const counted = format.ends === "kept" ? between : parameters.value;
  const total = Math.ceil((counted * format.mixedBits) / 8);
  const bytes = format.ends === "kept" ? total : total - embedding.bytes - output.bytes;
  const layers = { bytes, parameters: between, readPerToken: bytes, expertsPerToken: 0, active: 1 };
  return { embedding, output, layers };
}

/** Bytes of a tensor: as stored in the model's own format, else never more bits than it has. */
function tensorBytes(
  model: ModelDescription,
  format: WeightChoice,
): (tensor: ModelTensor) => number {
  if (format === "stored" || format.name === model.originalFormat) return storedBytes;
  const widened = isAbove(model, format);
  return (tensor) => Math.ceil((elementsOf(tensor) * bitsOf(tensor, format, widened)) / 8);
}

function storedBytes(tensor: ModelTensor): number {
  return Math.ceil((elementsOf(tensor) * tensor.bits) / 8);
}

/** Sizes of one format in two tools differ by less. */
const sameSize = 1.005;

/**
 * Of more bits than the model has, by name or in all: nothing to gain, and shown at the size that it
 * would have.
 */
export function isAbove(model: ModelDescription, format: WeightFormat): boolean {
  const { tensors, originalBits, originalFormat, parameters } = model;
  if (format.name === originalFormat) return false;
  const own = formatNamed(originalFormat);
  if (format.bits > (own?.bits ?? originalBits) + 0.05) return true;
  if (tensors.length === 0) {
    const had = own ? bytesOfSize(model, own).total : (parameters.value * originalBits) / 8;
    return bytesOfSize(model, format).total > sameSize * had;
  }
  const had = tensors.reduce((sum, t) => sum + storedBytes(t), 0);
  const would = tensors.reduce((sum, t) => sum + elementsOf(t) * bitsOf(t, format, true), 0) / 8;
  return would > sameSize * had;
}

export function weightBytes(model: ModelDescription, format: WeightFormat): WeightBytes {
  if (model.tensors.length === 0) return bytesOfSize(model, format);
  const sum = sumOf(model, tensorBytes(model, format), () => true);
  return { ...sum, active: sum.active / model.parameters.value };
}

/** Over some of a model's tensors; `active` in parameters. */
function sumOf(
  model: ModelDescription,
  bytesOf: (tensor: ModelTensor) => number,
  counts: (tensor: ModelTensor) => boolean,
): WeightBytes {
  const tied = !model.tensors.some((t) => outputName.test(t.name));
  let [total, readPerToken, expertsPerToken, active, largest] = [0, 0, 0, 0, 0];
  for (const tensor of model.tensors.filter(counts)) {
    const bytes = bytesOf(tensor);
    total += bytes;
    largest = Math.max(largest, bytes);
    const share = readShare(model, tensor, tied);
    readPerToken += bytes * share;
    if (share < 1) expertsPerToken += bytes * share;
    if (!tensor.fixed) active += elementsOf(tensor) * share;
  }
  return { total, readPerToken, expertsPerToken, active, largest };
}

/**
 * Bytes that a step of several sequences reads: all but experts once, and of E experts, of which each
 * sequence chooses k by itself, the E (1 - (1 - k / E)^batch) that are expected to be chosen by any.
 */
export function readPerStep(
  { readPerToken, expertsPerToken }: Pick<WeightBytes, "readPerToken" | "expertsPerToken">,
  { decoder }: ModelDescription,
  batch: number,
): number {
  const { experts, expertsUsed } = decoder ?? {};
  if (!experts || !expertsUsed) return readPerToken;
  const used = Math.min(1, expertsUsed / experts);
  const chosen = (1 - (1 - used) ** batch) / used;
  return readPerToken + expertsPerToken * (chosen - 1);
}

const outputName = /^(?:output|lm_head)\.weight$/;
const embeddingName = /(?:^|\.)(?:token_embd|embed_tokens|wte|word_embeddings)\.weight$/;
const expertName = /_exps\.|\.experts\.\d|\.experts\./;

function isEnd({ name }: ModelTensor): boolean {
  return outputName.test(name) || embeddingName.test(name);
}

/** Bytes more where embedding and output stay at 16 bits, in formats whose tools differ on that. */
export function keptEndsBytes(model: ModelDescription, format: WeightFormat): number {
  if (format.ends !== "varies") return 0;
  const keeping: WeightFormat = { ...format, ends: "kept" };
  return Math.max(0, weightBytes(model, keeping).total - weightBytes(model, format).total);
}

/** Bits an element of a tensor in the format; never more than it has unless `widened`. */
export function bitsOf(tensor: ModelTensor, format: WeightFormat, widened = false): number {
  if (tensor.fixed) return tensor.bits;
  const row = tensor.shape.at(-1) ?? 1;
  const matrix = tensor.shape.length >= 2;
  const fits = matrix && row % format.block === 0;
  const share = importantShare(tensor.name);
  const mixed = format.important
    ? format.bits * (1 - share) + format.important.bits * share
    : format.bits;
  const kept = format.ends === "kept" && isEnd(tensor);
  const bits = fits && !kept ? mixed : Math.max(format.bits, 16);
  return widened ? bits : Math.min(bits, tensor.bits);
}

function readShare({ decoder }: ModelDescription, tensor: ModelTensor, tied: boolean): number {
  if (embeddingName.test(tensor.name) && !tied) return 0;
  if (expertName.test(tensor.name) && decoder?.experts && decoder.expertsUsed) {
    return decoder.expertsUsed / decoder.experts;
  }
  return 1;
}

function bytesOfSize(model: ModelDescription, format: WeightFormat): WeightBytes {
  const { embedding, layers, output } = partsOfSize(model, format);
  const total = embedding.bytes + layers.bytes + output.bytes;
  const count = model.decoder?.layers ?? 1;
  const active = 1 - embedding.parameters / model.parameters.value;
  const readPerToken = total - embedding.bytes;
  return { total, readPerToken, expertsPerToken: 0, active, largest: total / count };
}
