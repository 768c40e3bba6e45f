/**
 * What choosing without looking at neighbours gives: every variable takes the state that is cheapest by itself,
 * as far as hard constraints let it. No bound: a baseline, with which the worth of pricing transitions is
 * measured. In: a problem. Out: the outcome at the problem's full prices.
 */
import { collapse } from "./collapse.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import type { Problem, Transition } from "./problem.ts";

export function greedy(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const transitions = problem.transitions.filter((t) => t.prices.includes(Infinity)).map(blind);
  const { observe: _, start: __, ...limits } = options;
  const alone = collapse({ ...problem, transitions }, { ...limits, gap: 0 });
  recorder.nodes = alone.nodes;
  recorder.work = alone.work;
  if (alone.status === "infeasible") recorder.raise(Infinity);
  if (alone.solution) recorder.offer(alone.solution);
  return recorder.finish("greedy", "each variable was chosen by its own prices");
}

/** Forbids what it forbids, and costs nothing. */
function blind(t: Transition): Transition {
  return { ...t, prices: t.prices.map((p) => (p === Infinity ? Infinity : 0)) };
}
