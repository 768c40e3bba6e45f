/**
 * Tiles by rising floor, the earlier of equals first, without finding the floor of those that are dearer
 * than what is asked for: a tile's least price, which is cheap to find, says when its floor is wanted.
 * Limits that are asked for fall: what was beyond one of them is never given.
 */
interface Place {
  readonly tile: number;
  readonly floorNs: number;
}

export class CheapestFirst {
  readonly #leastNs: readonly number[];
  readonly #floorNs: (tile: number, limitNs: number) => number;
  /** By rising least price; those before `#next` have been looked at. */
  readonly #order: readonly number[];
  #next = 0;
  /** Looked at and within the limit, dearest first. */
  readonly #found: Place[] = [];
  readonly #dear: number[] = [];

  /** @param floorNs a tile's floor; where that is beyond the limit, something beyond the limit */
  constructor(leastNs: readonly number[], floorNs: (tile: number, limitNs: number) => number) {
    this.#leastNs = leastNs;
    this.#floorNs = floorNs;
    const order = leastNs.map((_, i) => i);
    this.#order = order.sort((a, b) => leastNs[a]! - leastNs[b]! || a - b);
  }

  /** The next tile whose floor is no more than the limit. */
  next(limitNs: number): number | undefined {
    for (;;) {
      const last = this.#found.at(-1);
      const open = this.#order[this.#next];
      const leastNs = open === undefined ? Infinity : this.#leastNs[open]!;
      if (last && last.floorNs < leastNs) {
        return last.floorNs > limitNs ? undefined : this.#found.pop()!.tile;
      }
      if (open === undefined || leastNs > limitNs) return undefined;
      this.#look(open, limitNs);
    }
  }

  /** The tiles that were not given. */
  rest(): readonly number[] {
    return [...this.#dear, ...this.#found.map((f) => f.tile), ...this.#order.slice(this.#next)];
  }

  #look(tile: number, limitNs: number): void {
    this.#next++;
    const place = { tile, floorNs: this.#floorNs(tile, limitNs) };
    if (place.floorNs > limitNs) {
      this.#dear.push(tile);
      return;
    }
    const found = this.#found;
    let at = found.length;
    while (at > 0 && isBefore(found[at - 1]!, place)) at--;
    found.splice(at, 0, place);
  }
}

function isBefore(a: Place, b: Place): boolean {
  return a.floorNs < b.floorNs || (a.floorNs === b.floorNs && a.tile < b.tile);
}
