/** Constants behind the code, addressed relative to the instruction pointer; equal ones share a place. */
import type { Label, Memory } from "./operand.ts";

const alignment = 64;

export class ConstantPool {
  readonly label: Label;
  readonly #bytes: number[] = [];
  readonly #places = new Map<string, number>();

  constructor(label: Label) {
    this.label = label;
  }

  /** A 32-bit pattern. */
  word(pattern: number): Memory {
    const view = new DataView(new ArrayBuffer(4));
    view.setInt32(0, pattern | 0, true);
    return this.#place(new Uint8Array(view.buffer), 4);
  }

  /** A 64-bit pattern, twice: 16 bytes may be read. */
  pair(pattern: bigint): Memory {
    const view = new DataView(new ArrayBuffer(16));
    view.setBigUint64(0, BigInt.asUintN(64, pattern), true);
    view.setBigUint64(8, BigInt.asUintN(64, pattern), true);
    return this.#place(new Uint8Array(view.buffer), 16);
  }

  /** A 32-bit pattern in each of so many lanes: a power of two. */
  lanes(pattern: number, count: number): Memory {
    const bytes = new Uint8Array(Int32Array.from({ length: count }, () => pattern | 0).buffer);
    return this.#place(bytes, bytes.length);
  }

  bytes(bytes: Uint8Array): Memory {
    return this.#place(bytes, alignment);
  }

  contents(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  #place(bytes: Uint8Array, align: number): Memory {
    const key = bytes.join();
    let at = this.#places.get(key);
    if (at === undefined) {
      while (this.#bytes.length % align !== 0) this.#bytes.push(0);
      at = this.#bytes.length;
      this.#bytes.push(...bytes);
      this.#places.set(key, at);
    }
    return { kind: "memory", scale: 1, disp: at, label: this.label };
  }
}
