/**
 * Greedy DAG extraction, the best fast heuristic of the extraction-gym: every class keeps the cheapest
 * set of classes that it was found to need, and a node is tried again whenever the set of a child
 * improves. Sharing below one node is seen, sharing between distant ones is not. A change counts
 * only above a relative step, since sums in another order would go on for ever. Of very many classes the
 * last ones take what comes first, once joining sets has taken its share of work.
 */
import { type Users, usersOf } from "./knuth.ts";
import { type NeedSets, needSetsFor } from "./need-sets.ts";
import type { Choice, ExtractionProblem } from "./problem.ts";

const leastGain = 1e-9;

/** May choose in a circle where sets went stale: see `evaluateChoice`. */
export function chooseGreedily(problem: ExtractionProblem, setsFor = needSetsFor): Choice {
  return new Greedy(problem, setsFor).run();
}

class Greedy {
  readonly #problem: ExtractionProblem;
  readonly #users: Users;
  readonly #needs: NeedSets;
  readonly #total: Float64Array;
  readonly #choice: Choice;

  constructor(problem: ExtractionProblem, setsFor: typeof needSetsFor) {
    this.#problem = problem;
    this.#users = usersOf(problem);
    this.#total = new Float64Array(problem.classCount).fill(Number.POSITIVE_INFINITY);
    this.#choice = new Int32Array(problem.classCount).fill(-1);
    this.#needs = setsFor(problem, this.#choice);
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
    const needs = this.#needs;
    if (needs.isSpent) return this.#takeFirst(node);
    needs.begin();
    let total = cost[node]!;
    for (let k = childStart[node]!; k < childStart[node + 1]!; k++) {
      if (this.#choice[children[k]!]! < 0) return false;
      total += needs.join(children[k]!);
      if (total >= this.#total[c]! * (1 - leastGain)) return false;
    }
    if (needs.has(c)) return false;
    this.#total[c] = total;
    this.#choice[c] = node;
    needs.keep(c);
    return true;
  }

  /** For a class that has none: a node over classes that have theirs, which none of them can need. */
  #takeFirst(node: number): boolean {
    const { children, childStart, nodeClass } = this.#problem;
    const c = nodeClass[node]!;
    if (this.#choice[c]! >= 0) return false;
    const needed = children.subarray(childStart[node], childStart[node + 1]);
    if (needed.some((child) => this.#choice[child]! < 0)) return false;
    this.#choice[c] = node;
    return true;
  }
}
