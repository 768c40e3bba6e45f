import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { brute } from "./brute.ts";
import { withoutDominated } from "./dominance.ts";
import { generate } from "./generators.ts";
import { networkOf } from "./network.ts";
import type { Problem } from "./problem.ts";
import { randomProblem } from "./random-problem.test-support.ts";

const seeds = fc.integer({ min: 0, max: 1 << 30 });

/** The problem with only the states that are left. */
function restricted(problem: Problem): { readonly problem: Problem; readonly removed: number } {
  const { network, removed } = withoutDominated(networkOf(problem));
  const variables = problem.variables.map((variable, i) => {
    const left = new Set(network.origin[i]!);
    const states = Array.from(variable.prices, (_, s) => s).filter((s) => !left.has(s));
    const exclusions = [...(variable.exclusions ?? []), { constraint: "dominated", states }];
    return { ...variable, exclusions };
  });
  return { problem: { ...problem, variables }, removed };
}

describe("what dominated states leave", () => {
  it.each([0, 0.15, 0.5])("has an optimum, infinities %f", (hard) => {
    let removed = 0;
    const property = fc.property(seeds, fc.integer({ min: 0, max: 2 }), (seed, budgets) => {
      const options = { variables: 5, states: 4, edges: 5, hard, budgets };
      const problem = randomProblem(new Rng(seed), options);
      const rest = restricted(problem);
      removed += rest.removed;
      const [whole, part] = [brute(problem), brute(rest.problem)];
      expect([part.status, part.objective]).toEqual([whole.status, whole.objective]);
    });
    fc.assert(property, { numRuns: 150 });
    expect(removed).toBeGreaterThan(50);
  });

  it("is smaller where states share classes as well", () => {
    const options = { shape: "residual", layers: 7, states: 12, classes: 5, seed: 4 } as const;
    const problem = generate({ ...options, states: 6, classes: 3 });
    const rest = restricted(problem);
    expect(rest.removed).toBeGreaterThan(0);
    expect(brute(rest.problem).objective).toBe(brute(problem).objective);
    const large = networkOf(generate(options));
    expect(withoutDominated(large).removed).toBeGreaterThan(20);
  });
});
