/**
 * Bytes of a model's weights in a format. With a tensor list each matrix is counted by its own rules:
 * vectors (norms, biases) and rows that are no multiple of the block stay as they are, at 16 bits at
 * most; integers stay. Without one, parameters x average bits.
 */
import { importantShare, type WeightFormat } from "./formats.ts";
import { elementsOf, type ModelDescription, type ModelTensor } from "./model.ts";

export interface WeightBytes {
  readonly total: number;
  /** Read for each token: all but the embedding's other rows and the experts that are not used. */
  readonly readPerToken: number;
  /** The largest tensor: what no split over devices by layers can divide. */
  readonly largest: number;
}

export function weightBytes(model: ModelDescription, format: WeightFormat): WeightBytes {
  if (model.tensors.length === 0) return bytesOfSize(model, format);
  const tied = !model.tensors.some((t) => outputName.test(t.name));
  let total = 0;
  let readPerToken = 0;
  let largest = 0;
  for (const tensor of model.tensors) {
    const bytes = Math.ceil((elementsOf(tensor) * bitsOf(tensor, format)) / 8);
    total += bytes;
    largest = Math.max(largest, bytes);
    readPerToken += bytes * readShare(model, tensor, tied);
  }
  return { total, readPerToken, largest };
}

const outputName = /^(?:output|lm_head)\.weight$/;
const embeddingName = /(?:^|\.)(?:token_embd|embed_tokens|wte|word_embeddings)\.weight$/;
const expertName = /_exps\.|\.experts\.\d|\.experts\./;

/** Bits an element of a tensor in the format; never more than it has. */
export function bitsOf(tensor: ModelTensor, format: WeightFormat): number {
  if (tensor.fixed) return tensor.bits;
  const row = tensor.shape.at(-1) ?? 1;
  const matrix = tensor.shape.length >= 2;
  const fits = matrix && row % format.block === 0;
  const share = importantShare(tensor.name);
  const mixed = format.important
    ? format.bits * (1 - share) + format.important.bits * share
    : format.bits;
  const bits = fits ? mixed : Math.max(format.bits, 16);
  return Math.min(bits, tensor.bits);
}

function readShare({ decoder }: ModelDescription, tensor: ModelTensor, tied: boolean): number {
  if (embeddingName.test(tensor.name) && !tied) return 0;
  if (expertName.test(tensor.name) && decoder?.experts && decoder.expertsUsed) {
    return decoder.expertsUsed / decoder.experts;
  }
  return 1;
}

function bytesOfSize({ parameters, decoder }: ModelDescription, format: WeightFormat): WeightBytes {
  const total = Math.ceil((parameters.value * format.mixedBits) / 8);
  const layers = decoder?.layers ?? 1;
  const embedding = decoder ? decoder.vocabulary * decoder.hidden : 0;
  const small = Math.min(embedding, parameters.value / 4);
  const readPerToken = total - Math.ceil((small * format.mixedBits) / 8);
  return { total, readPerToken, largest: total / layers };
}
