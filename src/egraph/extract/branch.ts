/**
 * Exact extraction of one block by branch and bound, depth first. Decided are the classes that the
 * solution needs, the one with fewest nodes first. A branch ends when its bound reaches the incumbent: the
 * cost of what is chosen, and of every class that the open ones must contain at least its cheapest
 * node; or the dual bound and the reduced costs of what is chosen (dual-bound.ts). No linear
 * program. Work is counted in nodes tried.
 */
import { MustContain } from "./dominators.ts";
import type { DualBound } from "./dual-bound.ts";
import type { Choice, ExtractionProblem } from "./problem.ts";
import { draftOf } from "./reduce.ts";
import { type Improved, tolerance, trim } from "./ruin-recreate.ts";

export interface Branched {
  /** A better choice than the incumbent, where there was one. */
  readonly best: Improved;
  /** Whether the search was finished: then `best` is optimal. */
  readonly isProved: boolean;
  readonly work: number;
}

export interface BranchOptions {
  readonly incumbent: Improved;
  readonly dual: DualBound;
  /** All classes, each after the children of one of its nodes. */
  readonly order: readonly number[];
  /** All costs are multiples of this; 0 where they have no common unit. */
  readonly unit: number;
  readonly work: number;
}

export function branchAndBound(problem: ExtractionProblem, options: BranchOptions): Branched {
  return new Branching(problem, options).run();
}

class Branching {
  readonly #problem: ExtractionProblem;
  readonly #options: BranchOptions;
  readonly #must: MustContain;
  readonly #cheapest: Float64Array;
  readonly #choice: Choice;
  readonly #row: Uint32Array;
  /** Classes that are needed and not decided. */
  readonly #open = new Set<number>();
  #best: Improved;
  #work = 0;

  constructor(problem: ExtractionProblem, options: BranchOptions) {
    this.#problem = problem;
    this.#options = options;
    this.#best = options.incumbent;
    this.#must = new MustContain(draftOf(problem), options.order);
    this.#choice = new Int32Array(problem.classCount).fill(-1);
    this.#row = new Uint32Array(this.#must.words);
    this.#cheapest = Float64Array.from({ length: problem.classCount }, (_, c) =>
      Math.min(...problem.cost.subarray(problem.classStart[c]!, problem.classStart[c + 1]!)),
    );
  }

  run(): Branched {
    for (const root of this.#problem.roots) this.#open.add(root);
    this.#descend(0, 0);
    return { best: this.#best, isProved: this.#work < this.#options.work, work: this.#work };
  }

  #descend(paid: number, reduced: number): void {
    if (this.#work >= this.#options.work || !this.#canImprove(paid, reduced)) return;
    const c = this.#nextClass();
    if (c < 0) {
      this.#best = trim(this.#problem, this.#choice);
      return;
    }
    this.#open.delete(c);
    for (const node of this.#nodesByPromise(c)) {
      this.#work++;
      const added = this.#take(c, node);
      if (added) {
        const { cost } = this.#problem;
        this.#descend(paid + cost[node]!, reduced + this.#options.dual.reducedCost[node]!);
        for (const child of added) this.#open.delete(child);
      }
      this.#choice[c] = -1;
    }
    this.#open.add(c);
  }

  /** Whether a solution below can be cheaper than the incumbent by more than rounding. */
  #canImprove(paid: number, reduced: number): boolean {
    const { unit, dual } = this.#options;
    const goal = this.#best.cost - (unit > 0 ? unit / 2 : tolerance(this.#best.cost));
    if (dual.bound + reduced > goal) return false;
    return this.#leastCost(paid, goal) <= goal;
  }

  /** What is paid and the cheapest nodes of all classes that must still come, up to `enough`. */
  #leastCost(paid: number, enough: number): number {
    const row = this.#row.fill(0);
    for (const c of this.#open) this.#must.joinInto(row, c);
    let sum = paid;
    for (let word = 0; word < row.length && sum <= enough; word++) {
      for (let bits = row[word]!; bits !== 0; bits &= bits - 1) {
        const c = word * 32 + 31 - Math.clz32(bits & -bits);
        if (this.#choice[c]! < 0) sum += this.#cheapest[c]!;
      }
    }
    return sum;
  }

  #nextClass(): number {
    const { classStart } = this.#problem;
    let next = -1;
    let fewest = Number.POSITIVE_INFINITY;
    for (const c of this.#open) {
      const count = classStart[c + 1]! - classStart[c]!;
      if (count < fewest || (count === fewest && c < next)) {
        next = c;
        fewest = count;
      }
    }
    return next;
  }

  #nodesByPromise(c: number): number[] {
    const { classStart } = this.#problem;
    const { reducedCost } = this.#options.dual;
    const nodes = Array.from(
      { length: classStart[c + 1]! - classStart[c]! },
      (_, i) => classStart[c]! + i,
    );
    return nodes.sort((a, b) => reducedCost[a]! - reducedCost[b]! || a - b);
  }

  /** Chooses the node; gives the classes that it opens, or undefined where it closes a circle. */
  #take(c: number, node: number): number[] | undefined {
    const { children, childStart } = this.#problem;
    const needs = children.subarray(childStart[node]!, childStart[node + 1]!);
    this.#choice[c] = node;
    for (const child of needs) if (child === c || this.#reaches(child, c)) return undefined;
    const added: number[] = [];
    for (const child of needs) {
      if (this.#choice[child]! >= 0 || this.#open.has(child)) continue;
      this.#open.add(child);
      added.push(child);
    }
    return added;
  }

  #reaches(from: number, to: number): boolean {
    const { children, childStart } = this.#problem;
    const seen = new Set([from]);
    for (const c of seen) {
      if (c === to) return true;
      const node = this.#choice[c]!;
      if (node < 0) continue;
      for (let k = childStart[node]!; k < childStart[node + 1]!; k++) seen.add(children[k]!);
    }
    return false;
  }
}
