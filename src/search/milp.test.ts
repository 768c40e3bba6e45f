import { expect, it } from "vitest";
import { loadHighs } from "../commands/library/highs.ts";
import { Rng } from "../support/rng.ts";
import { checkOutcome, exhaustiveOptimum } from "./check.ts";
import { milp } from "./milp.ts";
import { randomProblem } from "./random-problem.test-support.ts";

it("is proven by HiGHS on small problems, budgets and hard pairs too", async () => {
  const highs = await loadHighs();
  for (let seed = 0; seed < 25; seed++) {
    const options = { variables: 4, states: 3, edges: 4, hard: 0.2, budgets: seed % 3 };
    const problem = randomProblem(new Rng(seed), options);
    const outcome = milp(problem, { milp: highs });
    expect(checkOutcome(problem, outcome)).toEqual([]);
    expect(outcome.objective).toBe(exhaustiveOptimum(problem));
    expect(["optimal", "infeasible"]).toContain(outcome.status);
  }
});
