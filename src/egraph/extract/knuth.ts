/**
 * Cheapest derivations of all classes at once, as trees (Knuth, 1977: Dijkstra's order over nodes that
 * wait for all their children). Classes are settled in ascending order and a node only after its
 * children, so that the choice has no cycle, whatever cycles the problem has.
 */
import type { Choice, ExtractionProblem } from "./problem.ts";

/** Which nodes need a class: users of class c are `users[userStart[c]]` up to the next. */
export interface Users {
  readonly userStart: Int32Array;
  readonly users: Int32Array;
}

export function usersOf(problem: ExtractionProblem): Users {
  const { children, childStart, classCount, cost } = problem;
  const userStart = new Int32Array(classCount + 1);
  for (const child of children) userStart[child + 1] = userStart[child + 1]! + 1;
  for (let c = 0; c < classCount; c++) userStart[c + 1] = userStart[c + 1]! + userStart[c]!;
  const fill = userStart.slice();
  const users = new Int32Array(children.length);
  for (let n = 0; n < cost.length; n++) {
    for (let k = childStart[n]!; k < childStart[n + 1]!; k++) {
      const at = fill[children[k]!]!;
      users[at] = n;
      fill[children[k]!] = at + 1;
    }
  }
  return { userStart, users };
}

/** Reusable memory of the search: extraction calls it thousands of times. */
export class CheapestTrees {
  readonly #problem: ExtractionProblem;
  readonly #users: Users;
  readonly choice: Choice;
  /** Cost of the cheapest tree of a class; Infinity where there is none. */
  readonly treeCost: Float64Array;
  /** Classes in the order in which they were settled. */
  readonly order: Int32Array;
  settledCount = 0;
  readonly #waiting: Int32Array;
  readonly #sum: Float64Array;
  readonly #heap: ClassHeap;

  constructor(problem: ExtractionProblem, users: Users) {
    this.#problem = problem;
    this.#users = users;
    this.choice = new Int32Array(problem.classCount);
    this.treeCost = new Float64Array(problem.classCount);
    this.order = new Int32Array(problem.classCount);
    this.#waiting = new Int32Array(problem.cost.length);
    this.#sum = new Float64Array(problem.cost.length);
    this.#heap = new ClassHeap(this.treeCost);
  }

  /**
   * @param cost of each node
   * @param given node already paid for by class, or -1: such a class costs nothing more and keeps it
   */
  run(cost: Float64Array, given?: Choice): void {
    const { problem, users } = { problem: this.#problem, users: this.#users };
    const { childStart, nodeClass, classCount } = problem;
    this.choice.fill(-1);
    this.treeCost.fill(Number.POSITIVE_INFINITY);
    this.#heap.clear();
    this.settledCount = 0;
    for (let c = 0; given && c < classCount; c++) {
      if (given[c]! >= 0) this.#offer(c, given[c]!, 0);
    }
    for (let n = 0; n < cost.length; n++) {
      const needs = childStart[n + 1]! - childStart[n]!;
      this.#waiting[n] = needs;
      this.#sum[n] = cost[n]!;
      if (needs === 0) this.#offer(nodeClass[n]!, n, cost[n]!);
    }
    this.#settleAll(users, nodeClass);
  }

  #settleAll({ userStart, users }: Users, nodeClass: Int32Array): void {
    for (let c = this.#heap.pop(); c >= 0; c = this.#heap.pop()) {
      this.order[this.settledCount++] = c;
      const price = this.treeCost[c]!;
      for (let k = userStart[c]!; k < userStart[c + 1]!; k++) {
        const n = users[k]!;
        this.#sum[n] = plus(this.#sum[n]!, price);
        this.#waiting[n] = this.#waiting[n]! - 1;
        if (this.#waiting[n] === 0) this.#offer(nodeClass[n]!, n, this.#sum[n]!);
      }
    }
  }

  #offer(c: number, node: number, price: number): void {
    if (!(price < this.treeCost[c]!) || this.#heap.isSettled(c)) return;
    this.treeCost[c] = price;
    this.choice[c] = node;
    this.#heap.lower(c);
  }
}

/** A tree that shares much has no number for its cost, and is a tree all the same: only what is left out is Infinity. */
function plus(sum: number, price: number): number {
  return sum === Number.POSITIVE_INFINITY ? sum : Math.min(sum + price, Number.MAX_VALUE);
}

/** A binary heap of classes by cost, then by number; a class may be lowered until it is popped. */
class ClassHeap {
  readonly #cost: Float64Array;
  readonly #place: Int32Array;
  readonly #items: Int32Array;
  #size = 0;

  constructor(cost: Float64Array) {
    this.#cost = cost;
    this.#place = new Int32Array(cost.length);
    this.#items = new Int32Array(cost.length);
  }

  clear(): void {
    this.#place.fill(outside);
    this.#size = 0;
  }

  isSettled(c: number): boolean {
    return this.#place[c] === settled;
  }

  lower(c: number): void {
    let at = this.#place[c]!;
    if (at === outside) at = this.#size++;
    this.#sink(c, at, true);
  }

  /** The cheapest class, or -1. */
  pop(): number {
    if (this.#size === 0) return -1;
    const top = this.#items[0]!;
    this.#place[top] = settled;
    this.#size--;
    if (this.#size > 0) this.#sink(this.#items[this.#size]!, 0, false);
    return top;
  }

  #isBefore(a: number, b: number): boolean {
    const [x, y] = [this.#cost[a]!, this.#cost[b]!];
    return x < y || (x === y && a < b);
  }

  /** Finds the place of `c`, from a hole, towards the top or the bottom. */
  #sink(c: number, hole: number, up: boolean): void {
    const items = this.#items;
    let at = hole;
    while (up && at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(c, items[parent]!)) break;
      this.#put(items[parent]!, at);
      at = parent;
    }
    for (let child = 2 * at + 1; !up && child < this.#size; child = 2 * at + 1) {
      if (child + 1 < this.#size && this.#isBefore(items[child + 1]!, items[child]!)) child++;
      if (!this.#isBefore(items[child]!, c)) break;
      this.#put(items[child]!, at);
      at = child;
    }
    this.#put(c, at);
  }

  #put(c: number, at: number): void {
    this.#items[at] = c;
    this.#place[c] = at;
  }
}

const outside = -1;
const settled = -2;
