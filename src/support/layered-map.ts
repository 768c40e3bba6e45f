/**
 * A map as it is with some entries put over those of another, which many such maps share: what is seen of
 * thousands of names from thousands of places is kept once. In: two maps that no longer change. Entries are
 * in the order in which `set` would leave them.
 */
export class LayeredMap<K, V> implements ReadonlyMap<K, V> {
  readonly #base: ReadonlyMap<K, V>;
  readonly #over: ReadonlyMap<K, V>;

  constructor(base: ReadonlyMap<K, V>, over: ReadonlyMap<K, V>) {
    this.#base = base;
    this.#over = over;
  }

  get(key: K): V | undefined {
    return this.#over.has(key) ? this.#over.get(key) : this.#base.get(key);
  }

  has(key: K): boolean {
    return this.#over.has(key) || this.#base.has(key);
  }

  get size(): number {
    return this.#whole().size;
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.#whole()) visit(value, key, this);
  }

  entries(): MapIterator<[K, V]> {
    return this.#whole().entries();
  }

  keys(): MapIterator<K> {
    return this.#whole().keys();
  }

  values(): MapIterator<V> {
    return this.#whole().values();
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  #whole(): Map<K, V> {
    const whole = new Map(this.#base);
    for (const [key, value] of this.#over) whole.set(key, value);
    return whole;
  }
}
