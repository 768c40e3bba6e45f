/**
 * Greedy DAG extraction, the best fast heuristic of the extraction-gym: every class keeps the cheapest
 * set of classes that it was found to need, and a node is tried again whenever the set of a child
 * improves. Sharing below one node is seen, sharing between distant ones is not. A change counts
 * only above a relative step, since sums in another order would go on for ever.
 */
import { type Users, usersOf } from "./knuth.ts";
import type { Choice, ExtractionProblem } from "./problem.ts";

const leastGain = 1e-9;

/** May choose in a circle where sets went stale: see `evaluateChoice`. */
export function chooseGreedily(problem: ExtractionProblem): Choice {
  return new Greedy(problem).run();
}

class Greedy {
  readonly #problem: ExtractionProblem;
  readonly #users: Users;
  readonly #words: number;
  /** Bit rows over classes: what the present choice of a class needs, itself included. */
  readonly #needs: Uint32Array;
  readonly #total: Float64Array;
  readonly #choice: Choice;
  readonly #union: Uint32Array;

  constructor(problem: ExtractionProblem) {
    this.#problem = problem;
    this.#users = usersOf(problem);
    this.#words = (problem.classCount + 31) >> 5;
    this.#needs = new Uint32Array(this.#words * problem.classCount);
    this.#total = new Float64Array(problem.classCount).fill(Number.POSITIVE_INFINITY);
    this.#choice = new Int32Array(problem.classCount).fill(-1);
    this.#union = new Uint32Array(this.#words);
  }

  run(): Choice {
    const { cost, childStart, nodeClass } = this.#problem;
    const { userStart, users } = this.#users;
    const queued = new Uint8Array(cost.length);
    const queue: number[] = [];
    for (let n = 0; n < cost.length; n++) {
      if (childStart[n] === childStart[n + 1]) queue.push(n);
    }
    for (let at = 0; at < queue.length; at++) {
      const node = queue[at]!;
      queued[node] = 0;
      if (!this.#improve(node)) continue;
      const c = nodeClass[node]!;
      for (let k = userStart[c]!; k < userStart[c + 1]!; k++) {
        if (queued[users[k]!]) continue;
        queued[users[k]!] = 1;
        queue.push(users[k]!);
      }
    }
    return this.#choice;
  }

  /** Takes the node for its class when that is cheaper than what the class has. */
  #improve(node: number): boolean {
    const { children, childStart, nodeClass, cost } = this.#problem;
    const c = nodeClass[node]!;
    const union = this.#union.fill(0);
    let total = cost[node]!;
    for (let k = childStart[node]!; k < childStart[node + 1]!; k++) {
      if (this.#choice[children[k]!]! < 0) return false;
      total += this.#addNeeds(children[k]!);
      if (total >= this.#total[c]! * (1 - leastGain)) return false;
    }
    if ((union[c >> 5]! & (1 << (c & 31))) !== 0) return false;
    union[c >> 5] = union[c >> 5]! | (1 << (c & 31));
    this.#needs.set(union, c * this.#words);
    this.#total[c] = total;
    this.#choice[c] = node;
    return true;
  }

  /** Joins what a class needs to the union; gives the cost of what is new in it. */
  #addNeeds(child: number): number {
    let added = 0;
    const at = child * this.#words;
    for (let word = 0; word < this.#words; word++) {
      let fresh = this.#needs[at + word]! & ~this.#union[word]!;
      if (fresh === 0) continue;
      this.#union[word] = this.#union[word]! | fresh;
      while (fresh !== 0) {
        const member = word * 32 + 31 - Math.clz32(fresh & -fresh);
        added += this.#problem.cost[this.#choice[member]!]!;
        fresh &= fresh - 1;
      }
    }
    return added;
  }
}
