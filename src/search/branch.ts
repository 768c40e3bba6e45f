/**
 * Branch and bound on what bounds and fixing leave. Open nodes wait in a heap, the lowest bound first; each
 * is explored depth first for a while and what is then open returns to the heap (hybrid best-first search,
 * Allouche et al. 2015), so that the global bound is known at every moment. At a node the dual ascends,
 * states that cannot improve are removed, hard constraints propagate, and once the rest has low width it
 * is solved exactly. Decisions take the variable at which a rounded solution costs most beyond the bound, and
 * after many failures the one that failed most for the fewest states left, the last conflict's first (Boussemart
 * et al. 2004; Lecoutre et al. 2009); its cheapest reduced cost is the state tried.
 */
import { boundOf, copyDual, type DualState, reducedPrices, restrictDual } from "./dual.ts";
import { eliminate, planElimination } from "./eliminate.ts";
import { Heap } from "./heap.ts";
import { noMarks, toProblemStates } from "./network.ts";
import type { Recorder } from "./outcome.ts";
import { offerRounded } from "./rounding.ts";
import { dropSettled } from "./settle.ts";
import { type Sweep, sweepOnce } from "./sweep.ts";

export interface BranchOptions {
  /** Entries that an exact solution of a node's rest may touch. */
  readonly exactLimit: number;
  /** Sweeps at a node. */
  readonly sweeps: number;
  /** Only solutions cheaper than this are looked for. */
  readonly cutoff: number;
  /** Work units of the recorder at which to give up. */
  readonly workEnd: number;
}

export const defaultBranching: BranchOptions = {
  exactLimit: 200_000,
  sweeps: 12,
  cutoff: Infinity,
  workEnd: Infinity,
};

/** A choice: this state of the problem's variable, or all but it. */
interface Decision {
  readonly variable: number;
  readonly state: number;
  readonly taken: boolean;
}

interface Open {
  readonly bound: number;
  readonly decisions: readonly Decision[];
}

/** A node on the way down: its dual is undefined while it waits in the heap. */
interface Frame extends Open {
  readonly dual: DualState;
}

/**
 * Searches the whole of the dual's network; the recorder has the answer. True: there is nothing cheaper than
 * cutoff and best solution; false: work or patience ended.
 */
export function branchAndBound(
  root: DualState,
  recorder: Recorder,
  options: BranchOptions,
): boolean {
  return new Branching(root, recorder, options).run();
}

class Branching {
  readonly #root: DualState;
  readonly #recorder: Recorder;
  readonly #options: BranchOptions;
  readonly #heap = new Heap<Open>();
  readonly #failures: Float64Array;
  #lastConflict = -1;
  /** Nodes that failed, all together. */
  #failed = 0;
  #backtracks = 0;
  #patience = 64;

  constructor(root: DualState, recorder: Recorder, options: BranchOptions) {
    this.#root = root;
    this.#recorder = recorder;
    this.#options = options;
    this.#failures = new Float64Array(recorder.problem.variables.length).fill(1);
    for (const t of recorder.problem.transitions) {
      this.#failures[t.from]!++;
      this.#failures[t.to]!++;
    }
  }

  run(): boolean {
    const recorder = this.#recorder;
    this.#heap.push(boundOf(this.#root), { bound: boundOf(this.#root), decisions: [] });
    while (this.#heap.least < this.#limit && !this.#stops) {
      recorder.raise(this.#heap.least);
      if (recorder.done) return true;
      const open = this.#heap.pop()!;
      const dual = this.#enter(open);
      if (dual !== undefined) this.#descend({ ...open, dual });
    }
    if (this.#heap.least < this.#limit) return false;
    recorder.raise(this.#limit);
    return true;
  }

  /** Price that a solution must stay below to be of use. */
  get #limit(): number {
    return Math.min(this.#options.cutoff, this.#recorder.objective);
  }

  get #stops(): boolean {
    return this.#recorder.done || this.#recorder.work >= this.#options.workEnd;
  }

  /** The root's dual under the decisions of an open node. */
  #enter(open: Open): DualState | undefined {
    const { network } = this.#root;
    const dead = noMarks(network);
    for (const { variable, state, taken } of open.decisions) {
      const i = network.variables.indexOf(variable);
      const origin = network.origin[i]!;
      for (let s = 0; s < origin.length; s++) if ((origin[s] === state) !== taken) dead[i]![s] = 1;
    }
    return restrictDual(copyDual(this.#root), dead);
  }

  /** Depth first below one open node until patience ends; what stays open goes to the heap. */
  #descend(first: Frame): void {
    const stack: Frame[] = [first];
    this.#backtracks = 0;
    while (stack.length > 0) {
      const frame = stack.pop()!;
      if (this.#stops || this.#backtracks > this.#patience) {
        this.#heap.push(frame.bound, { bound: frame.bound, decisions: frame.decisions });
        continue;
      }
      this.#recorder.nodes++;
      const dual = this.#reduce(frame.dual);
      if (dual === undefined) {
        this.#fail(frame);
        continue;
      }
      this.#branch(stack, frame, dual);
    }
    this.#patience = Math.min(8192, this.#patience * 1.2);
  }

  #fail(frame: Frame): void {
    this.#backtracks++;
    this.#recorder.count("backtracks");
    const last = frame.decisions.at(-1);
    if (last === undefined) return;
    this.#failed++;
    this.#failures[last.variable]!++;
    this.#lastConflict = last.variable;
  }

  #branch(stack: Frame[], { decisions }: Frame, dual: DualState): void {
    const i = this.#choose(dual);
    const prices = reducedPrices(dual, i);
    let best = 0;
    for (let s = 1; s < prices.length; s++) if (prices[s]! < prices[best]!) best = s;
    const variable = dual.network.variables[i]!;
    const state = dual.network.origin[i]![best]!;
    const bound = boundOf(dual);
    for (const taken of [false, true]) {
      const dead = noMarks(dual.network);
      if (taken) dead[i]!.fill(1);
      dead[i]![best] = taken ? 0 : 1;
      const child = restrictDual(copyDual(dual), dead);
      const next = [...decisions, { variable, state, taken }];
      if (child === undefined) this.#fail({ bound, decisions: next, dual });
      else stack.push({ bound, decisions: next, dual: child });
    }
  }

  /**
   * Until as many nodes have failed as there are variables, there is little to learn from: the variable with the
   * largest share of what a rounded solution costs beyond the bound. Then the one that failed most.
   */
  #choose(dual: DualState): number {
    const { variables } = dual.network;
    if (this.#failed <= this.#failures.length) {
      const states = this.#round(dual);
      return largest(dual, (i) => excessAt(dual, states, i));
    }
    const last = variables.indexOf(this.#lastConflict);
    if (last >= 0 && dual.unary[last]!.length > 1) return last;
    return largest(dual, (i) => this.#failures[variables[i]!]! / dual.unary[i]!.length);
  }

  #round(dual: DualState): Int32Array {
    const { rounded, work } = sweepOnce(dual, true, { best: Infinity, round: true });
    this.#recorder.work += work + dual.unary.length;
    if (rounded === undefined) return new Int32Array(dual.unary.length);
    const states = rounded.slice();
    offerRounded(dual, rounded, this.#recorder);
    return states;
  }

  /** Ascends, fixes and propagates until that stalls; undefined when the node is finished. */
  #reduce(start: DualState): DualState | undefined {
    let dual = start;
    const recorder = this.#recorder;
    for (let k = 0; k < this.#options.sweeps; k++) {
      const before = dual.bound;
      const sweep = sweepOnce(dual, k % 2 === 0, { best: this.#limit, round: k === 0 });
      recorder.work += sweep.work + dual.unary.length;
      if (boundOf(dual) >= this.#limit) return undefined;
      if (sweep.rounded !== undefined) offerRounded(dual, sweep.rounded, recorder);
      const stalls = k % 2 === 1 && this.#stalls(dual, dual.bound - before, sweep);
      const last = stalls || k === this.#options.sweeps - 1;
      // Slicing tables costs about as much as a sweep: a few states wait for company.
      if (sweep.removed > (last ? 0 : 0.15 * openStates(dual))) {
        const smaller = restrictDual(dual, sweep.dead);
        if (smaller === undefined) return undefined;
        dual = dropSettled(smaller);
        recorder.count("removed", sweep.removed);
      }
      if (stalls) break;
    }
    return this.#solveExactly(dual) ? undefined : dual;
  }

  #stalls(dual: DualState, gain: number, sweep: Sweep): boolean {
    if (sweep.removed > 0.05 * openStates(dual)) return false;
    const gap = this.#limit * dual.scale - dual.bound;
    return gain <= (gap === Infinity ? 0 : gap * 0.03);
  }

  /** True when the node is settled by an exact solution or has one state a variable. */
  #solveExactly(dual: DualState): boolean {
    const { network } = dual;
    if (network.budgets.length > 0) {
      if (network.unary.some((prices) => prices.length > 1)) return false;
      this.#recorder.offer(toProblemStates(network, new Int32Array(network.unary.length)));
      return true;
    }
    const plan = planElimination(network, this.#options.exactLimit);
    if (plan === undefined) return false;
    const found = eliminate(network, plan);
    this.#recorder.work += plan.cost;
    if (found.states !== undefined) this.#recorder.offer(toProblemStates(network, found.states));
    return true;
  }
}

/** States beside the one that each variable must have. */
export function openStates(dual: DualState): number {
  let count = 0;
  for (const prices of dual.unary) count += prices.length - 1;
  return count;
}

/** The open variable of the largest score. */
function largest(dual: DualState, score: (i: number) => number): number {
  let best = -1;
  let most = -Infinity;
  for (let i = 0; i < dual.unary.length; i++) {
    if (dual.unary[i]!.length < 2) continue;
    const found = score(i);
    if (found <= most) continue;
    best = i;
    most = found;
  }
  return best;
}

/**
 * What the states at a variable and half of what those along its edges cost beyond the bound. Summed over the
 * variables it is the distance of the states to the bound; a distance that no bound can close has a place.
 */
function excessAt(dual: DualState, states: Int32Array, i: number): number {
  let excess = dual.unary[i]![states[i]!]!;
  for (const e of dual.network.incident[i]!) {
    const edge = dual.network.edges[e]!;
    const row = edge.classA[states[edge.a]!]!;
    const column = edge.classB[states[edge.b]!]!;
    const toA = dual.toA[e]![row]!;
    const toB = dual.toB[e]![column]!;
    excess += edge.a === i ? toA : toB;
    excess += (edge.table[row * edge.columns + column]! - toA - toB) / 2;
  }
  return excess;
}
