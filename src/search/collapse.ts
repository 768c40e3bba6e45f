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
import { branchAndBound, defaultBranching } from "./branch.ts";
import { makeConsistent } from "./consistency.ts";
import { boundOf, type DualState, restrictDual, scaleFor, startDual, sweepOnce } from "./dual.ts";
import { eliminate, planElimination } from "./eliminate.ts";
import { descend } from "./local.ts";
import { type Network, networkOf, toProblemStates } from "./network.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import type { Problem } from "./problem.ts";
import { dropSettled } from "./settle.ts";

/** Entries that an exact solution may touch: at once, and after states were removed. */
const directLimit = 1.2e8;
const laterLimit = 2e7;

export function collapse(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) {
    recorder.raise(Infinity);
    return recorder.finish("collapse", "the hard constraints leave a variable without a state");
  }
  if (!solveDirectly(network, recorder)) ascend(network, recorder);
  return recorder.finish("collapse", recorder.closing());
}

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

/** Dual ascent with removal; hands over to an exact method when that can finish. */
function ascend(network: Network, recorder: Recorder): void {
  let dual = startDual(network, scaleFor(network));
  let stalled = 0;
  let plannedSize = Infinity;
  for (let k = 0; !recorder.done; k++) {
    const before = dual.bound;
    const sweep = sweepOnce(dual, k % 2 === 0, { best: recorder.objective, round: k % 4 < 2 });
    recorder.work += sweep.work + dual.unary.length;
    if (sweep.rounded !== undefined) offerRounded(dual, sweep.rounded, recorder);
    recorder.raise(boundOf(dual));
    if (recorder.done) return;
    const states = stateCount(dual);
    if (sweep.removed > 0.1 * (states - dual.unary.length)) {
      const smaller = restrictDual(dual, sweep.dead);
      recorder.count("removed", sweep.removed);
      if (smaller === undefined) {
        recorder.raise(Infinity);
        return;
      }
      dual = dropSettled(smaller);
    }
    if (stateCount(dual) < 0.8 * plannedSize) {
      plannedSize = stateCount(dual);
      if (finishExactly(dual, recorder)) return;
    }
    const gap = recorder.objective * dual.scale - dual.bound;
    stalled = dual.bound - before > 0.01 * (gap === Infinity ? 0 : gap) ? 0 : stalled + 1;
    if (stalled >= 6) {
      branchAndBound(dual, recorder, defaultBranching);
      return;
    }
  }
}

function stateCount(dual: DualState): number {
  let count = 0;
  for (const prices of dual.unary) count += prices.length;
  return count;
}

function offerRounded(dual: DualState, states: Int32Array, recorder: Recorder): void {
  if (dual.network.budgets.length === 0) descend(dual.network, states);
  recorder.offer(toProblemStates(dual.network, states));
}

/** Solves what is left if that is cheap; the recorder then has the optimum. */
function finishExactly(dual: DualState, recorder: Recorder): boolean {
  if (dual.network.budgets.length > 0) return false;
  const plan = planElimination(dual.network, laterLimit);
  if (plan === undefined) return false;
  const found = eliminate(dual.network, plan);
  recorder.work += plan.cost;
  if (found.states !== undefined) recorder.offer(toProblemStates(dual.network, found.states));
  recorder.raise(Infinity);
  return true;
}
