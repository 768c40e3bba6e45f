/** What is known of a class decides a region as its own dependences would. */
import { describe, expect, it } from "vitest";
import { formatDiagnostic } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { applySchedule } from "../apply.ts";
import { drawRegion } from "../choice/model-regions.test-support.ts";
import { printSchedule } from "../directive-text.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { decideSchedule } from "./legality.ts";
import { type ClassKnowledge, LegalityClasses } from "./legality-class.ts";

function decide(scheduled: ScheduledRegion, classes: ClassKnowledge): string {
  const checked = decideSchedule(scheduled, classes);
  return checked.ok ? "legal" : checked.diagnostics.map(formatDiagnostic).join("\n");
}

/** Knows nothing: every region is decided by its own sizes. */
const alone: ClassKnowledge = { isProved: () => false };

describe("regions of random sizes under random factors", () => {
  it("are decided alike with and without the class", () => {
    const classes = new LegalityClasses();
    const rng = new Rng(5);
    const seen = { legal: 0, refused: 0 };
    for (let turn = 0; turn < 600; turn++) {
      const sizes = { least: 1, most: turn % 2 === 0 ? 9 : 90, factors: [1, 2, 3, 4, 8] };
      const { kind, region, schedule } = drawRegion(turn, rng, sizes);
      const applied = applySchedule(region, schedule);
      if (!applied.ok) continue;
      const own = decide(applied.value, alone);
      const name = `${kind} ${printSchedule(schedule)}`;
      expect(decide(applied.value, classes), name).toBe(own);
      seen[own === "legal" ? "legal" : "refused"]++;
    }
    expect(seen.legal).toBeGreaterThan(200);
    expect(seen.refused).toBeGreaterThan(40);
    expect(classes.size).toBeLessThan(200);
  });
});
