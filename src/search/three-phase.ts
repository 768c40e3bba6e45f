/**
 * The three-phase search of the prior systems, by name: prune by a bound of each state alone (its roofline), prune
 * states that a cheaper one can replace whatever the neighbours do (symmetry and dominance), rank what is
 * left by reduced cost and keep the best of each variable. The exact solver then decides among
 * those. Every phase counts what it removed; the first two never remove the optimum, the third may.
 */
import { collapse } from "./collapse.ts";
import { makeConsistent } from "./consistency.ts";
import { markDominated } from "./dominance.ts";
import { reducedPrices, scaleFor, startDual } from "./dual.ts";
import { type Network, networkOf, noMarks, restrict } from "./network.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import type { Problem } from "./problem.ts";
import { sweepOnce } from "./sweep.ts";

/** States that the third phase keeps. */
const kept = 20;

export function threePhase(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) {
    recorder.raise(Infinity);
    return recorder.finish("threephase", "the hard constraints leave a variable without a state");
  }
  const start = network.unary.reduce((sum, prices) => sum + prices.length, 0);
  recorder.count("states", start);
  const [roofline, bound] = phase(network, recorder, { name: "roofline", mark: markHopeless });
  const [symmetry] = phase(roofline, recorder, { name: "symmetry", mark: markReplaceable });
  const [ranked] = phase(symmetry, recorder, { name: "occupancy", mark: markRanked });
  const small = withStates(problem, ranked);
  const outcome = collapse(small, options);
  if (outcome.solution !== undefined) recorder.offer(outcome.solution);
  recorder.nodes += outcome.nodes;
  recorder.work += outcome.work;
  recorder.raise(bound);
  return recorder.finish("threephase", `the best ${kept} states of each variable were searched`);
}

type Mark = (network: Network, dead: readonly Uint8Array[], recorder: Recorder) => number;

/** Removes what `mark` marks; gives the smaller network and the bound that marking came by. */
function phase(
  network: Network,
  recorder: Recorder,
  { name, mark }: { readonly name: string; readonly mark: Mark },
): readonly [Network, number] {
  const dead = noMarks(network);
  const bound = mark(network, dead, recorder);
  const removed = dead.reduce((sum, marks) => sum + marks.reduce((a, b) => a + b, 0), 0);
  recorder.count(`${name} removed`, removed);
  return [restrict(network, dead), bound];
}

/** States whose price with the least of all else passes a solution that is known. */
function markHopeless(network: Network, dead: readonly Uint8Array[], recorder: Recorder): number {
  const dual = startDual(network, scaleFor(network));
  const first = sweepOnce(dual, true, { best: Infinity, round: network.budgets.length === 0 });
  recorder.work += first.work;
  if (first.rounded !== undefined) {
    const states = recorder.problem.variables.map(
      (_, i) => network.origin[i]![first.rounded![i]!]!,
    );
    recorder.offer(Int32Array.from(states));
  }
  const back = sweepOnce(dual, false, { best: recorder.objective + 1, round: false });
  recorder.work += back.work;
  back.dead.forEach((marks, i) => {
    dead[i]!.set(marks);
  });
  return Math.ceil(dual.bound / dual.scale);
}

function markReplaceable(
  network: Network,
  dead: readonly Uint8Array[],
  recorder: Recorder,
): number {
  recorder.work += markDominated(network, dead).work;
  return 0;
}

function markRanked(network: Network, dead: readonly Uint8Array[], recorder: Recorder): number {
  const dual = startDual(network, scaleFor(network));
  recorder.work += sweepOnce(dual, true, { best: Infinity, round: false }).work;
  recorder.work += sweepOnce(dual, false, { best: Infinity, round: false }).work;
  for (let i = 0; i < dead.length; i++) {
    const prices = reducedPrices(dual, i);
    const order = Array.from(prices, (_, s) => s).sort((a, b) => prices[a]! - prices[b]! || a - b);
    for (const s of order.slice(kept)) dead[i]![s] = 1;
  }
  return 0;
}

/** The problem with only the states that the network has left. */
function withStates(problem: Problem, network: Network): Problem {
  const variables = problem.variables.map((variable, i) => {
    const alive = new Set(network.origin[i]!);
    const states = Array.from(variable.prices, (_, s) => s).filter((s) => !alive.has(s));
    const exclusions = [...(variable.exclusions ?? []), { constraint: "three phases", states }];
    return { ...variable, exclusions };
  });
  return { ...problem, variables };
}
