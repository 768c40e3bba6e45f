/**
 * Improves a choice by ruin and recreate (Schrimpf et al., 2000): a random chosen class and all that
 * depend on it are freed, everything else stays paid for, and the freed part is chosen anew by marginal
 * cost, with the old node (or the whole class) forbidden. Equal results are taken, so that it drifts over
 * plateaus. Deterministic by its seed; ends after `rounds`.
 */
import { Rng } from "../../support/rng.ts";
import { CheapestTrees, usersOf } from "./knuth.ts";
import type { Choice, ExtractionProblem } from "./problem.ts";

export interface Improved {
  readonly choice: Choice;
  readonly cost: number;
}

export class RuinAndRecreate {
  readonly #problem: ExtractionProblem;
  readonly #trees: CheapestTrees;
  readonly #rng: Rng;
  readonly #cost: Float64Array;
  readonly #given: Choice;
  readonly #isRoot: Uint8Array;
  /** Chosen classes, users before what they need. */
  #selected: number[] = [];

  constructor(problem: ExtractionProblem, seed: number) {
    this.#problem = problem;
    this.#trees = new CheapestTrees(problem, usersOf(problem));
    this.#rng = new Rng(seed);
    this.#cost = problem.cost.slice();
    this.#given = new Int32Array(problem.classCount);
    this.#isRoot = new Uint8Array(problem.classCount);
    for (const root of problem.roots) this.#isRoot[root] = 1;
  }

  /** @param start without cycles. `enough`: a cost that need not be improved upon */
  run(start: Choice, rounds: number, enough: number): Improved {
    let current = trim(this.#problem, start);
    let best = current;
    this.#selected = current.selected;
    for (let round = 0; round < rounds && best.cost > enough; round++) {
      if (this.#selected.length === 0) break;
      const next = this.#retry(current.choice);
      if (!next || next.cost > current.cost + tolerance(current.cost)) continue;
      current = next;
      this.#selected = next.selected;
      if (next.cost < best.cost) best = next;
    }
    return best;
  }

  #retry(choice: Choice): Trimmed | undefined {
    const victim = this.#selected[this.#rng.integer(0, this.#selected.length - 1)]!;
    const whole = this.#isRoot[victim] === 0 && this.#rng.uniform() < 0.5;
    return this.#without(victim, whole, choice);
  }

  /** The best that was found near `base` that chooses another node for `victim`, or none. */
  neighbour(base: Trimmed, victim: number): Trimmed | undefined {
    this.#selected = base.selected;
    return this.#without(victim, false, base.choice);
  }

  /** Chooses anew what depends on the victim, without its node or without the whole class. */
  #without(victim: number, whole: boolean, choice: Choice): Trimmed | undefined {
    this.#keepOutside(victim, choice);
    const { classStart, cost } = this.#problem;
    const from = whole ? classStart[victim]! : choice[victim]!;
    const to = whole ? classStart[victim + 1]! : choice[victim]! + 1;
    for (let n = from; n < to; n++) this.#cost[n] = Number.POSITIVE_INFINITY;
    this.#trees.run(this.#cost, this.#given);
    for (let n = from; n < to; n++) this.#cost[n] = cost[n]!;
    const { choice: found } = this.#trees;
    for (const root of this.#problem.roots) if (found[root]! < 0) return undefined;
    return trim(this.#problem, found);
  }

  /** What does not depend on the victim stays as it is. */
  #keepOutside(victim: number, choice: Choice): void {
    const { children, childStart } = this.#problem;
    this.#given.fill(-1);
    const depends = new Set([victim]);
    for (let i = this.#selected.length - 1; i >= 0; i--) {
      const c = this.#selected[i]!;
      const node = choice[c]!;
      let isOutside = c !== victim;
      for (let k = childStart[node]!; isOutside && k < childStart[node + 1]!; k++) {
        if (depends.has(children[k]!)) isOutside = false;
      }
      if (isOutside) this.#given[c] = node;
      else depends.add(c);
    }
  }
}

export interface Trimmed extends Improved {
  /** Classes that the roots need, each before what it needs. */
  readonly selected: number[];
}

/** What the roots need of an acyclic choice. */
export function trim(problem: ExtractionProblem, from: Choice): Trimmed {
  const { children, childStart, classCount, cost } = problem;
  const choice = new Int32Array(classCount).fill(-1);
  const after: number[] = [];
  const next = new Int32Array(classCount);
  const stack: number[] = [];
  let total = 0;
  const enter = (c: number): void => {
    choice[c] = from[c]!;
    total += cost[from[c]!]!;
    next[c] = childStart[from[c]!]!;
    stack.push(c);
  };
  for (const root of problem.roots) {
    if (choice[root]! >= 0) continue;
    enter(root);
    while (stack.length > 0) {
      const c = stack[stack.length - 1]!;
      if (next[c]! < childStart[choice[c]! + 1]!) {
        const child = children[next[c]!]!;
        next[c] = next[c]! + 1;
        if (choice[child]! < 0) enter(child);
      } else {
        stack.pop();
        after.push(c);
      }
    }
  }
  return { choice, cost: total, selected: after.reverse() };
}

/** Differences below this are of the order of summation. */
export function tolerance(cost: number): number {
  return 1e-9 * Math.max(1, Math.abs(cost));
}
