/**
 * Schedules that loops of each statement can say, decided by those loops (legality.ts) and by the tree
 * of the region (tree-legality.ts): the answer is the same, so a directive that needs the tree changes
 * no answer about the others.
 */
import { describe, expect, it } from "vitest";
import { attempt, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { applySchedule, startRegion } from "../apply.ts";
import { drawRegion } from "../choice/model-regions.test-support.ts";
import { printSchedule } from "../directive-text.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { planTree } from "../tree/tree-schedule.ts";
import { decideSchedule } from "./legality.ts";
import { LegalityClasses } from "./legality-class.ts";

function outcome(scheduled: Result<ScheduledRegion>, classes: LegalityClasses): string {
  const decided = scheduled.ok ? decideSchedule(scheduled.value, classes) : scheduled;
  return decided.ok ? "legal" : decided.diagnostics[0]!.code;
}

describe("random schedules of regions", () => {
  it("are decided alike by loops and by the tree", () => {
    const classes = new LegalityClasses();
    const rng = new Rng(3);
    const seen = new Map<string, number>();
    for (let turn = 0; turn < 200; turn++) {
      const sizes = { least: 1, most: 12, factors: [1, 2, 3, 4] };
      const { kind, region, schedule } = drawRegion(turn, rng, sizes);
      const applied = applySchedule(region, schedule);
      if (!applied.ok) continue;
      const byTree = attempt(() => ({
        ...startRegion(region, schedule),
        tree: planTree(region, schedule),
      }));
      const answer = outcome(applied, classes);
      expect(outcome(byTree, classes), `${kind} ${printSchedule(schedule)}`).toBe(answer);
      seen.set(answer, (seen.get(answer) ?? 0) + 1);
    }
    expect([...seen.keys()].sort()).toEqual(["SCH016", "SCH017", "legal"]);
  });
});
