import { describe, expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { exhaustiveOptimum } from "./check.ts";
import { explainConflict } from "./conflict.ts";
import { plant } from "./planted-conflict.test-support.ts";
import { randomProblem } from "./random-problem.test-support.ts";

describe("a problem without solution", () => {
  it("is explained by the planted constraints alone, 100 times", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const { problem, kind } = plant(seed);
      const conflict = explainConflict(problem)!;
      expect(conflict.enough).toBe(true);
      if (kind === "budget") {
        expect(conflict.constraints).toHaveLength(1);
        const { capacity } = problem.budgets[0]!;
        expect(conflict.change).toBe(
          `raise the capacity of "scratch" from ${capacity} to ${capacity + 1}`,
        );
      } else if (kind === "layouts") {
        expect(conflict.constraints).toHaveLength(2);
        expect(conflict.change).toMatch(/^allow "#\d+" of layer\d+ with "#\d+" of layer\d+ in /);
      } else {
        expect(conflict.constraints).toHaveLength(3);
        expect(conflict.change).toMatch(/^allow "#\d+" of layer\d+ in spite of "(even|odd) only"$/);
      }
    }
  });

  it("and only such a problem", () => {
    for (let seed = 0; seed < 60; seed++) {
      const options = { variables: 4, states: 3, edges: 6, hard: 0.4, budgets: 1 };
      const problem = randomProblem(new Rng(seed), options);
      const solvable = exhaustiveOptimum(problem) !== undefined;
      expect(explainConflict(problem) === undefined).toBe(solvable);
    }
  });

  it("says when a variable has no state at all", () => {
    const variables = [{ name: "a", prices: Float64Array.of(Infinity) }];
    const problem = { name: "p", variables, transitions: [], budgets: [], offset: 0 };
    expect(explainConflict(problem)?.constraints).toEqual([
      "a variable has no state with a finite price",
    ]);
  });
});
