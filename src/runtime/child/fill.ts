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
export class FillBlocks {
  readonly #elements = new Map<string, RefData>();
  readonly #bytes = new Map<string, Uint8Array>();

  elementsOf(fill: Fill): RefData {
    const key = keyOf(fill);
    const block = this.#elements.get(key) ?? drawBlock(fill);
    this.#elements.set(key, block);
    return block;
  }

  /** In storage format. */
  bytesOf(fill: Fill): Uint8Array {
    const key = keyOf(fill);
    const bytes = this.#bytes.get(key) ?? stored(fill.dtype, this.elementsOf(fill));
    this.#bytes.set(key, bytes);
    return bytes;
  }
}

function keyOf({ dtype, seed, sign, range }: Fill): string {
  return `${dtype} ${seed} ${sign} ${range?.join(" ") ?? ""}`;
}

function stored(dtype: DType, data: RefData): Uint8Array {
  return tensorBytes(fromRef({ dtype, shape: [data.length], data }));
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
  return { data: blocks.elementsOf(fill), phase: fill.phase };
}

/** The whole tensor in storage format. */
export function bytesOfFill(fill: Fill, elements: number, blocks: FillBlocks): Uint8Array {
  const bytes = new Uint8Array(storageBytes(fill.dtype, elements));
  const [end, start] = turned(fill, blocks);
  bytes.set(end.subarray(0, bytes.length));
  if (end.length < bytes.length)
    bytes.set(start.subarray(0, bytes.length - end.length), end.length);
  for (let done = end.length + start.length; done < bytes.length; done *= 2) {
    bytes.copyWithin(done, 0, Math.min(done, bytes.length - done));
  }
  // Behind the last element nothing is stored.
  const open = (elements * dtypes[fill.dtype].bits) % 8;
  if (open > 0) bytes[bytes.length - 1]! &= (1 << open) - 1;
  return bytes;
}

/** The block from the phase on, and what comes before it. */
function turned(fill: Fill, blocks: FillBlocks): readonly [Uint8Array, Uint8Array] {
  const { dtype, phase } = fill;
  const at = ((phase % fillPeriod) * dtypes[dtype].bits) / 8;
  if (Number.isInteger(at)) {
    const block = blocks.bytesOf(fill);
    return [block.subarray(at), block.subarray(0, at)];
  }
  // The phase is inside a byte.
  const block = blocks.elementsOf(fill);
  const data = makeRefData(dtype, fillPeriod);
  for (let i = 0; i < fillPeriod; i++) data[i] = block[(i + phase) % fillPeriod]!;
  return [stored(dtype, data), new Uint8Array()];
}
