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

/** The message with a one bit, zeros and its length in bits: a multiple of 64 bytes. */
function padMessage(bytes: Uint8Array): DataView {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 0x20000000));
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0);
  return view;
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

export function sha256(bytes: Uint8Array): string {
  const view = padMessage(bytes);
  const state = initialState.slice();
  const schedule = new Int32Array(64);
  for (let at = 0; at < view.byteLength; at += 64) {
    expandBlock(view, at, schedule);
    compressBlock(state, schedule);
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** SHA-256 of the text's UTF-8 bytes. */
export function sha256Text(text: string): string {
  return sha256(new TextEncoder().encode(text));
}
