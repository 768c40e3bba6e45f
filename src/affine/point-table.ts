/**
 * The points seen so far, each once, by the values of their dimensions one after another.
 */

type Level = Map<number, Level> | Set<number>;

export class PointTable {
  readonly #first: Level;
  readonly #size: number;
  /** Points seen. */
  count = 0;

  /** For points of `size` dimensions. */
  constructor(size: number) {
    this.#size = size;
    this.#first = size > 1 ? new Map() : new Set();
  }

  /** Whether the point is new. */
  add(values: readonly number[]): boolean {
    const last = this.#size - 1;
    let level = this.#first;
    for (let c = 0; c < last; c++) {
      const here = level as Map<number, Level>;
      let next = here.get(values[c]!);
      if (!next) {
        next = c + 1 < last ? new Map() : new Set();
        here.set(values[c]!, next);
      }
      level = next;
    }
    const seen = level as Set<number>;
    const value = last < 0 ? 0 : values[last]!;
    if (seen.has(value)) return false;
    seen.add(value);
    this.count++;
    return true;
  }
}
