/**
 * Choosing one state per variable, usable alone: prices of states and transitions, groups, budgets, and a
 * bound that says how far the answer can be from the best. docs/collapse.md explains the ideas.
 */
export { checkOutcome } from "./check.ts";
export { type Conflict, explainConflict } from "./conflict.ts";
export type { Outcome, Snapshot, SolveOptions, Status } from "./outcome.ts";
export {
  type Assignment,
  type Budget,
  type BudgetUse,
  type Exclusion,
  type Problem,
  priceOf,
  type Transition,
  type Unit,
  type Variable,
} from "./problem.ts";
export { problemSchema, readProblem } from "./problem-file.ts";
export { kBest, type ParetoPoint, type PricedSolution, paretoFront } from "./several.ts";
export { type Solver, type SolverName, solverNames, solvers } from "./solvers.ts";
export { WarmSearch } from "./warm.ts";
export { printWcsp, readWcsp, type WcspText } from "./wcsp.ts";
