/** The two exact solvers by themselves: junction-tree dynamic programming, and branch and bound. */
import { branchAndBound, defaultBranching } from "./branch.ts";
import { makeConsistent } from "./consistency.ts";
import { scaleFor, startDual } from "./dual.ts";
import { eliminate, planElimination } from "./eliminate.ts";
import { networkOf, toProblemStates } from "./network.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import type { Problem } from "./problem.ts";

/** Entries of all tables together that fit into memory and patience. */
const tableLimit = 5e8;

/** Dynamic programming over the cliques of an elimination order; exact where the width allows it. */
export function junction(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) {
    recorder.raise(Infinity);
    return recorder.finish("junction", "the hard constraints leave a variable without a state");
  }
  if (network.budgets.length > 0) {
    return recorder.finish("junction", "junction trees cannot hold budgets over many variables");
  }
  const plan = planElimination(network, Math.min(tableLimit, options.work ?? tableLimit));
  if (plan === undefined) {
    return recorder.finish("junction", "the tables of the junction tree are too large");
  }
  const found = eliminate(network, plan);
  recorder.work += plan.cost;
  if (found.states !== undefined) recorder.offer(toProblemStates(network, found.states));
  recorder.raise(Infinity);
  return recorder.finish("junction", "dynamic programming over the junction tree is exact");
}

/** Best-first branch and bound from the start, without removal and rounding before it. */
export function bnb(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) {
    recorder.raise(Infinity);
    return recorder.finish("bnb", "the hard constraints leave a variable without a state");
  }
  // No exact tables: what is measured is the search itself.
  const branching = { ...defaultBranching, exactLimit: 0 };
  branchAndBound(startDual(network, scaleFor(network)), recorder, branching);
  return recorder.finish("bnb", recorder.closing());
}
