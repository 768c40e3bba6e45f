/**
 * Pages of one program: mapped together, given back together. With guards every mapping ends at a page
 * that faults when it is touched, and begins after one, so that a stray byte cannot go unnoticed.
 */
import { DiagnosticError, diagnostic } from "../../support/diagnostic.ts";
import type { NativeSystem } from "../ffi/native-system.ts";

export class NativeMemory {
  readonly #system: NativeSystem;
  readonly #mapped: { readonly address: bigint; readonly bytes: number }[] = [];

  constructor(system: NativeSystem) {
    this.#system = system;
  }

  /** Bytes mapped now. */
  get bytes(): number {
    return this.#mapped.reduce((sum, m) => sum + m.bytes, 0);
  }

  /** Zeroed bytes at a page's begin. */
  map(bytes: number): bigint {
    const whole = this.#whole(Math.max(1, bytes));
    const address = this.#system.map(whole);
    if (address === undefined) {
      throw new DiagnosticError([
        diagnostic("RUN051", `the system refused ${whole} bytes of memory`, {
          help: "free memory, dispose other models, or choose smaller shapes",
        }),
      ]);
    }
    this.#mapped.push({ address, bytes: whole });
    return address;
  }

  /** Zeroed bytes that end where a page without access begins, after another such page. */
  mapGuarded(bytes: number): bigint {
    const { pageBytes } = this.#system;
    const whole = this.#whole(Math.max(1, bytes));
    const address = this.map(whole + 2 * pageBytes);
    const end = address + BigInt(pageBytes + whole);
    this.#system.close(address, pageBytes);
    this.#system.close(end, pageBytes);
    return end - BigInt(bytes);
  }

  /** Code, executable and no longer writable; undefined: the host forbids it. */
  mapCode(code: Uint8Array): bigint | undefined {
    const address = this.map(code.length);
    new Uint8Array(this.#system.view(address, code.length)).set(code);
    return this.#system.seal(address, this.#whole(code.length)) ? address : undefined;
  }

  unmap(): void {
    for (const { address, bytes } of this.#mapped.splice(0)) this.#system.unmap(address, bytes);
  }

  #whole(bytes: number): number {
    const { pageBytes } = this.#system;
    return Math.ceil(bytes / pageBytes) * pageBytes;
  }
}
