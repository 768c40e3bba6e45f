/**
 * What every derivation of a class must contain: D(c) is c and what all its nodes have in common, a node
 * having the union over its children (the greatest solution, found by iteration from above). Bit sets over
 * classes, one row a class.
 */
import type { DraftClass } from "./reduce.ts";

export class MustContain {
  readonly #words: number;
  readonly #rows: Uint32Array;
  readonly #scratch: Uint32Array;

  /** @param order all classes, each after the children of one of its nodes */
  constructor(classes: readonly DraftClass[], order: readonly number[]) {
    this.#words = (classes.length + 31) >> 5;
    this.#rows = new Uint32Array(this.#words * classes.length).fill(0xffffffff);
    this.#scratch = new Uint32Array(this.#words);
    let changed = true;
    while (changed) {
      changed = false;
      for (const c of order) if (this.#tighten(c, classes[c]!)) changed = true;
    }
  }

  has(c: number, member: number): boolean {
    return (this.#rows[c * this.#words + (member >> 5)]! & (1 << (member & 31))) !== 0;
  }

  /** Whether some class of `list` must contain `member`. */
  anyHas(list: readonly number[], member: number): boolean {
    return list.some((c) => this.has(c, member));
  }

  /** Words of a row. */
  get words(): number {
    return this.#words;
  }

  /** Joins D(c) to a row. */
  joinInto(row: Uint32Array, c: number): void {
    for (let word = 0; word < this.#words; word++) {
      row[word] = row[word]! | this.#rows[c * this.#words + word]!;
    }
  }

  /** Members of D(c), ascending. */
  members(c: number): number[] {
    const found: number[] = [];
    for (let word = 0; word < this.#words; word++) {
      let bits = this.#rows[c * this.#words + word]!;
      while (bits !== 0) {
        const low = 31 - Math.clz32(bits & -bits);
        found.push(word * 32 + low);
        bits &= bits - 1;
      }
    }
    return found;
  }

  #tighten(c: number, nodes: DraftClass): boolean {
    const words = this.#words;
    const meet = this.#scratch.fill(0xffffffff);
    for (const { children } of nodes) {
      for (let word = 0; word < words; word++) {
        let bits = 0;
        for (const child of children) bits |= this.#rows[child * words + word]!;
        meet[word] = meet[word]! & bits;
      }
    }
    meet[c >> 5] = meet[c >> 5]! | (1 << (c & 31));
    let changed = false;
    const at = c * words;
    for (let word = 0; word < words; word++) {
      const bits = this.#rows[at + word]! & meet[word]!;
      if (bits >>> 0 !== this.#rows[at + word]!) {
        this.#rows[at + word] = bits;
        changed = true;
      }
    }
    return changed;
  }
}
