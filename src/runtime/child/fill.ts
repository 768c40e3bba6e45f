/**
 * Random contents of a tensor as a recipe: parent and child make the same elements from it, so that
 * inputs of any size travel as a few numbers. Elements repeat after `fillPeriod` with a phase per
 * tensor: a program that mixes up tensors, rows or tiles meets other values.
 */
import { type DType, dtypes, storageBytes } from "../../semantics/dtype.ts";
import { roundToFloat } from "../../semantics/float-codec.ts";
import {
  fromRef,
  makeRefData,
  type RefData,
  type RefTensor,
  randomRef,
  tensorBytes,
} from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";

export interface Fill {
  readonly dtype: DType;
  readonly seed: number;
  /** Which element of the sequence stands first. */
  readonly phase: number;
  /** Floats in [-1, 1), or in [0.25, 1.25) for functions that have no value at negative numbers. */
  readonly sign: "any" | "positive";
  /** Integers in a range, both ends included; absent: what the type holds, at most +-1000. */
  readonly range?: readonly [number, number];
}

/** 8 primes' 8191: whole bytes for packed types, and no power of two of rows comes around early. */
export const fillPeriod = 8 * 8191;

/** Blocks that were drawn, by recipe without phase: many tensors share one. */
export type FillBlocks = Map<string, RefData>;

function blockOf(fill: Fill, blocks: FillBlocks): RefData {
  const { dtype, seed, sign, range } = fill;
  const key = `${dtype} ${seed} ${sign} ${range?.join(" ") ?? ""}`;
  const known = blocks.get(key);
  if (known) return known;
  const made = drawBlock(fill);
  blocks.set(key, made);
  return made;
}

function drawBlock({ dtype, seed, sign, range }: Fill): RefData {
  const rng = new Rng(seed);
  if (range) {
    const data = makeRefData(dtype, fillPeriod);
    for (let i = 0; i < fillPeriod; i++) {
      const x = rng.integer(range[0], range[1]);
      data[i] = data instanceof Float64Array ? x : BigInt(x);
    }
    return data;
  }
  const { data } = randomRef(dtype, [fillPeriod], rng);
  if (sign === "positive" && dtypes[dtype].kind === "float" && data instanceof Float64Array) {
    for (let i = 0; i < data.length; i++) data[i] = roundToFloat(dtype, 0.75 + data[i]! / 2);
  }
  return data;
}

/** The elements without making the tensor: element i is `data[(i + phase) % data.length]`. */
export function repeatsOfFill(
  fill: Fill,
  blocks: FillBlocks,
): { readonly data: RefData; readonly phase: number } {
  return { data: blockOf(fill, blocks), phase: fill.phase };
}

/** The whole tensor in storage format. */
export function bytesOfFill(fill: Fill, elements: number, blocks: FillBlocks): Uint8Array {
  const block = blockOf(fill, blocks);
  const count = Math.min(elements, fillPeriod);
  const head = makeRefData(fill.dtype, count);
  for (let i = 0; i < count; i++) head[i] = block[(i + fill.phase) % fillPeriod]!;
  const tensor: RefTensor = { dtype: fill.dtype, shape: [count], data: head };
  const first = tensorBytes(fromRef(tensor));
  const bytes = new Uint8Array(storageBytes(fill.dtype, elements));
  bytes.set(first);
  for (let done = first.length; done < bytes.length; done *= 2) {
    bytes.copyWithin(done, 0, Math.min(done, bytes.length - done));
  }
  return bytes;
}
