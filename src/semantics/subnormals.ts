/**
 * Weights below the smallest normal number count as zero. Training leaves thousands of them in some models,
 * and a processor takes as long for arithmetic on one as on a hundred others; machine code for CPUs counts
 * them as zero while it runs (FTZ, DAZ), WebAssembly has no such mode.
 */
import type { Tensor } from "./tensor.ts";

const exponentBits = 0x7f80_0000;
const fractionBits = 0x007f_ffff;
const signBit = 0x8000_0000;

/** The tensor itself where it has none, or is not of f32. */
export function withoutSubnormals(tensor: Tensor): Tensor {
  const { data } = tensor;
  if (tensor.dtype !== "f32" || !(data instanceof Float32Array)) return tensor;
  const first = firstSubnormal(new Uint32Array(data.buffer, data.byteOffset, data.length));
  if (first === undefined) return tensor;
  const kept = data.slice();
  const words = new Uint32Array(kept.buffer);
  for (let i = first; i < words.length; i++) if (isSubnormal(words[i]!)) words[i]! &= signBit;
  return { ...tensor, data: kept };
}

function firstSubnormal(words: Uint32Array): number | undefined {
  for (let i = 0; i < words.length; i++) if (isSubnormal(words[i]!)) return i;
  return undefined;
}

function isSubnormal(word: number): boolean {
  return (word & exponentBits) === 0 && (word & fractionBits) !== 0;
}
