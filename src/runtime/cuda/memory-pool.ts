/**
 * Memory of a device under a cap. What is given back stays at hand for the next of its size, because the
 * driver's own allocation takes from tens to hundreds of microseconds and waits for the device. Before the
 * cap or the device itself refuses, all that is at hand goes back to the driver.
 */

/** How a pool comes by memory. */
export interface MemorySource {
  /** Undefined where the device has no room. */
  readonly allocate: (bytes: number) => bigint | undefined;
  readonly release: (address: bigint) => void;
}

/** Sizes that may stand for each other: multiples of what the driver aligns to, of a page above. */
const [granule, page, pagesFrom] = [512, 64 * 1024, 1024 * 1024];

export type PoolAnswer =
  | { readonly kind: "taken"; readonly address: bigint }
  | { readonly kind: "overCap" }
  | { readonly kind: "noRoom" };

interface Held {
  /** As asked for. */
  readonly bytes: number;
  /** As taken from the driver. */
  readonly size: number;
}

export class MemoryPool {
  readonly #source: MemorySource;
  readonly #capBytes: number;
  readonly #taken = new Map<bigint, Held>();
  readonly #atHand = new Map<number, bigint[]>();
  #usedBytes = 0;
  #heldBytes = 0;

  /** @param capBytes most that the pool holds at once, what is at hand included */
  constructor(source: MemorySource, capBytes: number) {
    this.#source = source;
    this.#capBytes = capBytes;
  }

  /** Bytes that were asked for and not given back. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Bytes that the driver has given, rounded up, whether in use or at hand. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  take(bytes: number): PoolAnswer {
    const size = sizeOf(bytes);
    const known = this.#atHand.get(size)?.pop();
    if (known !== undefined) return this.#note(known, bytes, size);
    if (this.#heldBytes + size > this.#capBytes) this.trim();
    if (this.#heldBytes + size > this.#capBytes) return { kind: "overCap" };
    const fresh = this.#source.allocate(size) ?? this.#retry(size);
    if (fresh === undefined) return { kind: "noRoom" };
    this.#heldBytes += size;
    return this.#note(fresh, bytes, size);
  }

  /** False: the pool does not know the address. */
  give(address: bigint): boolean {
    const held = this.#taken.get(address);
    if (!held) return false;
    this.#taken.delete(address);
    this.#usedBytes -= held.bytes;
    const list = this.#atHand.get(held.size);
    if (list) list.push(address);
    else this.#atHand.set(held.size, [address]);
    return true;
  }

  /** All that is at hand, back to the driver. */
  trim(): void {
    for (const [size, list] of this.#atHand) {
      for (const address of list.splice(0)) {
        this.#heldBytes -= size;
        this.#source.release(address);
      }
    }
  }

  /** Everything back to the driver. */
  close(): void {
    for (const address of [...this.#taken.keys()]) this.give(address);
    this.trim();
  }

  #retry(size: number): bigint | undefined {
    this.trim();
    return this.#source.allocate(size);
  }

  #note(address: bigint, bytes: number, size: number): PoolAnswer {
    this.#taken.set(address, { bytes, size });
    this.#usedBytes += bytes;
    return { kind: "taken", address };
  }
}

function sizeOf(bytes: number): number {
  const step = bytes >= pagesFrom ? page : granule;
  return Math.ceil(bytes / step) * step;
}
