/**
 * The best placement of a small graph, by branch and bound over (next task, its device). Every schedule
 * without needless waiting is reached by listing its tasks by start time, so branches whose starts go
 * back are cut; so are branches whose bound (longest remaining path, remaining work) reaches the best
 * known, and the second of two empty devices that are alike.
 */
import { shortestTimes, tails } from "./bounds.ts";
import { type PlaceProblem, transferNs } from "./problem.ts";
import type { Placement } from "./schedule.ts";

export interface ExactAnswer {
  /** Better than the given one; undefined when there is none. */
  readonly placement?: Placement;
  /** The search ended: nothing better exists. */
  readonly proved: boolean;
}

export function searchExactly(
  problem: PlaceProblem,
  incumbentNs: number,
  budget: number,
): ExactAnswer {
  const search = new Search(problem, incumbentNs, budget);
  search.extend(0, 0);
  return { ...(search.best && { placement: search.best }), proved: search.budget > 0 };
}

class Search {
  readonly #problem: PlaceProblem;
  readonly #shortest: readonly number[];
  readonly #tail: readonly number[];
  readonly #alike: readonly (readonly number[])[];
  readonly #order: number[] = [];
  readonly #deviceOf: number[];
  readonly #finish: number[];
  readonly #waiting: number[];
  readonly #users: number[][];
  readonly #free: number[];
  readonly #left: number[];
  readonly #taken: number[];
  #rest: number;
  #bestNs: number;
  budget: number;
  best: Placement | undefined;

  constructor(problem: PlaceProblem, incumbentNs: number, budget: number) {
    const { tasks, devices } = problem;
    this.#problem = problem;
    this.#shortest = shortestTimes(problem);
    this.#tail = tails(problem, this.#shortest);
    this.#alike = devices.map((_, d) =>
      devices.map((__, e) => e).filter((e) => e < d && alike(problem, d, e)),
    );
    this.#deviceOf = tasks.map(() => -1);
    this.#finish = tasks.map(() => 0);
    this.#waiting = tasks.map((t) => t.inputs.length);
    this.#users = tasks.map(() => []);
    tasks.forEach((task, t) => {
      for (const { from } of task.inputs) this.#users[from]!.push(t);
    });
    this.#free = devices.map(() => 0);
    this.#left = devices.map((d) => d.memoryBytes);
    this.#taken = devices.map(() => 0);
    this.#rest = this.#shortest.reduce((a, b) => a + b, 0);
    this.#bestNs = incumbentNs;
    this.budget = budget;
  }

  extend(lastStart: number, makespan: number): void {
    if (this.budget <= 0) return;
    this.budget--;
    const { tasks, devices } = this.#problem;
    if (this.#order.length === tasks.length) {
      if (makespan >= this.#bestNs) return;
      this.#bestNs = makespan;
      this.best = { deviceOf: [...this.#deviceOf], order: [...this.#order] };
      return;
    }
    if (this.#boundNs(lastStart) >= this.#bestNs) return;
    for (let t = 0; t < tasks.length; t++) {
      if (this.#deviceOf[t]! >= 0 || this.#waiting[t]! > 0) continue;
      for (let d = 0; d < devices.length; d++) this.#try(t, d, { lastStart, makespan });
    }
  }

  /** Devices work from where they are free, at the earliest from the last start, on what is left. */
  #boundNs(lastStart: number): number {
    let ready = this.#rest;
    for (const free of this.#free) ready += Math.max(free, lastStart);
    let bound = ready / this.#free.length;
    for (let t = 0; t < this.#deviceOf.length; t++) {
      if (this.#deviceOf[t]! >= 0) continue;
      let start = lastStart;
      for (const { from } of this.#problem.tasks[t]!.inputs) {
        if (this.#deviceOf[from]! >= 0) start = Math.max(start, this.#finish[from]!);
      }
      bound = Math.max(bound, start + this.#tail[t]!);
    }
    return bound;
  }

  #try(t: number, d: number, at: { readonly lastStart: number; readonly makespan: number }): void {
    const task = this.#problem.tasks[t]!;
    const time = task.timeNs[d]!;
    if (time === Infinity || task.memoryBytes > this.#left[d]!) return;
    if (this.#taken[d] === 0 && this.#alike[d]!.some((e) => this.#taken[e] === 0)) return;
    let start = this.#free[d]!;
    for (const { from, bytes } of task.inputs) {
      const way = transferNs(this.#problem, this.#deviceOf[from]!, d, bytes);
      start = Math.max(start, this.#finish[from]! + way);
    }
    if (start < at.lastStart || start + this.#tail[t]! - this.#shortest[t]! + time >= this.#bestNs)
      return;
    const freeBefore = this.#free[d]!;
    this.#deviceOf[t] = d;
    this.#finish[t] = start + time;
    this.#free[d] = start + time;
    this.#left[d]! -= task.memoryBytes;
    this.#taken[d]!++;
    this.#rest -= this.#shortest[t]!;
    this.#order.push(t);
    for (const user of this.#users[t]!) this.#waiting[user]!--;
    this.extend(start, Math.max(at.makespan, start + time));
    for (const user of this.#users[t]!) this.#waiting[user]!++;
    this.#order.pop();
    this.#rest += this.#shortest[t]!;
    this.#taken[d]!--;
    this.#left[d]! += task.memoryBytes;
    this.#free[d] = freeBefore;
    this.#deviceOf[t] = -1;
  }
}

/** Swapping the two devices changes nothing. */
function alike({ tasks, devices, transfers }: PlaceProblem, a: number, b: number): boolean {
  if (devices[a]!.memoryBytes !== devices[b]!.memoryBytes) return false;
  if (tasks.some((t) => t.timeNs[a] !== t.timeNs[b])) return false;
  const same = (i: number, j: number, k: number, l: number): boolean => {
    const [x, y] = [transfers[i]![j]!, transfers[k]![l]!];
    return x.latencyNs === y.latencyNs && x.bytesPerNs === y.bytesPerNs;
  };
  return devices.every((_, c) => {
    if (c === a) return same(a, b, b, a);
    return c === b || (same(a, c, b, c) && same(c, a, c, b));
  });
}
