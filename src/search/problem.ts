/**
 * What the search decides about: variables with priced states, transitions between two of them,
 * and budgets over many. Prices are integers (picoseconds, or any unit a caller counts in), so sums
 * and bounds are exact; Infinity forbids. Nothing here knows what a state means.
 *
 * A transition may be priced through interface classes: its price depends on the class of the state
 * at each end, and the table has one row a class. A thousand states by a thousand then costs no more
 * than the few dozen classes do.
 */
import { invariant } from "../support/invariant.ts";

/** States of a variable that a named constraint forbids. */
export interface Exclusion {
  readonly constraint: string;
  readonly states: readonly number[];
}

export interface Variable {
  readonly name: string;
  /** One price a state: a non-negative or negative integer, or Infinity. */
  readonly prices: Float64Array;
  /** Names of the states; `#3` where absent. */
  readonly states?: readonly string[];
  readonly exclusions?: readonly Exclusion[];
}

/** Price of a pair of states of two variables. */
export interface Transition {
  readonly from: number;
  readonly to: number;
  /** Class of each state of `from`; absent: every state is its own class. */
  readonly fromClass?: Int32Array;
  readonly toClass?: Int32Array;
  /** Classes of `to`: the table has rows of this length. */
  readonly columns: number;
  readonly prices: Float64Array;
  /** What forbids the pairs priced Infinity. */
  readonly constraint?: string;
}

/** Sum of the amounts of the chosen states may not exceed the capacity. */
export interface Budget {
  readonly name: string;
  readonly capacity: number;
  readonly uses: readonly BudgetUse[];
}

export interface BudgetUse {
  readonly variable: number;
  /** One non-negative integer a state. */
  readonly amounts: Float64Array;
}

/** How prices read for a person: price × perPrice, and whether more is better. */
export interface Unit {
  readonly name: string;
  readonly perPrice: number;
  /** The problem was given as scores: prices are negated scores. */
  readonly scores?: boolean;
}

/** Prices that the classic heuristic thinks in: one unit of penalty, one unit of score. */
export interface ClassicScale {
  readonly penaltyPrice: number;
  readonly temperaturePrice: number;
  /** Work of each variable: the largest is decided first. */
  readonly weights: readonly number[];
}

export interface Problem {
  readonly name: string;
  readonly variables: readonly Variable[];
  readonly transitions: readonly Transition[];
  readonly budgets: readonly Budget[];
  /** Price of every solution beside the rest. */
  readonly offset: number;
  readonly unit?: Unit;
  readonly classic?: ClassicScale;
}

/** One state a variable. */
export type Assignment = Int32Array;

export function stateName(variable: Variable, state: number): string {
  return variable.states?.[state] ?? `#${state}`;
}

export function classAt(classes: Int32Array | undefined, state: number): number {
  return classes === undefined ? state : classes[state]!;
}

/** Price of a transition between two states. */
export function transitionPrice(t: Transition, from: number, to: number): number {
  return t.prices[classAt(t.fromClass, from) * t.columns + classAt(t.toClass, to)]!;
}

/** Price of an assignment without its budgets; Infinity when something forbids it. */
export function priceOf(problem: Problem, assignment: Assignment): number {
  let price = problem.offset;
  for (const [i, variable] of problem.variables.entries())
    price += variable.prices[assignment[i]!]!;
  for (const t of problem.transitions) {
    price += transitionPrice(t, assignment[t.from]!, assignment[t.to]!);
  }
  return isExcluded(problem, assignment) ? Infinity : price;
}

function isExcluded(problem: Problem, assignment: Assignment): boolean {
  return problem.variables.some((variable, i) =>
    variable.exclusions?.some((x) => x.states.includes(assignment[i]!)),
  );
}

/** Amount that an assignment takes of a budget. */
export function usageOf(budget: Budget, assignment: Assignment): number {
  let sum = 0;
  for (const use of budget.uses) sum += use.amounts[assignment[use.variable]!]!;
  return sum;
}

export function keepsBudgets(problem: Problem, assignment: Assignment): boolean {
  return problem.budgets.every((b) => usageOf(b, assignment) <= b.capacity);
}

/** A price as its unit reads. */
export function readable(problem: Problem, price: number): number {
  const unit = problem.unit;
  if (unit === undefined) return price;
  return unit.scores ? -price * unit.perPrice : price * unit.perPrice;
}

/** Programming errors of whoever made the problem: sizes that do not fit, prices that are no integers. */
export function assertWellFormed(problem: Problem): void {
  for (const v of problem.variables) {
    invariant(v.prices.length > 0, () => `variable ${v.name} has no state`);
    invariant(v.prices.every(isPrice), () => `variable ${v.name} has a price that is no integer`);
  }
  const sizeOf = (i: number): number => problem.variables[i]?.prices.length ?? -1;
  for (const t of problem.transitions) {
    const rows = t.prices.length / t.columns;
    invariant(t.from !== t.to, () => `transition from ${t.from} to itself`);
    invariant(fits(t.fromClass, sizeOf(t.from), rows), () => `transition ${t.from}-${t.to}: rows`);
    invariant(
      fits(t.toClass, sizeOf(t.to), t.columns),
      () => `transition ${t.from}-${t.to}: columns`,
    );
  }
  for (const b of problem.budgets) {
    invariant(b.capacity >= 0, () => `budget ${b.name} has a negative capacity`);
    for (const use of b.uses) {
      invariant(use.amounts.length === sizeOf(use.variable), () => `budget ${b.name}: amounts`);
      invariant(
        use.amounts.every((x) => x >= 0),
        () => `budget ${b.name}: negative amount`,
      );
    }
  }
}

function isPrice(price: number): boolean {
  return Number.isSafeInteger(price) || price === Infinity;
}

function fits(classes: Int32Array | undefined, size: number, count: number): boolean {
  if (classes === undefined) return size === count;
  return classes.length === size && classes.every((c) => c >= 0 && c < count);
}
