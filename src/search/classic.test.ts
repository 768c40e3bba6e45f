import { describe, expect, it } from "vitest";
import { checkOutcome } from "./check.ts";
import { classic, shannonBits } from "./classic.ts";
import { collapse } from "./collapse.ts";
import { explainConflict } from "./conflict.ts";
import { generate } from "./generators.ts";
import type { Problem } from "./problem.ts";

/** a and c each have a layout; b may choose; penalties of 1 between different layouts. */
function threeLayers(b: readonly string[], hard: boolean): Problem {
  const layouts = [["row"], b, ["column"]];
  const price = (x: string, y: string): number => (x === y ? 0 : hard ? Infinity : 1000);
  return {
    name: "three layers",
    variables: layouts.map((states, i) => ({
      name: "abc"[i]!,
      states,
      prices: Float64Array.from(states, (_, k) => k),
    })),
    transitions: [0, 1].map((i) => ({
      from: i,
      to: i + 1,
      columns: layouts[i + 1]!.length,
      constraint: "layouts agree",
      prices: Float64Array.from(
        layouts[i]!.flatMap((x) => layouts[i + 1]!.map((y) => price(x, y))),
      ),
    })),
    budgets: [],
    offset: 0,
    classic: { penaltyPrice: 1000, temperaturePrice: 1000, weights: [3, 1, 2] },
  };
}

describe("classic collapse", () => {
  it("goes back and recovers where its first choice was wrong", () => {
    // The heaviest layer likes state 0, which leaves its neighbour nothing under the threshold.
    const problem: Problem = {
      name: "wrong first choice",
      variables: [
        { name: "a", prices: Float64Array.of(0, 5) },
        { name: "b", prices: Float64Array.of(0) },
      ],
      transitions: [{ from: 0, to: 1, columns: 1, prices: Float64Array.of(3000, 0) }],
      budgets: [],
      offset: 0,
      classic: { penaltyPrice: 1000, temperaturePrice: 1000, weights: [2, 1] },
    };
    const outcome = classic(problem);
    expect(outcome.counts.backtracks).toBe(1);
    expect(outcome).toMatchObject({ status: "feasible", objective: 5 });
    expect(checkOutcome(problem, outcome)).toEqual([]);
  });

  it("fails on a contradiction after its snapshots, where the exact solver proves and explains it", () => {
    const problem = threeLayers(["row", "column"], true);
    const outcome = classic(problem, { threshold: 0.5 });
    expect(outcome.status).toBe("unknown");
    expect(outcome.counts.backtracks).toBeGreaterThan(0);
    expect(collapse(problem).status).toBe("infeasible");
    expect(explainConflict(problem)?.constraints).toHaveLength(2);
  });

  it("decides a conflict of two sides when the threshold lets it", () => {
    const problem = threeLayers(["row", "column", "block"], false);
    expect(classic(problem, { threshold: 1 })).toMatchObject({
      status: "feasible",
      objective: 1000,
    });
  });

  it("is worse than optimal on networks, which is why it is only the baseline", () => {
    const problem = generate({ shape: "residual", layers: 60, states: 20, seed: 1 });
    const greedy = classic(problem, { threshold: "auto" });
    expect(checkOutcome(problem, greedy)).toEqual([]);
    expect(greedy.objective!).toBeGreaterThan(collapse(problem).objective!);
  });

  it("measures entropy in bits", () => {
    expect(shannonBits(Float64Array.of(7, 7, 7, 7), 1)).toBeCloseTo(2);
    expect(shannonBits(Float64Array.of(0, 1e6), 1)).toBeCloseTo(0);
  });
});
