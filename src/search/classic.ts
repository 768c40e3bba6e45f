/**
 * The collapse scheduler that came before, as a baseline: after the hard constraints the variable with the
 * most work takes its best state, and states whose penalty towards a decided neighbour passes a
 * threshold are dropped, outwards; then the variable of least entropy is decided, again and again. A
 * contradiction goes back to the last snapshot and takes the next state. Greedy: it has no bound of its own.
 *
 * Entropy is Shannon's, in bits, of the softmax of the scores. With threshold "auto" the first propagation
 * aims at removing 20 to 60 % of the states.
 */
import { networkOf } from "./network.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import { type ClassicScale, type Problem, type Transition, transitionPrice } from "./problem.ts";

export interface ClassicOptions extends SolveOptions {
  /** Penalty above which a neighbour's state is dropped. */
  readonly threshold?: number | "auto";
}

const defaultThreshold = 1.5;
const mostBacktracks = 10;

export function classic(problem: Problem, options: ClassicOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const run = new ClassicRun(problem, recorder, options.threshold ?? defaultThreshold);
  const solved = run.solve();
  recorder.count("removed", run.removed);
  recorder.count("backtracks", run.backtracks);
  const reason = solved ? "every variable is decided" : "contradiction after the last snapshot";
  return recorder.finish("classic", reason);
}

/** Prices in the units that the thresholds mean; problems without them use their own spread. */
export function classicScale(problem: Problem): ClassicScale {
  if (problem.classic !== undefined) return problem.classic;
  let most = 1;
  for (const t of problem.transitions) {
    for (const p of t.prices) if (p !== Infinity && p > most) most = p;
  }
  const weights = problem.variables.map((v) => {
    const finite = v.prices.filter((p) => p !== Infinity);
    return finite.reduce((a, b) => Math.min(a, b), Infinity);
  });
  // The largest conversion is worth 2.4: a change of layout, place and tile.
  return { penaltyPrice: most / 2.4, temperaturePrice: most, weights };
}

interface SnapshotOfStates {
  readonly alive: readonly Uint8Array[];
  readonly decided: Int32Array;
  readonly variable: number;
  readonly tried: number;
}

class ClassicRun {
  removed = 0;
  backtracks = 0;
  #threshold: number;
  readonly #auto: boolean;
  readonly #problem: Problem;
  readonly #recorder: Recorder;
  readonly #scale: ClassicScale;
  readonly #around: Transition[][];
  #alive: Uint8Array[];
  #decided: Int32Array;
  readonly #snapshots: SnapshotOfStates[] = [];

  constructor(problem: Problem, recorder: Recorder, threshold: number | "auto") {
    this.#problem = problem;
    this.#recorder = recorder;
    this.#auto = threshold === "auto";
    this.#threshold = threshold === "auto" ? defaultThreshold : threshold;
    this.#scale = classicScale(problem);
    this.#around = problem.variables.map(() => []);
    for (const t of problem.transitions) {
      this.#around[t.from]!.push(t);
      this.#around[t.to]!.push(t);
    }
    const { origin } = networkOf(problem);
    this.#alive = problem.variables.map((v, i) => {
      const marks = new Uint8Array(v.prices.length);
      for (const s of origin[i]!) marks[s] = 1;
      return marks;
    });
    this.#decided = new Int32Array(problem.variables.length).fill(-1);
  }

  solve(): boolean {
    if (this.#alive.some((marks) => !marks.includes(1))) return false;
    let next = this.#heaviest();
    let first = true;
    while (next >= 0) {
      this.#recorder.nodes++;
      const fits = this.#decide(next, this.#best(next));
      if (first && this.#auto && fits) this.#tune();
      first = false;
      if (!fits && !this.#goBack()) return false;
      next = this.#leastEntropy();
    }
    this.#recorder.offer(this.#decided);
    return this.#recorder.solution !== undefined;
  }

  #heaviest(): number {
    let best = -1;
    this.#scale.weights.forEach((w, i) => {
      if (best < 0 || w > this.#scale.weights[best]!) best = i;
    });
    return best;
  }

  #best(i: number): number {
    const { prices } = this.#problem.variables[i]!;
    let best = -1;
    for (let s = 0; s < prices.length; s++) {
      if (this.#alive[i]![s] === 1 && (best < 0 || prices[s]! < prices[best]!)) best = s;
    }
    return best;
  }

  /** Decides and propagates; false on a contradiction. */
  #decide(i: number, state: number): boolean {
    this.#snapshots.push({
      alive: this.#alive.map((marks) => marks.slice()),
      decided: this.#decided.slice(),
      variable: i,
      tried: state,
    });
    this.#decided[i] = state;
    this.#alive[i]!.fill(0);
    this.#alive[i]![state] = 1;
    return this.#propagate(i);
  }

  /** Breadth first from a decided variable; variables left with one state are decided too. */
  #propagate(start: number): boolean {
    const queue = [start];
    for (const i of queue) {
      for (const t of this.#around[i]!) {
        const j = t.from === i ? t.to : t.from;
        if (this.#decided[j]! >= 0) continue;
        const marks = this.#alive[j]!;
        this.#drop(t, i, j);
        const left = marks.reduce((a, b) => a + b, 0);
        if (left === 0) return false;
        if (left > 1) continue;
        this.#decided[j] = marks.indexOf(1);
        queue.push(j);
      }
    }
    return true;
  }

  /** Drops the states of j whose penalty towards i's state passes the threshold. */
  #drop(t: Transition, i: number, j: number): void {
    const marks = this.#alive[j]!;
    const state = this.#decided[i]!;
    for (let s = 0; s < marks.length; s++) {
      if (marks[s] === 0) continue;
      const price = t.from === i ? transitionPrice(t, state, s) : transitionPrice(t, s, state);
      this.#recorder.work++;
      // Prices are rounded to whole ones: a penalty that is the threshold is not above it.
      if (price <= this.#threshold * this.#scale.penaltyPrice + 1) continue;
      marks[s] = 0;
      this.removed++;
    }
  }

  /** Moves an automatic threshold by how much the first propagation removed. */
  #tune(): void {
    const total = this.#alive.reduce((sum, marks) => sum + marks.length, 0);
    const rate = this.removed / Math.max(1, total);
    if (rate < 0.2) this.#threshold *= 0.6 + 2 * rate;
    else if (rate > 0.6) this.#threshold *= 1 + 2 * (rate - 0.6);
  }

  /** The undecided variable of least entropy, -1 when all are decided. */
  #leastEntropy(): number {
    let best = -1;
    let least = Infinity;
    for (let i = 0; i < this.#alive.length; i++) {
      if (this.#decided[i]! >= 0) continue;
      const bits = this.#entropy(i);
      if (bits < least) {
        least = bits;
        best = i;
      }
    }
    return best;
  }

  #entropy(i: number): number {
    const prices = this.#problem.variables[i]!.prices.filter((_, s) => this.#alive[i]![s] === 1);
    return shannonBits(prices, this.#scale.temperaturePrice);
  }

  /** Returns to the last snapshot and forbids the state that was tried there. */
  #goBack(): boolean {
    for (let last = this.#snapshots.pop(); last !== undefined; last = this.#snapshots.pop()) {
      if (this.backtracks === mostBacktracks) return false;
      this.backtracks++;
      this.#alive = last.alive.map((marks) => marks.slice());
      this.#decided = last.decided.slice();
      this.#alive[last.variable]![last.tried] = 0;
      if (this.#alive[last.variable]!.includes(1)) return true;
    }
    return false;
  }
}

/** Shannon entropy of the softmax of negated prices, in bits. */
export function shannonBits(prices: Float64Array, temperature: number): number {
  const least = prices.reduce((a, b) => Math.min(a, b), Infinity);
  const weights = prices.map((p) => Math.exp((least - p) / temperature));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.reduce((bits, w) => (w > 0 ? bits - (w / sum) * Math.log2(w / sum) : bits), 0);
}
