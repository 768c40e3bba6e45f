/**
 * The independent judge of a solver's answer: objective, constraints and bound are worked out again
 * from the problem alone. Shares no code with the solvers (not even the pricing functions), so that one
 * mistake cannot hide on both sides.
 */
import type { Outcome } from "./outcome.ts";
import type { Problem } from "./problem.ts";

/** Every way in which the answer is false; empty when it holds. */
export function checkOutcome(problem: Problem, outcome: Outcome): string[] {
  const faults: string[] = [];
  const { solution, objective, bound, status } = outcome;
  if ((solution === undefined) !== (objective === undefined)) {
    faults.push("solution and objective do not come together");
  }
  if (Number.isNaN(bound)) faults.push("the bound is not a number");
  if (solution !== undefined && objective !== undefined) {
    faults.push(...checkSolution(problem, solution, objective));
    if (bound > objective) faults.push(`the bound ${bound} is above the objective ${objective}`);
  }
  if (status === "optimal" && bound !== objective) {
    faults.push(`called optimal with bound ${bound} and objective ${objective}`);
  }
  if (status === "infeasible" && solution !== undefined) faults.push("infeasible with a solution");
  if (status === "feasible" && solution === undefined) faults.push("feasible without a solution");
  return faults;
}

function checkSolution(problem: Problem, solution: ArrayLike<number>, objective: number): string[] {
  if (solution.length !== problem.variables.length) {
    return [`${solution.length} states for ${problem.variables.length} variables`];
  }
  const faults: string[] = [];
  let total = problem.offset;
  problem.variables.forEach((variable, i) => {
    const state = solution[i]!;
    if (!(state >= 0 && state < variable.prices.length)) {
      faults.push(`${variable.name} has no state ${state}`);
      return;
    }
    total += variable.prices[state]!;
    for (const exclusion of variable.exclusions ?? []) {
      if (exclusion.states.indexOf(state) >= 0) {
        faults.push(`${variable.name} breaks "${exclusion.constraint}"`);
      }
    }
  });
  if (faults.length > 0) return faults;
  for (const transition of problem.transitions) {
    const a = solution[transition.from]!;
    const b = solution[transition.to]!;
    const row = transition.fromClass ? transition.fromClass[a]! : a;
    const column = transition.toClass ? transition.toClass[b]! : b;
    total += transition.prices[row * transition.columns + column]!;
  }
  for (const budget of problem.budgets) {
    let used = 0;
    for (const { variable, amounts } of budget.uses) used += amounts[solution[variable]!]!;
    if (used > budget.capacity) {
      faults.push(`budget "${budget.name}" of ${budget.capacity} is exceeded: ${used}`);
    }
  }
  if (total === Infinity) faults.push("the solution contains a forbidden pair");
  if (total !== objective) faults.push(`the objective is ${total}, not ${objective}`);
  return faults;
}

/**
 * Compares with the exhaustive optimum of a small problem: `best` is its price, undefined when the
 * problem has no solution.
 */
export function checkAgainstOptimum(outcome: Outcome, best: number | undefined): string[] {
  if (best === undefined) {
    if (outcome.solution !== undefined) return ["a solution of a problem that has none"];
    return outcome.status === "feasible" || outcome.status === "optimal" ? ["not infeasible"] : [];
  }
  const faults: string[] = [];
  if (outcome.status === "infeasible") faults.push("called infeasible, has a solution");
  if (outcome.bound > best) faults.push(`the bound ${outcome.bound} is above the optimum ${best}`);
  if (outcome.objective !== undefined && outcome.objective < best) {
    faults.push(`the objective ${outcome.objective} is below the optimum ${best}`);
  }
  return faults;
}

/** The optimum by trying every assignment in turn; for problems of at most a few million of them. */
export function exhaustiveOptimum(problem: Problem): number | undefined {
  const count = problem.variables.length;
  const states = new Array<number>(count).fill(0);
  let best = Infinity;
  for (;;) {
    const price = judge(problem, states);
    if (price < best) best = price;
    let at = 0;
    while (at < count && ++states[at]! === problem.variables[at]!.prices.length) states[at++] = 0;
    if (at === count) return best === Infinity ? undefined : best;
  }
}

function judge(problem: Problem, states: readonly number[]): number {
  let total = problem.offset;
  for (let i = 0; i < states.length; i++) {
    const variable = problem.variables[i]!;
    if (variable.exclusions?.some((x) => x.states.includes(states[i]!))) return Infinity;
    total += variable.prices[states[i]!]!;
  }
  for (const t of problem.transitions) {
    const row = t.fromClass ? t.fromClass[states[t.from]!]! : states[t.from]!;
    const column = t.toClass ? t.toClass[states[t.to]!]! : states[t.to]!;
    total += t.prices[row * t.columns + column]!;
  }
  for (const b of problem.budgets) {
    let used = 0;
    for (const use of b.uses) used += use.amounts[states[use.variable]!]!;
    if (used > b.capacity) return Infinity;
  }
  return total;
}
