/**
 * The search that the compiler uses. What is easy is solved exactly; on the rest the dual ascends while states
 * that no better solution can have are removed, and every sweep collapses a solution: variables are decided in
 * turn by reduced cost given those decided before. When the removal has made the rest narrow it is
 * solved exactly, and what stays wide is branched on. A bound, a solution and the gap between them are
 * known at every moment.
 *
 * Where no good solution is known yet, removal works under an assumption: "there is a solution within this much
 * of the bound". Either the assumption yields the optimum, or it is refuted and the bound has risen by that
 * much, and it is doubled.
 */
import { branchAndBound, defaultBranching, openStates } from "./branch.ts";
import { makeConsistent } from "./consistency.ts";
import { withoutDominated } from "./dominance.ts";
import {
  boundOf,
  continueDual,
  copyDual,
  type DualState,
  restrictDual,
  scaleFor,
  startDual,
} from "./dual.ts";
import { eliminate, planElimination } from "./eliminate.ts";
import { type Network, networkOf, toProblemStates } from "./network.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import type { Problem } from "./problem.ts";
import { moveMultipliers, offerRounded, polish } from "./rounding.ts";
import { dropSettled } from "./settle.ts";
import { sweepOnce } from "./sweep.ts";

/** Entries that an exact solution may touch: at once, and after states were removed. */
const directLimit = 1.2e8;
const laterLimit = 1.5e7;

export function collapse(problem: Problem, options: SolveOptions = {}): Outcome {
  return collapseFrom(problem, options).outcome;
}

/** With what a later solution of the same problem at other prices can start from. */
export interface CollapseResult {
  readonly outcome: Outcome;
  /** The dual after the opening, before any state was removed; absent where an exact method sufficed. */
  readonly dual?: DualState;
}

export function collapseFrom(
  problem: Problem,
  options: SolveOptions,
  before?: DualState,
): CollapseResult {
  const recorder = new Recorder(problem, options);
  const consistent = makeConsistent(networkOf(problem));
  if (consistent === undefined) {
    recorder.raise(Infinity);
    const reason = "the hard constraints leave a variable without a state";
    return { outcome: recorder.finish("collapse", reason) };
  }
  const { network, removed, work } = withoutDominated(consistent);
  recorder.count("dominated", removed);
  recorder.work += work;
  if (solveDirectly(network, recorder)) {
    return { outcome: recorder.finish("collapse", recorder.closing()) };
  }
  const dual =
    before === undefined ? startDual(network, scaleFor(network)) : continueDual(network, before);
  if (before === undefined) warmUp(dual, recorder);
  polish(dual, recorder);
  const opened = copyDual(dual);
  new Collapsing(recorder).run(dual);
  return { outcome: recorder.finish("collapse", recorder.closing()), dual: opened };
}

/** Sweeps without removal: what they reach serves later prices as well. */
function warmUp(dual: DualState, recorder: Recorder): void {
  const most = openingSweeps + (dual.network.budgets.length > 0 ? budgetSweeps : 0);
  for (let k = 0; k < most && !recorder.stops(); k++) {
    const sweep = sweepOnce(dual, k % 2 === 0, { best: Infinity, round: k >= 2 && k % 2 === 0 });
    recorder.work += sweep.work + dual.unary.length;
    if (sweep.rounded !== undefined) {
      moveMultipliers(dual, sweep.rounded, recorder);
      offerRounded(dual, sweep.rounded, recorder);
    }
    recorder.raise(boundOf(dual));
  }
}

/** Sweeps in which the prices of budgets settle, beside the opening. */
const budgetSweeps = 40;

function solveDirectly(network: Network, recorder: Recorder): boolean {
  if (network.budgets.length > 0) return false;
  const plan = planElimination(network, directLimit);
  if (plan === undefined) return false;
  const found = eliminate(network, plan);
  recorder.work += plan.cost;
  if (found.states !== undefined) recorder.offer(toProblemStates(network, found.states));
  recorder.raise(Infinity);
  return true;
}

/** A part of the search: which network, below which price, how deep in assumptions. */
interface Task {
  readonly dual: DualState;
  readonly cutoff: number;
  readonly depth: number;
}

/** Sweeps before the first state is removed, and before the first assumption. */
const openingSweeps = 6;

/** Sweeps that touch less than this may go on for long: a better bound saves many nodes. */
const cheapSweep = 1e6;
const cheapSweeps = 4000;
const deepest = 3;

class Collapsing {
  readonly #recorder: Recorder;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  run(dual: DualState): void {
    if (this.#search({ dual, cutoff: Infinity, depth: 0 })) this.#recorder.raise(Infinity);
  }

  /** True when there is nothing left that is cheaper than cutoff and best solution. */
  #search({ dual: start, cutoff, depth }: Task): boolean {
    const most = sweepWork(start) < cheapSweep ? cheapSweeps : depth === 0 ? openingSweeps : 200;
    const ascent = this.#ascend(start, cutoff, most);
    if (ascent === "settled") return true;
    if (ascent === "stopped") return false;
    const dual = ascent;
    const recorder = this.#recorder;
    const low = boundOf(dual);
    const limit = (): number => Math.min(cutoff, recorder.objective);
    // First guess: a sixteenth of what lies between bound and best solution.
    let step = Math.max(1, Math.ceil((Math.min(limit(), low * 1.05 + 16) - low) / 16));
    while (depth < deepest) {
      // What is left beyond a bold assumption costs a search of its own: better none is left.
      const last = low + 2 * step >= limit();
      const below = last ? limit() : low + step + 1;
      if (!last) recorder.count("assumptions");
      const next = { cutoff: below, depth: last ? deepest : depth + 1 };
      if (!this.#search({ dual: copyDual(dual), ...next })) return false;
      recorder.raise(Math.min(below, cutoff));
      if (recorder.done || below >= limit()) return true;
      step *= 3;
    }
    return branchAndBound(dual, recorder, { ...defaultBranching, cutoff });
  }

  /** Sweeps and removes until that stalls; `settled`: an exact method or the bound finished it. */
  #ascend(start: DualState, cutoff: number, most: number): DualState | "settled" | "stopped" {
    const recorder = this.#recorder;
    let dual = start;
    let stalled = 0;
    let planned = Infinity;
    for (let k = 0; k < most; k++) {
      if (recorder.done) return recorder.bound >= recorder.objective ? "settled" : "stopped";
      const before = dual.bound;
      const limit = Math.min(cutoff, recorder.objective);
      const sweep = sweepOnce(dual, k % 2 === 0, { best: limit, round: k % 4 < 2 });
      recorder.work += sweep.work + dual.unary.length;
      if (sweep.rounded !== undefined) offerRounded(dual, sweep.rounded, recorder);
      recorder.raise(Math.min(boundOf(dual), cutoff));
      if (boundOf(dual) >= Math.min(cutoff, recorder.objective)) return "settled";
      const gain = dual.bound - before;
      if (sweep.removed > 0.1 * openStates(dual)) {
        const smaller = restrictDual(dual, sweep.dead);
        recorder.count("removed", sweep.removed);
        if (smaller === undefined) return "settled";
        dual = dropSettled(smaller);
      }
      if (openStates(dual) < 0.8 * planned) {
        planned = openStates(dual);
        if (this.#finish(dual)) return "settled";
      }
      const gap = Math.min(limit, recorder.objective) * dual.scale - dual.bound;
      const worth = sweep.work < cheapSweep ? 0.001 : 0.01;
      stalled = gain > worth * (gap === Infinity ? 0 : gap) ? 0 : stalled + 1;
      if (stalled >= 4) break;
    }
    return dual;
  }

  /** Solves what is left if that is cheap. */
  #finish(dual: DualState): boolean {
    if (dual.network.budgets.length > 0) return false;
    const plan = planElimination(dual.network, laterLimit);
    if (plan === undefined) return false;
    const found = eliminate(dual.network, plan);
    this.#recorder.work += plan.cost;
    if (found.states !== undefined) {
      this.#recorder.offer(toProblemStates(dual.network, found.states));
    }
    return true;
  }
}

function sweepWork(dual: DualState): number {
  return dual.network.edges.reduce((sum, edge) => sum + edge.table.length, 0);
}
