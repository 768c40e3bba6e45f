/**
 * A model as far as its memory and its speed depend on it: the tensors (or just a number of
 * parameters) and, for decoders, the sizes that decide the KV cache and the activations.
 */

import { type Diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Origin, Sourced } from "../../target/figure.ts";
import { checkNumber } from "../number.ts";

export interface ModelTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** Bits an element as stored. */
  readonly bits: number;
  /** The format it is stored in, by the name of the format table where that has it. */
  readonly format: string;
  /** Neither a float nor a quantized float: kept as it is. */
  readonly fixed?: boolean;
}

/** Sizes of a decoder-only transformer. */
export interface DecoderShape {
  readonly layers: number;
  readonly hidden: number;
  /** Of queries; absent: as many as fill the hidden width. */
  readonly heads?: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  readonly intermediate: number;
  readonly vocabulary: number;
  /** Mixture of experts: how many there are and how many a token uses. */
  readonly experts?: number;
  readonly expertsUsed?: number;
  /** Multi-head latent attention: numbers a token keeps in a layer, in place of each head's keys and values. */
  readonly latentWidth?: number;
  /** Where not every layer keeps all tokens: how many do, and how many keep the latest ones. */
  readonly cached?: {
    readonly fullLayers: number;
    readonly windowLayers: number;
    readonly windowTokens: number;
  };
}

export interface ModelDescription {
  readonly name: string;
  /** Empty: only the number of parameters is known. */
  readonly tensors: readonly ModelTensor[];
  readonly parameters: Omit<Sourced, "origin"> & { readonly origin: Origin | "given" };
  /** Bits a weight of the model as it is: no format above it is recommended. */
  readonly originalBits: number;
  readonly originalFormat: string;
  /** Absent: no KV cache is planned for. */
  readonly decoder?: DecoderShape;
  readonly decoderSource: string;
}

type Sizes = readonly [
  layers: number,
  hidden: number,
  kvHeads: number,
  headWidth: number,
  intermediate: number,
  vocabulary: number,
];

/** The Llama family (model cards), for models of which only the size is known. */
const familySizes: readonly (readonly [billions: number, name: string, sizes: Sizes])[] = [
  [1.24, "Llama-3.2-1B", [16, 2048, 8, 64, 8192, 128256]],
  [3.21, "Llama-3.2-3B", [28, 3072, 8, 128, 8192, 128256]],
  [6.74, "Llama-2-7B", [32, 4096, 32, 128, 11008, 32000]],
  [8.03, "Llama-3.1-8B", [32, 4096, 8, 128, 14336, 128256]],
  [13, "Llama-2-13B", [40, 5120, 40, 128, 13824, 32000]],
  [32.5, "Llama-30B", [60, 6656, 52, 128, 17920, 32000]],
  [70.6, "Llama-3.1-70B", [80, 8192, 8, 128, 28672, 128256]],
  [405.9, "Llama-3.1-405B", [126, 16384, 8, 128, 53248, 128256]],
];

const mostParameters = 1e14;

/** A model of which only the size is known; its sizes are those of the nearest Llama. */
export function modelOfSize(
  parameters: number,
  original: { readonly bits: number; readonly name: string },
): Result<ModelDescription> {
  const limits = { least: 1, most: mostParameters };
  const fault = checkNumber("PLN001", "the number of parameters", parameters, limits);
  if (fault) return fail(fault);
  const [, name, sizes] = familySizes.reduce((best, row) =>
    distance(row[0], parameters) < distance(best[0], parameters) ? row : best,
  );
  const [layers, hidden, kvHeads, headWidth, intermediate, vocabulary] = sizes;
  return ok({
    name: "a decoder",
    tensors: [],
    parameters: { value: parameters, source: "asked for", origin: "given" },
    originalBits: original.bits,
    originalFormat: original.name,
    decoder: { layers, hidden, kvHeads, headWidth, intermediate, vocabulary },
    decoderSource: `assumed: the shape of ${name} (model card), the nearest in size`,
  });
}

function distance(billions: number, parameters: number): number {
  return Math.abs(Math.log(parameters / 1e9 / billions));
}

/** A model from its tensors; what makes no sense is refused. */
export function modelOfTensors(
  name: string,
  tensors: readonly ModelTensor[],
  decoder: { readonly shape: DecoderShape | undefined; readonly source: string },
): Result<ModelDescription> {
  const faults: Diagnostic[] = [];
  let parameters = 0;
  let bits = 0;
  for (const tensor of tensors) {
    const elements = elementsOf(tensor);
    const limits = { least: 0, most: 2 ** 50 };
    const fault = checkNumber("PLN001", `the size of ${tensor.name}`, elements, limits);
    if (fault) faults.push(fault);
    if (tensor.fixed) continue;
    parameters += elements;
    bits += elements * tensor.bits;
  }
  const count = { least: 1, most: mostParameters };
  const fault = checkNumber("PLN001", "the number of parameters", parameters, count);
  if (fault) faults.push(fault);
  if (faults.length > 0) return fail(...faults);
  const originalBits = bits / parameters;
  const originalFormat = commonestFormat(tensors);
  return ok({
    name,
    tensors,
    parameters: { value: parameters, source: `the header of ${name}`, origin: "detected" },
    originalBits,
    originalFormat,
    ...(decoder.shape && { decoder: decoder.shape }),
    decoderSource: decoder.source,
  });
}

/** The format of most weights. */
function commonestFormat(tensors: readonly ModelTensor[]): string {
  const elements = new Map<string, number>();
  for (const tensor of tensors) {
    if (tensor.fixed) continue;
    elements.set(tensor.format, (elements.get(tensor.format) ?? 0) + elementsOf(tensor));
  }
  return [...elements].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
}

export function elementsOf({ shape }: ModelTensor): number {
  return shape.reduce((n, extent) => n * extent, 1);
}

/** Bytes of one sequence's keys and values after so many tokens. */
export function kvSequenceBytes(shape: DecoderShape, tokens: number, bits: number): number {
  const { layers, kvHeads, headWidth, latentWidth, cached } = shape;
  const all = { fullLayers: layers, windowLayers: 0, windowTokens: 0 };
  const { fullLayers, windowLayers, windowTokens } = cached ?? all;
  const kept = fullLayers * tokens + windowLayers * Math.min(tokens, windowTokens);
  return (kept * (latentWidth ?? 2 * kvHeads * headWidth) * bits) / 8;
}
