/**
 * States that another replaces at no higher price whatever the neighbours do (dead-end elimination, Desmet et
 * al. 1992; soft neighbourhood substitutability of weighted constraint networks): what the other saves by
 * its own price is at least the most that its transitions can add, and it takes no more of any budget. Some
 * optimum is left, not all of them.
 */
import { type Edge, type Network, noMarks, restrict } from "./network.ts";

/** A state is compared with so many cheaper ones at most: with thousands of states all pairs are too many. */
const candidates = 64;

export interface Undominated {
  readonly network: Network;
  readonly removed: number;
  /** Table entries touched. */
  readonly work: number;
}

/** The network without its dominated states. One pass: a second finds a fiftieth of what the first does. */
export function withoutDominated(network: Network): Undominated {
  const dead = noMarks(network);
  const found = markDominated(network, dead);
  return { ...found, network: found.removed > 0 ? restrict(network, dead) : network };
}

/** Marks the dominated states of a network: a state that replaces another is itself not marked. */
export function markDominated(
  network: Network,
  dead: readonly Uint8Array[],
): { readonly removed: number; readonly work: number } {
  const amounts: Float64Array[][] = network.unary.map(() => []);
  for (const budget of network.budgets) {
    budget.variables.forEach((i, at) => {
      amounts[i]!.push(budget.amounts[at]!);
    });
  }
  let removed = 0;
  let work = 0;
  for (let i = 0; i < dead.length; i++) {
    const sides = network.incident[i]!.map((e) => new Side(network.edges[e]!, i));
    // Where infinities are, means say nothing: those first, so that the means of the others can end early.
    sides.sort((x, y) => Number(y.hard) - Number(x.hard));
    const comparison = new Comparison(network.unary[i]!, sides, amounts[i]!);
    removed += comparison.markReplaced(dead[i]!);
    for (const side of sides) work += side.work;
  }
  return { removed, work };
}

/** The states of one variable against each other. */
class Comparison {
  readonly #prices: Float64Array;
  readonly #sides: readonly Side[];
  readonly #amounts: readonly Float64Array[];
  /** Per side and state: what this side and those after it cost in the mean, together. */
  readonly #rest: readonly Float64Array[];

  constructor(prices: Float64Array, sides: readonly Side[], amounts: readonly Float64Array[]) {
    this.#prices = prices;
    this.#sides = sides;
    this.#amounts = amounts;
    const rest = [new Float64Array(prices.length)];
    for (const side of sides.toReversed()) {
      const after = rest[0]!;
      rest.unshift(after.map((sum, s) => sum + side.meanOf(s)));
    }
    this.#rest = rest;
  }

  markReplaced(dead: Uint8Array): number {
    // A maximum is at least the mean: whatever replaces a state comes before it by mean.
    const means = this.#rest[0]!;
    const order = ascending(this.#prices.map((p, s) => p + means[s]!));
    const stay: number[] = [];
    let removed = 0;
    for (const s of order) {
      if (this.#isReplaced(stay, s)) {
        dead[s] = 1;
        removed++;
      } else if (stay.length < candidates) stay.push(s);
    }
    return removed;
  }

  #isReplaced(others: readonly number[], s: number): boolean {
    return others.some((t) => this.#replaces(t, s) && this.#amounts.every((a) => a[t]! <= a[s]!));
  }

  #replaces(t: number, s: number): boolean {
    let most = this.#prices[t]! - this.#prices[s]!;
    for (let n = 0; n < this.#sides.length; n++) {
      const rest = this.#rest[n + 1]!;
      // Beyond rounding: a pair that is let through is compared in full.
      const room = 0.5 - most - (rest[t]! - rest[s]!);
      const added = this.#sides[n]!.mostAdded(t, s, room);
      if (added > room) return false;
      most += added;
    }
    return most <= 0;
  }
}

/** Positions of the values, the least first; where they differ by less than 1 the first first. */
function ascending(values: Float64Array): Float64Array {
  const places = 2 ** Math.ceil(Math.log2(values.length + 1));
  let most = 0;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i]!));
  // Value and position in one number, because numbers sort ten times as fast as with a comparison.
  const unit = Math.max(1, 2 ** Math.ceil(Math.log2((most * places) / 2 ** 52)));
  const keys = values.map((value, at) => Math.floor(value / unit) * places + at).sort();
  return keys.map((key) => key - Math.floor(key / places) * places);
}

/** One edge, seen from one of its ends. */
class Side {
  readonly hard: boolean;
  work = 0;
  readonly #classes: Int32Array;
  readonly #table: Float64Array;
  /** Distance of two classes of this end in the table, and of two of the other. */
  readonly #step: number;
  readonly #otherStep: number;
  readonly #others: number;
  /** Of each pair of classes, once it is known; only where states share classes. */
  readonly #known: Float64Array | undefined;
  readonly #count: number;
  /** Per class of this end; 0 where something is forbidden. */
  readonly #means: Float64Array;

  constructor(edge: Edge, i: number) {
    const atA = edge.a === i;
    this.#classes = atA ? edge.classA : edge.classB;
    this.#table = edge.table;
    this.#step = atA ? edge.columns : 1;
    this.#otherStep = atA ? 1 : edge.columns;
    this.#others = atA ? edge.columns : edge.rows;
    this.#count = atA ? edge.rows : edge.columns;
    this.hard = edge.hard;
    this.#means = this.hard ? new Float64Array(this.#count) : this.#meanPrices();
    const shared = this.#count * 2 <= this.#classes.length;
    this.#known = shared ? new Float64Array(this.#count * this.#count).fill(Number.NaN) : undefined;
  }

  meanOf(state: number): number {
    return this.#means[this.#classes[state]!]!;
  }

  #meanPrices(): Float64Array {
    this.work += this.#table.length;
    const means = new Float64Array(this.#count);
    for (let c = 0; c < means.length; c++) {
      let sum = 0;
      for (let k = 0, at = c * this.#step; k < this.#others; k++, at += this.#otherStep) {
        sum += this.#table[at]!;
      }
      means[c] = sum / this.#others;
    }
    return means;
  }

  /**
   * The most that the edge costs more with state `t` than with `s`, over all states of the other end; once it
   * passes `room`, any number above that.
   */
  mostAdded(t: number, s: number, room: number): number {
    const to = this.#classes[t]!;
    const from = this.#classes[s]!;
    if (to === from) return 0;
    if (this.#known === undefined) return this.#compare(to, from, room);
    const at = to * this.#count + from;
    if (Number.isNaN(this.#known[at]!)) this.#known[at] = this.#compare(to, from, Infinity);
    return this.#known[at]!;
  }

  #compare(to: number, from: number, room: number): number {
    const table = this.#table;
    const step = this.#otherStep;
    const end = this.#others * step;
    let most = -Infinity;
    const x = to * this.#step;
    const y = from * this.#step;
    let at = 0;
    for (; at < end && most <= room; at += step) {
      const forbidden = table[y + at]!;
      const added = table[x + at]! - forbidden;
      // What `s` forbids is no argument against `t`.
      if (added > most && forbidden !== Infinity) most = added;
    }
    this.work += at / step;
    return most;
  }
}
