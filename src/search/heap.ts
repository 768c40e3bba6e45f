/** A binary heap of items with a number each: the least comes first, the earlier of equals. */
export class Heap<T> {
  readonly #items: { readonly key: number; readonly serial: number; readonly item: T }[] = [];
  #serial = 0;

  get size(): number {
    return this.#items.length;
  }

  /** Least key; Infinity when empty. */
  get least(): number {
    return this.#items[0]?.key ?? Infinity;
  }

  push(key: number, item: T): void {
    const items = this.#items;
    items.push({ key, serial: this.#serial++, item });
    let at = items.length - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!this.#before(at, up)) break;
      this.#swap(at, up);
      at = up;
    }
  }

  pop(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (first === undefined || last === undefined) return undefined;
    if (items.length > 0) {
      items[0] = last;
      this.#sink();
    }
    return first.item;
  }

  #sink(): void {
    const count = this.#items.length;
    let at = 0;
    for (;;) {
      let least = at;
      for (const down of [2 * at + 1, 2 * at + 2]) {
        if (down < count && this.#before(down, least)) least = down;
      }
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #before(i: number, j: number): boolean {
    const [x, y] = [this.#items[i]!, this.#items[j]!];
    return x.key < y.key || (x.key === y.key && x.serial < y.serial);
  }

  #swap(i: number, j: number): void {
    const items = this.#items;
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
}
