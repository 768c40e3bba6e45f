/**
 * A growing byte buffer with the primitive encodings of the WebAssembly binary format: bytes, signed and
 * unsigned LEB128 (core specification, "Values"), little-endian floats, names and nested vectors.
 * What the bytes mean is function-builder.ts and module-builder.ts.
 */
import { invariant } from "../../support/invariant.ts";

export class ByteWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;

  constructor(capacity = 256) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  byte(value: number): void {
    if (this.#length === this.#bytes.length) this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  bytes(values: ArrayLike<number>): void {
    this.#reserve(values.length);
    this.#bytes.set(values, this.#length);
    this.#length += values.length;
  }

  /** Unsigned LEB128 of an integer in [0, 2^32). */
  u32(value: number): void {
    invariant(value >= 0 && value <= 0xffffffff && Number.isInteger(value), () => `u32 ${value}`);
    let rest = value >>> 0;
    while (rest > 0x7f) {
      this.byte((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.byte(rest);
  }

  /** Signed LEB128 of a 32-bit integer; values up to 2^32 - 1 are taken as their two's complement. */
  s32(value: number): void {
    let rest = value | 0;
    while (rest < -64 || rest > 63) {
      this.byte((rest & 0x7f) | 0x80);
      rest >>= 7;
    }
    this.byte(rest & 0x7f);
  }

  /** Signed LEB128 of a 64-bit integer; values up to 2^64 - 1 are taken as their two's complement. */
  s64(value: bigint): void {
    let rest = BigInt.asIntN(64, value);
    while (rest < -64n || rest > 63n) {
      this.byte(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.byte(Number(rest & 0x7fn));
  }

  f32(value: number): void {
    this.#reserve(4);
    this.#view.setFloat32(this.#length, value, true);
    this.#length += 4;
  }

  f64(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  /** A name: byte count, then UTF-8. */
  name(text: string): void {
    const encoded = encodeUtf8(text);
    this.u32(encoded.length);
    this.bytes(encoded);
  }

  /** The byte count of `part`, then its bytes. */
  sized(part: ByteWriter): void {
    this.u32(part.length);
    this.append(part);
  }

  append(part: ByteWriter): void {
    this.bytes(part.#bytes.subarray(0, part.#length));
  }

  /** A copy of what was written so far. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** UTF-8 of well-formed text; TextEncoder is not part of the language and this folder uses no host. */
function encodeUtf8(text: string): number[] {
  const out: number[] = [];
  for (const symbol of text) {
    const c = symbol.codePointAt(0)!;
    if (c < 0x80) out.push(c);
    else if (c < 0x800) out.push(0xc0 | (c >> 6), 0x80 | (c & 0x3f));
    else if (c < 0x10000) out.push(0xe0 | (c >> 12), 0x80 | ((c >> 6) & 0x3f), 0x80 | (c & 0x3f));
    else {
      out.push(0xf0 | (c >> 18), 0x80 | ((c >> 12) & 0x3f));
      out.push(0x80 | ((c >> 6) & 0x3f), 0x80 | (c & 0x3f));
    }
  }
  return out;
}
