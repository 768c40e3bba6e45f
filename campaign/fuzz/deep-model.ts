/**
 * Files whose messages stand in each other thousands of times, which no library for protocol buffers
 * writes: types of sequences of sequences, bodies in bodies. Made from the inside out, byte by byte.
 */
import type { Rng } from "../../src/support/rng.ts";

/** Numbers of length-delimited fields, from the outside to the inside (onnx.proto). */
const paths = {
  types: { head: [7, 11, 2], repeated: [4, 1] },
  bodies: { head: [7], repeated: [1, 5, 6] },
  graphLists: { head: [7], repeated: [1, 5, 11] },
  optionals: { head: [7, 13, 2], repeated: [9, 1] },
} as const;

export function deepModel(rng: Rng): Uint8Array {
  const { head, repeated } =
    paths[rng.pick(["types", "bodies", "graphLists", "optionals"] as const)];
  const depth = rng.pick([30, 99, 101, 1000, 20_000]);
  const fields = [...head, ...Array.from({ length: depth }, () => repeated).flat()];
  const headers: number[][] = [];
  let length = 0;
  for (const field of fields.reverse()) {
    const header = [...varint(field * 8 + 2), ...varint(length)];
    headers.push(header);
    length += header.length;
  }
  // The version of the format and of the operators, then the nest.
  return Uint8Array.from([0x08, 10, 0x42, 2, 0x10, 20, ...headers.reverse().flat()]);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) + 128);
  }
}
