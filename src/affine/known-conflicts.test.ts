/** A pair that refused one schedule refuses another only where a proof would. */
import { describe, expect, it } from "vitest";
import { readKernel } from "../../campaign/schedule-legality/kernel-text.ts";
import { kernelTexts } from "../../campaign/schedule-legality/kernels.ts";
import { drawDirective } from "../../campaign/schedule-legality/random-directives.ts";
import { Rng } from "../support/rng.ts";
import { ConflictMemory, judgePlan, type Plan, startPlan } from "./index.ts";
import { applyDirective } from "./tree/directive.ts";

/** Directives that a tree has places for; what changes the program starts from a legal order. */
function drawPlan(rng: Rng, start: Plan): Plan {
  let plan = start;
  for (let left = rng.integer(1, 4); left > 0; left--) {
    const d = drawDirective(rng, plan.nest, plan.tree);
    const next = d && applyDirective(plan, d, 0);
    if (next?.kind === "legal") plan = next.plan;
  }
  return plan;
}

describe("known conflicts", () => {
  it("decide like proofs, for every kernel", () => {
    let quick = 0;
    for (const [at, text] of Object.values(kernelTexts).entries()) {
      const rng = new Rng(at);
      const memory = new ConflictMemory();
      const start = startPlan(readKernel(text));
      for (let trial = 0; trial < 12; trial++) {
        const plan = drawPlan(rng, start);
        const before = memory.hits;
        const answer = judgePlan(plan, 0, memory);
        const proved = judgePlan(plan, 0);
        expect(answer.kind).toBe(proved.kind);
        if (memory.hits === before) continue;
        quick++;
        expect(answer.kind).toBe("illegal");
      }
    }
    expect(quick).toBeGreaterThan(20);
  });
});
