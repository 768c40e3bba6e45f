/** All solvers by name: one table. `milp` wants the linear solver in its options. */
import { brute } from "./brute.ts";
import { classic } from "./classic.ts";
import { collapse } from "./collapse.ts";
import { bnb, junction } from "./exact.ts";
import { greedy } from "./greedy.ts";
import { anneal, beam } from "./heuristics.ts";
import { type MilpOptions, milp } from "./milp.ts";
import type { Outcome } from "./outcome.ts";
import type { Problem } from "./problem.ts";
import { threePhase } from "./three-phase.ts";
import { viterbi } from "./viterbi.ts";

export const solverNames = [
  "collapse",
  "classic",
  "viterbi",
  "junction",
  "bnb",
  "milp",
  "beam",
  "anneal",
  "threephase",
  "greedy",
  "brute",
] as const;

export type SolverName = (typeof solverNames)[number];

export type Solver = (problem: Problem, options?: MilpOptions) => Outcome;

export const solvers = {
  collapse,
  classic,
  viterbi,
  junction,
  bnb,
  milp,
  beam,
  anneal,
  threephase: threePhase,
  greedy,
  brute,
} satisfies Record<SolverName, Solver>;
