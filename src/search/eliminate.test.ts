import fc from "fast-check";
import { expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { exhaustiveOptimum } from "./check.ts";
import { collapse } from "./collapse.ts";
import { eliminate, planElimination } from "./eliminate.ts";
import { networkOf, toProblemStates } from "./network.ts";
import { type Problem, priceOf, type Transition } from "./problem.ts";
import { randomProblem } from "./random-problem.test-support.ts";

it("finds the optimum of dense problems, whatever the numbers of states", () => {
  const property = fc.property(fc.integer({ min: 0, max: 1 << 30 }), (seed) => {
    const rng = new Rng(seed);
    const edges = rng.integer(5, 15);
    const problem = randomProblem(rng, { variables: 6, states: 5, edges, hard: 0.1, budgets: 0 });
    const network = networkOf(problem);
    const found = eliminate(network, planElimination(network, Infinity)!);
    const best = exhaustiveOptimum(problem) ?? Infinity;
    expect(found.price).toBe(best);
    if (found.states === undefined) return;
    expect(priceOf(problem, toProblemStates(network, found.states))).toBe(best);
  });
  fc.assert(property, { numRuns: 200 });
});

/** Layers of two states that read the one before and another one up to `back` before. */
function binaryLayers(layers: number, back: number, rng: Rng): Problem {
  const price = (): number => rng.integer(100, 140);
  const variables = Array.from({ length: layers }, (_, i) => ({
    name: `v${i}`,
    prices: Float64Array.of(price(), price()),
  }));
  const transitions = variables.flatMap((_, to): Transition[] => {
    const sources = [...new Set([1, rng.integer(2, back)])].filter((d) => d <= to);
    return sources.map((d) => {
      const prices = Float64Array.of(0, rng.integer(5, 60), rng.integer(5, 60), 0);
      return { from: to - d, to, columns: 2, prices };
    });
  });
  return { name: "binary layers", variables, transitions, budgets: [], offset: 0 };
}

it("counts rows, not entries alone: twenty neighbours of two states are left to the ascent", () => {
  const problem = binaryLayers(400, 30, new Rng(1));
  // Twelve million entries, and as many loops around two of them.
  expect(planElimination(networkOf(problem), 1.2e8)).toBeUndefined();
  expect(collapse(problem)).toMatchObject({ status: "optimal", nodes: 0 });
});
