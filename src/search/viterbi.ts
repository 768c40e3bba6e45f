/**
 * Textbook dynamic programming along a chain (Viterbi 1967), every state against every state. The exact
 * baseline for chains; refuses any other shape, and budgets.
 */
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import { type Problem, type Transition, transitionPrice } from "./problem.ts";

export function viterbi(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const chain = orderChain(problem);
  if (chain === undefined || problem.budgets.length > 0) {
    return recorder.finish("viterbi", "viterbi solves chains without budgets only");
  }
  const prices = problem.variables.map((v) => {
    const allowed = v.prices.slice();
    for (const x of v.exclusions ?? []) for (const s of x.states) allowed[s] = Infinity;
    return allowed;
  });
  const came: Int32Array[] = [];
  let best = prices[chain.order[0]!]!;
  chain.steps.forEach((step, k) => {
    const next = prices[chain.order[k + 1]!]!.slice();
    came.push(advance(best, next, step));
    recorder.work += best.length * next.length;
    best = next;
  });
  const assignment = new Int32Array(problem.variables.length);
  let state = best.indexOf(Math.min(...best));
  for (let k = chain.order.length - 1; k >= 0; k--) {
    assignment[chain.order[k]!] = state;
    if (k > 0) state = came[k - 1]![state]!;
  }
  recorder.offer(assignment);
  recorder.raise(Infinity);
  return recorder.finish("viterbi", "dynamic programming is exact on a chain");
}

interface Step {
  readonly transitions: readonly Transition[];
  /** Whether `from` is the earlier end. */
  readonly onward: readonly boolean[];
}

/** Adds to each state of `next` the cheapest way to it; the way taken is returned. */
function advance(best: Float64Array, next: Float64Array, step: Step): Int32Array {
  const came = new Int32Array(next.length);
  for (let s = 0; s < next.length; s++) {
    let least = Infinity;
    for (let p = 0; p < best.length; p++) {
      let price = best[p]!;
      for (let k = 0; k < step.transitions.length; k++) {
        const t = step.transitions[k]!;
        price += step.onward[k] ? transitionPrice(t, p, s) : transitionPrice(t, s, p);
      }
      if (price >= least) continue;
      least = price;
      came[s] = p;
    }
    next[s]! += least;
  }
  return came;
}

interface Chain {
  readonly order: readonly number[];
  readonly steps: readonly Step[];
}

/** The variables in order along the chain; undefined when the problem is none. */
export function orderChain(problem: Problem): Chain | undefined {
  const near = problem.variables.map(() => new Map<number, Transition[]>());
  for (const t of problem.transitions) {
    for (const [i, j] of [[t.from, t.to] as const, [t.to, t.from] as const]) {
      near[i]!.set(j, [...(near[i]!.get(j) ?? []), t]);
    }
  }
  if (near.some((n) => n.size > 2)) return undefined;
  const start = near.findIndex((n) => n.size < 2);
  if (start < 0) return undefined;
  const order = [start];
  const steps: Step[] = [];
  const seen = new Set(order);
  for (let at = start; ; ) {
    const next = [...near[at]!.keys()].find((j) => !seen.has(j));
    if (next === undefined) break;
    const transitions = near[at]!.get(next)!;
    steps.push({ transitions, onward: transitions.map((t) => t.to === next) });
    seen.add(next);
    order.push(next);
    at = next;
  }
  return order.length === problem.variables.length ? { order, steps } : undefined;
}
