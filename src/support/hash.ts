/** SHA-256 (FIPS 180-4) of bytes or text, in lower-case hexadecimal. */

function firstPrimes(count: number): readonly number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((p) => n % p !== 0)) primes.push(n);
  return primes;
}

/** The first 32 bits of the fraction of x. */
function fractionBits(x: number): number {
  return ((x - Math.floor(x)) * 4294967296) | 0;
}

// FIPS 180-4, 4.2.2 and 5.3.3: cube roots of 64 primes, square roots of 8.
const roundConstants = Int32Array.from(firstPrimes(64), (p) => fractionBits(Math.cbrt(p)));
const initialState = Int32Array.from(firstPrimes(8), (p) => fractionBits(Math.sqrt(p)));

function rotate(x: number, count: number): number {
  return (x >>> count) | (x << (32 - count));
}

function expandBlock(view: DataView, at: number, schedule: Int32Array): void {
  for (let i = 0; i < 16; i++) schedule[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const a = schedule[i - 15]!;
    const b = schedule[i - 2]!;
    const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
    const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
    schedule[i] = schedule[i - 16]! + s0 + schedule[i - 7]! + s1;
  }
}

function compressBlock(state: Int32Array, schedule: Int32Array): void {
  // One variable each: an array of them would be made anew in every round.
  let [a, b, c, d] = [state[0]!, state[1]!, state[2]!, state[3]!];
  let [e, f, g, h] = [state[4]!, state[5]!, state[6]!, state[7]!];
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + roundConstants[i]! + schedule[i]!) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}

/** A checksum of bytes that come in pieces; the digest, in hexadecimal, ends it. */
export interface RunningSum {
  update(piece: Uint8Array): unknown;
  digest(): string;
}

const blockBytes = 64;

/** SHA-256 of what comes in pieces. */
export class Sha256 implements RunningSum {
  readonly #state = initialState.slice();
  readonly #schedule = new Int32Array(64);
  /** The begin of a block that is not whole yet. */
  readonly #open = new Uint8Array(blockBytes);
  #length = 0;

  update(piece: Uint8Array): void {
    const held = this.#length % blockBytes;
    this.#length += piece.length;
    const first = Math.min(piece.length, blockBytes - held);
    this.#open.set(piece.subarray(0, first), held);
    if (held + first < blockBytes) return;
    this.#compress(new DataView(this.#open.buffer), 0);
    const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength);
    let at = first;
    for (; at + blockBytes <= piece.length; at += blockBytes) this.#compress(view, at);
    this.#open.set(piece.subarray(at));
  }

  digest(): string {
    const length = this.#length;
    // A one bit, zeros, and the length in bits at the end of a block.
    const tail = new Uint8Array(blockBytes - ((length + 8) % blockBytes) + 8);
    tail[0] = 0x80;
    const view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, Math.floor(length / 0x20000000));
    view.setUint32(tail.length - 4, (length * 8) >>> 0);
    this.update(tail);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #compress(bytes: DataView, at: number): void {
    expandBlock(bytes, at, this.#schedule);
    compressBlock(this.#state, this.#schedule);
  }
}

export function sha256(bytes: Uint8Array): string {
  const sum = new Sha256();
  sum.update(bytes);
  return sum.digest();
}

/** SHA-256 of the text's UTF-8 bytes. */
export function sha256Text(text: string): string {
  return sha256(new TextEncoder().encode(text));
}
