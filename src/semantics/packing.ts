/**
 * Packed storage of 2- and 4-bit elements: element 0 in the lowest bits of byte 0 (ONNX,
 * "4 bit integer types", Packing and Unpacking). Patterns are unsigned; signs and float values are
 * given to them by integer.ts and float-codec.ts. Unused bits of the last byte are zero.
 */

/** Packs `bits`-wide patterns (2 or 4 bits) into bytes. */
export function packBits(patterns: ArrayLike<number>, bits: number): Uint8Array {
  const perByte = 8 / bits;
  const mask = 2 ** bits - 1;
  const packed = new Uint8Array(Math.ceil(patterns.length / perByte));
  for (let i = 0; i < patterns.length; i++) {
    const byte = Math.floor(i / perByte);
    packed[byte] = packed[byte]! | ((patterns[i]! & mask) << ((i % perByte) * bits));
  }
  return packed;
}

/** Unpacks `count` patterns of `bits` bits (2 or 4). */
export function unpackBits(packed: Uint8Array, bits: number, count: number): Uint8Array {
  const perByte = 8 / bits;
  const mask = 2 ** bits - 1;
  const patterns = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    patterns[i] = (packed[Math.floor(i / perByte)]! >> ((i % perByte) * bits)) & mask;
  }
  return patterns;
}
