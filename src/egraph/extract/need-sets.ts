/**
 * What the present choice of each class needs: sets of classes that greedy extraction joins. Few classes have
 * a row of bits each; the square of many would not fit memory, so their sets are trees of which joining copies
 * what differs alone: equal parts are one object, and what a chain adds to the set before it is a path.
 */
import type { Choice, ExtractionProblem } from "./problem.ts";

/** One union at a time: of the sets of a node's children, which may become that of the node's class. */
export interface NeedSets {
  begin(): void;
  /** Joins what a class needs; gives the cost of what is new. */
  join(child: number): number;
  has(member: number): boolean;
  /** The union, with the class itself, is what the class needs. */
  keep(of: number): void;
  /** Whether joining has taken as much work as it may. */
  readonly isSpent: boolean;
}

/** Words of the rows of bits, at most. */
const mostWords = 2 ** 24;

/** @param choice as the caller changes it: costs are those of the chosen nodes */
export function needSetsFor(problem: ExtractionProblem, choice: Choice): NeedSets {
  const { classCount } = problem;
  return (classCount / 32) * classCount <= mostWords
    ? new RowSets(problem, choice)
    : new TreeSets(problem, choice);
}

export class RowSets implements NeedSets {
  readonly isSpent = false;
  readonly #cost: Float64Array;
  readonly #choice: Choice;
  readonly #words: number;
  /** Bit rows over classes. */
  readonly #needs: Uint32Array;
  readonly #union: Uint32Array;

  constructor({ classCount, cost }: ExtractionProblem, choice: Choice) {
    this.#cost = cost;
    this.#choice = choice;
    this.#words = (classCount + 31) >> 5;
    this.#needs = new Uint32Array(this.#words * classCount);
    this.#union = new Uint32Array(this.#words);
  }

  begin(): void {
    this.#union.fill(0);
  }

  join(child: number): number {
    let added = 0;
    const at = child * this.#words;
    for (let word = 0; word < this.#words; word++) {
      const fresh = this.#needs[at + word]! & ~this.#union[word]!;
      if (fresh === 0) continue;
      this.#union[word] = this.#union[word]! | fresh;
      added += sumOf(fresh, word, this.#cost, this.#choice);
    }
    return added;
  }

  has(member: number): boolean {
    return (this.#union[member >> 5]! & (1 << (member & 31))) !== 0;
  }

  keep(of: number): void {
    this.#union[of >> 5] = this.#union[of >> 5]! | (1 << (of & 31));
    this.#needs.set(this.#union, of * this.#words);
  }
}

/** Costs of the chosen nodes of the classes of a word. */
function sumOf(bits: number, word: number, cost: Float64Array, choice: Choice): number {
  let sum = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) {
    const member = word * 32 + 31 - Math.clz32(rest & -rest);
    sum += cost[choice[member]!]!;
  }
  return sum;
}

/** A part of a set, never changed: a word of members, or parts. */
interface Part {
  readonly bits: number;
  readonly parts: readonly (Part | undefined)[];
  /** Of the members, as they were chosen when the part was made. */
  readonly cost: number;
}

/** Parts that are joined, at most: sets that share nothing take as long as rows would. */
const mostJoined = 2 ** 26;

/** Parts of a part: a power of two. */
const [shift, fan] = [3, 8];
const none: readonly undefined[] = [];

export class TreeSets implements NeedSets {
  readonly #cost: Float64Array;
  readonly #choice: Choice;
  /** Levels above the words. */
  readonly #height: number;
  readonly #needs: (Part | undefined)[];
  #union: Part | undefined;
  #left = mostJoined;

  constructor({ classCount, cost }: ExtractionProblem, choice: Choice) {
    this.#cost = cost;
    this.#choice = choice;
    let height = 0;
    while (fan ** height * 32 < classCount) height++;
    this.#height = height;
    this.#needs = new Array(classCount);
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  begin(): void {
    this.#union = undefined;
  }

  join(child: number): number {
    const before = this.#union?.cost ?? 0;
    this.#union = this.#joined(this.#union, this.#needs[child], this.#height, 0);
    return (this.#union?.cost ?? 0) - before;
  }

  has(member: number): boolean {
    const word = member >> 5;
    let part = this.#union;
    for (let level = this.#height; level > 0; level--) part = part?.parts[digit(word, level)];
    return part !== undefined && (part.bits & (1 << (member & 31))) !== 0;
  }

  keep(of: number): void {
    const word = of >> 5;
    let own = this.#word(1 << (of & 31), word);
    for (let level = 1; level <= this.#height; level++) {
      const parts = new Array<Part | undefined>(fan);
      parts[digit(word, level)] = own;
      own = { bits: 0, parts, cost: own.cost };
    }
    this.#needs[of] = this.#joined(this.#union, own, this.#height, 0);
  }

  #word(bits: number, word: number): Part {
    return { bits, parts: none, cost: sumOf(bits, word, this.#cost, this.#choice) };
  }

  /** One of the two wherever it holds the other. */
  #joined(
    a: Part | undefined,
    b: Part | undefined,
    level: number,
    place: number,
  ): Part | undefined {
    if (a === b || !b) return a;
    if (!a) return b;
    this.#left--;
    if (level === 0) {
      const bits = a.bits | b.bits;
      if (bits === a.bits) return a;
      return bits === b.bits ? b : this.#word(bits, place);
    }
    const parts = new Array<Part | undefined>(fan);
    let [isA, isB, cost] = [true, true, 0];
    for (let i = 0; i < fan; i++) {
      const [x, y] = [a.parts[i], b.parts[i]];
      const part = this.#joined(x, y, level - 1, place * fan + i);
      parts[i] = part;
      isA &&= part === x;
      isB &&= part === y;
      cost += part?.cost ?? 0;
    }
    if (isA) return a;
    return isB ? b : { bits: 0, parts, cost };
  }
}

function digit(word: number, level: number): number {
  return (word >> (shift * (level - 1))) & (fan - 1);
}
