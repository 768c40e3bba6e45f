/**
 * Reads the parts that protobuf messages are made of from bytes nobody vouches for. Equal short texts
 * are one object: a file of one-letter strings must not become so many objects. What is cut off or no
 * protobuf throws a RangeError. Wire format: protobuf.dev, "Encoding".
 */
import { WireType } from "@bufbuild/protobuf/wire";

/** Longer texts are each an object of their own. */
const longestShared = 64;
const sharedSlots = 2 ** 14;

export class WireReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  readonly #texts = new SharedTexts<string>();
  readonly #parts = new SharedTexts<Uint8Array>();
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The low 32 bits of a varint, unsigned. */
  varint(): number {
    const first = this.#byte();
    if (first < 128) return first;
    let low = first & 127;
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) low |= (byte & 127) << shift;
      if (byte < 128) return low >>> 0;
    }
    throw new RangeError("a varint of more than ten bytes");
  }

  /** A varint of 64 bits, signed. */
  int64(): bigint {
    const from = this.at;
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      if (byte < 128 && this.at - from <= 4) {
        this.at = from;
        return BigInt(this.varint());
      }
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
    throw new RangeError("a varint of more than ten bytes");
  }

  float(): number {
    this.skipBytes(4);
    return this.#view.getFloat32(this.at - 4, true);
  }

  /** A view of the next bytes. */
  part(length: number): Uint8Array {
    this.skipBytes(length);
    return this.bytes.subarray(this.at - length, this.at);
  }

  /** As `part`: an object that was given before, or a new one of which `made` is told. */
  sharedPart(length: number, made: () => void): Uint8Array {
    const from = this.at;
    this.skipBytes(length);
    const known = this.#parts.find(this.bytes, from, length);
    if (known) return known;
    made();
    return this.#parts.keep(from, length, this.bytes.subarray(from, this.at));
  }

  /** Text in UTF-8: a string that was given before, or a new one of which `made` is told. Throws a TypeError on others. */
  text(length: number, made: () => void): string {
    const from = this.at;
    this.skipBytes(length);
    const known = this.#texts.find(this.bytes, from, length);
    if (known !== undefined) return known;
    made();
    const text = this.#decoder.decode(this.bytes.subarray(from, this.at));
    return this.#texts.keep(from, length, text);
  }

  skipBytes(length: number): void {
    if (length > this.bytes.length - this.at) throw new RangeError("the file ends too early");
    this.at += length;
  }

  /** Skips a value of a field that is not in the schema, or of a list that is counted. */
  skip(type: WireType): void {
    if (type === WireType.Varint) this.varint();
    else if (type === WireType.Bit32) this.skipBytes(4);
    else if (type === WireType.Bit64) this.skipBytes(8);
    else if (type === WireType.LengthDelimited) this.skipBytes(this.varint());
    else throw new RangeError(`a field of wire type ${type}`);
  }

  #byte(): number {
    const byte = this.bytes[this.at];
    if (byte === undefined) throw new RangeError("the file ends too early");
    this.at++;
    return byte;
  }
}

/** What was made of short runs of bytes: the latest of each slot. */
class SharedTexts<T> {
  readonly #places = new Float64Array(sharedSlots).fill(-1);
  readonly #lengths = new Uint8Array(sharedSlots);
  readonly #values: T[] = [];
  /** The slot of what was looked for last. */
  #slot = 0;

  find(bytes: Uint8Array, from: number, length: number): T | undefined {
    if (length > longestShared) return undefined;
    let hash = 0x811c9dc5;
    for (let i = 0; i < length; i++) hash = Math.imul(hash ^ bytes[from + i]!, 0x01000193);
    const slot = (hash ^ (hash >>> 15)) & (sharedSlots - 1);
    this.#slot = slot;
    const place = this.#places[slot]!;
    if (place < 0 || this.#lengths[slot] !== length) return undefined;
    return isEqual(bytes, place, from, length) ? this.#values[slot] : undefined;
  }

  /** Keeps what was looked for last and not found. */
  keep(from: number, length: number, value: T): T {
    if (length > longestShared) return value;
    this.#places[this.#slot] = from;
    this.#lengths[this.#slot] = length;
    this.#values[this.#slot] = value;
    return value;
  }
}

function isEqual(bytes: Uint8Array, a: number, b: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (bytes[a + i] !== bytes[b + i]) return false;
  return true;
}
