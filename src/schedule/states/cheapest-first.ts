/**
 * Tiles by rising floor, the earlier of equals first, without finding the floor of those that are dearer
 * than what is asked for: a tile's least price, which is cheap to find, says when its floor is wanted.
 * Limits that are asked for fall: what was beyond one of them is never given.
 */
import type { TilePrice } from "./region-states.ts";

type Floor = Pick<TilePrice, "leastNs" | "floorNs">;

interface Place {
  readonly tile: number;
  readonly floorNs: number;
}

export class CheapestFirst {
  readonly #prices: readonly Floor[];
  /** By rising least price; those before `#next` have been looked at. */
  readonly #order: readonly number[];
  #next = 0;
  /** Looked at and within the limit, dearest first. */
  readonly #found: Place[] = [];
  readonly #dear: number[] = [];

  constructor(prices: readonly Floor[]) {
    this.#prices = prices;
    const order = prices.map((_, i) => i);
    this.#order = order.sort((a, b) => prices[a]!.leastNs - prices[b]!.leastNs || a - b);
  }

  /** The next tile whose floor is no more than the limit. */
  next(limitNs: number): number | undefined {
    for (;;) {
      const last = this.#found.at(-1);
      const open = this.#order[this.#next];
      const leastNs = open === undefined ? Infinity : this.#prices[open]!.leastNs;
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
    const place = { tile, floorNs: this.#prices[tile]!.floorNs(limitNs) };
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
