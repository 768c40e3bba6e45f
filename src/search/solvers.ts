/** All solvers by name: one table. */
import { brute } from "./brute.ts";
import { collapse } from "./collapse.ts";
import { bnb, junction } from "./exact.ts";
import type { Outcome, SolveOptions } from "./outcome.ts";
import type { Problem } from "./problem.ts";
import { viterbi } from "./viterbi.ts";

export const solverNames = ["collapse", "viterbi", "junction", "bnb", "brute"] as const;

export type SolverName = (typeof solverNames)[number];

export type Solver = (problem: Problem, options?: SolveOptions) => Outcome;

export const solvers = { collapse, viterbi, junction, bnb, brute } satisfies Record<
  SolverName,
  Solver
>;
