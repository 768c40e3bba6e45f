/**
 * A search that is asked again: after the price of a state has changed (a measured kernel replaces an
 * estimate) the next solution starts from the dual and the states of the last one.
 */
import { collapseFrom } from "./collapse.ts";
import type { DualState } from "./dual.ts";
import type { Outcome, SolveOptions } from "./outcome.ts";
import type { Assignment, Problem } from "./problem.ts";

export class WarmSearch {
  #problem: Problem;
  #dual: DualState | undefined;
  #solution: Assignment | undefined;

  constructor(problem: Problem) {
    this.#problem = problem;
  }

  get problem(): Problem {
    return this.#problem;
  }

  setPrice(variable: number, state: number, price: number): void {
    const variables = this.#problem.variables.slice();
    const prices = variables[variable]!.prices.slice();
    prices[state] = price;
    variables[variable] = { ...variables[variable]!, prices };
    this.#problem = { ...this.#problem, variables };
  }

  solve(options: SolveOptions = {}): Outcome {
    const start = this.#solution === undefined ? {} : { start: this.#solution };
    const { outcome, dual } = collapseFrom(this.#problem, { ...start, ...options }, this.#dual);
    this.#dual = dual;
    this.#solution = outcome.solution;
    return outcome;
  }
}
