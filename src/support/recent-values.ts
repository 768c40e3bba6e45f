/**
 * Values by key, of which the least recently used leave when there are too many or they weigh too much.
 * The newest stays whatever it weighs. In: keys, values and their weights; out: what left, for whoever has
 * to end it. Order follows from the calls alone.
 */

export interface RecentLimits {
  readonly values: number;
  /** Of all weights together. */
  readonly weight: number;
}

interface Kept<V> {
  readonly value: V;
  readonly weight: number;
}

export class RecentValues<V> {
  readonly #limits: RecentLimits;
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept<V>>();
  #weight = 0;

  constructor(limits: RecentLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Least recently used first. */
  values(): readonly V[] {
    return [...this.#kept.values()].map((kept) => kept.value);
  }

  /** The value of a key, which is thereby the most recently used. */
  use(key: string): V | undefined {
    const found = this.#kept.get(key);
    if (!found) return undefined;
    this.#kept.delete(key);
    this.#kept.set(key, found);
    return found.value;
  }

  /** Keeps a value; gives those that left for it, an older one of the same key among them. */
  keep(key: string, value: V, weight: number): readonly V[] {
    const left = this.#drop(key);
    this.#kept.set(key, { value, weight });
    this.#weight += weight;
    for (const other of [...this.#kept.keys()].slice(0, -1)) {
      if (this.#kept.size <= this.#limits.values && this.#weight <= this.#limits.weight) break;
      left.push(...this.#drop(other));
    }
    return left;
  }

  /** All values leave, least recently used first. */
  clear(): readonly V[] {
    return [...this.#kept.keys()].flatMap((key) => this.#drop(key));
  }

  #drop(key: string): V[] {
    const found = this.#kept.get(key);
    if (!found) return [];
    this.#kept.delete(key);
    this.#weight -= found.weight;
    return [found.value];
  }
}
