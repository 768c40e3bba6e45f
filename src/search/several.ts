/**
 * More than one answer: the k cheapest solutions (Lawler 1972: each solution found splits what is left by
 * the first variable that differs; parts are solved in the order of their bounds, so most never are), and
 * the Pareto front of price against the amount that budgets take.
 */
import { collapse } from "./collapse.ts";
import { makeConsistent } from "./consistency.ts";
import { scaleFor, startDual } from "./dual.ts";
import { Heap } from "./heap.ts";
import { networkOf } from "./network.ts";
import type { Outcome, SolveOptions } from "./outcome.ts";
import { type Assignment, type Budget, type Problem, usageOf } from "./problem.ts";
import { sweepOnce } from "./sweep.ts";

export interface PricedSolution {
  readonly solution: Assignment;
  readonly objective: number;
}

export interface SeveralSolutions {
  readonly solutions: readonly PricedSolution[];
  /** Whether these are proven to be the cheapest, in order. */
  readonly proven: boolean;
}

interface Part {
  readonly problem: Problem;
  /** Variables before this one are fixed. */
  readonly from: number;
  readonly solved?: PricedSolution;
}

export function kBest(
  problem: Problem,
  count: number,
  options: SolveOptions = {},
): SeveralSolutions {
  const heap = new Heap<Part>();
  heap.push(-Infinity, { problem, from: 0 });
  const solutions: PricedSolution[] = [];
  let proven = true;
  while (solutions.length < count && heap.size > 0) {
    const part = heap.pop()!;
    if (part.solved === undefined) {
      const outcome = collapse(part.problem, options);
      proven &&= outcome.status === "optimal" || outcome.status === "infeasible";
      if (outcome.solution === undefined) continue;
      const solved = { solution: outcome.solution, objective: outcome.objective! };
      heap.push(solved.objective, { ...part, solved });
      continue;
    }
    solutions.push(part.solved);
    if (solutions.length < count) split(part, part.solved, heap);
  }
  return { solutions, proven };
}

/** The rest of a part without its best solution, as one part for each variable that may differ first. */
function split({ problem, from }: Part, best: PricedSolution, heap: Heap<Part>): void {
  const floors = otherwiseFloors(problem, best.solution);
  let fixed = problem;
  for (let i = from; i < problem.variables.length; i++) {
    const state = best.solution[i]!;
    const size = problem.variables[i]!.prices.length;
    const others = Array.from({ length: size }, (_, s) => s).filter((s) => s !== state);
    if (floors[i]! < Infinity) {
      const part = { problem: exclude(fixed, i, [state]), from: i };
      heap.push(Math.max(best.objective, floors[i]!), part);
    }
    fixed = exclude(fixed, i, others);
  }
}

function exclude(problem: Problem, i: number, states: readonly number[]): Problem {
  const variables = problem.variables.slice();
  const old = variables[i]!;
  const exclusion = { constraint: "another solution", states };
  variables[i] = { ...old, exclusions: [...(old.exclusions ?? []), exclusion] };
  return { ...problem, variables };
}

const floorSweeps = 8;

/** Per variable, a price that no solution with another state than the given one stays below. */
function otherwiseFloors(problem: Problem, solution: Assignment): Float64Array {
  const floors = new Float64Array(problem.variables.length).fill(-Infinity);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) return floors.fill(Infinity);
  const dual = startDual(network, scaleFor(network));
  for (let k = 0; k < floorSweeps; k++) {
    const sweep = sweepOnce(dual, k % 2 === 0, { best: Infinity, round: false, floors: true });
    sweep.floors!.forEach((prices, i) => {
      let least = Infinity;
      for (let s = 0; s < prices.length; s++) {
        if (network.origin[i]![s] !== solution[i] && prices[s]! < least) least = prices[s]!;
      }
      floors[i] = Math.max(floors[i]!, Math.ceil(least / dual.scale));
    });
  }
  return floors;
}

export interface ParetoPoint extends PricedSolution {
  /** Largest amount that any of the budgets takes. */
  readonly amount: number;
  readonly bound: number;
}

/**
 * Price against amount: budgets of this name (all moments of it) are tightened from what the cheapest
 * solution takes down to where nothing fits; at most `points` solutions. A point's price is proven
 * where its bound equals it.
 */
export function paretoFront(
  problem: Problem,
  budget: string,
  { points = 32, ...options }: SolveOptions & { readonly points?: number } = {},
): ParetoPoint[] {
  const mine = (b: Budget): boolean => b.name === budget || b.name.startsWith(`${budget} at `);
  const amountOf = (s: Assignment): number =>
    Math.max(0, ...problem.budgets.filter(mine).map((b) => usageOf(b, s)));
  const within = (capacity: number): Outcome =>
    collapse(
      { ...problem, budgets: problem.budgets.map((b) => (mine(b) ? { ...b, capacity } : b)) },
      options,
    );
  const front: ParetoPoint[] = [];
  let capacity = Math.max(0, ...problem.budgets.filter(mine).map((b) => b.capacity));
  let step = 1;
  while (front.length < points) {
    const { solution, objective, bound } = within(capacity);
    if (solution === undefined || objective === undefined) break;
    const amount = amountOf(solution);
    if (front.at(-1)?.objective === objective) front.pop();
    front.push({ solution, objective, amount, bound });
    if (front.length === 1) step = Math.max(1, Math.floor(amount / (2 * points)));
    capacity = amount - step;
    if (capacity < 0) break;
  }
  return front;
}
