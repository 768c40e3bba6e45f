import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { collapse } from "./collapse.ts";
import { generate } from "./generators.ts";
import { keepsBudgets, type Problem, priceOf, usageOf } from "./problem.ts";
import { randomProblem } from "./random-problem.test-support.ts";
import { kBest, paretoFront } from "./several.ts";
import { WarmSearch } from "./warm.ts";

const seeds = fc.integer({ min: 0, max: 1 << 30 });

function small(seed: number, budgets = 0): Problem {
  const options = { variables: 4, states: 3, edges: 5, hard: 0.1, budgets };
  return randomProblem(new Rng(seed), options);
}

/** All allowed assignments. */
function all(problem: Problem): Int32Array[] {
  let found: number[][] = [[]];
  for (const v of problem.variables) {
    found = found.flatMap((f) => Array.from(v.prices, (_, s) => [...f, s]));
  }
  return found
    .map((f) => Int32Array.from(f))
    .filter((f) => priceOf(problem, f) < Infinity && keepsBudgets(problem, f));
}

describe("k best", () => {
  it("are the k cheapest of all, each once", () => {
    const property = fc.property(seeds, (seed) => {
      const problem = small(seed);
      const expected = all(problem).map((f) => priceOf(problem, f));
      const { solutions, proven } = kBest(problem, 6);
      expect(proven).toBe(true);
      expect(solutions.map((s) => s.objective)).toEqual(expected.sort((a, b) => a - b).slice(0, 6));
      expect(new Set(solutions.map((s) => s.solution.join())).size).toBe(solutions.length);
    });
    fc.assert(property, { numRuns: 60 });
  });
});

describe("the Pareto front", () => {
  it("has every non-dominated pair of price and amount", () => {
    const property = fc.property(seeds, (seed) => {
      const tight = small(seed, 1);
      const problem = { ...tight, budgets: tight.budgets.map((b) => ({ ...b, capacity: 1000 })) };
      const budget = problem.budgets[0]!;
      const points = all(problem).map((f) => [priceOf(problem, f), usageOf(budget, f)] as const);
      const best = points.filter(
        ([p, u]) => !points.some(([q, v]) => (q < p && v <= u) || (q <= p && v < u)),
      );
      const expected = new Set(best.map((b) => b.join()));
      const front = paretoFront(problem, budget.name, { points: 1000 });
      expect(new Set(front.map((f) => [f.objective, f.amount].join()))).toEqual(expected);
    });
    fc.assert(property, { numRuns: 60 });
  });
});

describe("a warm search", () => {
  it("gives the optimum after every change of a price", () => {
    const options = { shape: "dense", layers: 18, states: 12, seed: 3 } as const;
    const warm = new WarmSearch(generate(options));
    const rng = new Rng(5);
    for (let k = 0; k < 5; k++) {
      const found = warm.solve();
      expect(found.status).toBe("optimal");
      expect(found.objective).toBe(collapse(warm.problem).objective);
      const i = rng.integer(0, 17);
      warm.setPrice(i, found.solution![i]!, 400 + rng.integer(0, 2000));
    }
  });
});
