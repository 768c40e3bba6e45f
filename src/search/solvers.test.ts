import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { checkAgainstOptimum, checkOutcome, exhaustiveOptimum } from "./check.ts";
import { assertWellFormed, type Problem } from "./problem.ts";
import { randomProblem } from "./random-problem.test-support.ts";
import { type SolverName, solverNames, solvers } from "./solvers.ts";

const seeds = fc.integer({ min: 0, max: 1 << 30 });

function problemFor(seed: number, budgets: number, chain = false): Problem {
  const rng = new Rng(seed);
  const problem = randomProblem(rng, {
    variables: rng.integer(2, 6),
    states: 4,
    edges: rng.integer(0, 10),
    hard: rng.pick([0, 0.1, 0.4]),
    budgets,
    chain,
  });
  assertWellFormed(problem);
  return problem;
}

function judge(problem: Problem, solver: SolverName): string[] {
  const outcome = solvers[solver](problem, { seed: 1 });
  const best = exhaustiveOptimum(problem);
  return [...checkOutcome(problem, outcome), ...checkAgainstOptimum(outcome, best)];
}

const exact: readonly SolverName[] = ["collapse", "junction", "bnb", "brute"];

describe("every solver", () => {
  it.each(solverNames)("%s is valid against the exhaustive optimum", (solver) => {
    const property = fc.property(seeds, fc.integer({ min: 0, max: 2 }), (seed, budgets) => {
      expect(judge(problemFor(seed, budgets), solver)).toEqual([]);
    });
    fc.assert(property, { numRuns: 150, seed: 7 });
  });

  it.each(exact)("%s proves the optimum or that there is none", (solver) => {
    const property = fc.property(seeds, (seed) => {
      const problem = problemFor(seed, 0);
      const outcome = solvers[solver](problem);
      expect(outcome.objective).toBe(exhaustiveOptimum(problem));
      expect(["optimal", "infeasible"]).toContain(outcome.status);
    });
    fc.assert(property, { numRuns: 200, seed: 3 });
  });

  it.each(["collapse", "bnb", "brute"] as const)("%s proves optima under budgets", (solver) => {
    const property = fc.property(seeds, (seed) => {
      const problem = problemFor(seed, 2);
      const outcome = solvers[solver](problem);
      expect(outcome.objective).toBe(exhaustiveOptimum(problem));
      expect(["optimal", "infeasible"]).toContain(outcome.status);
    });
    fc.assert(property, { numRuns: 200, seed: 5 });
  });

  it("viterbi proves the optimum of chains", () => {
    const property = fc.property(seeds, (seed) => {
      const problem = problemFor(seed, 0, true);
      const outcome = solvers.viterbi(problem);
      expect(outcome.objective).toBe(exhaustiveOptimum(problem));
      expect(checkOutcome(problem, outcome)).toEqual([]);
    });
    fc.assert(property, { numRuns: 200 });
  });
});
