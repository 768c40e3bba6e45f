import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeTrial, parseTrial, printTrial } from "../store/trial.ts";
import { Agreement, type Estimated, type Measured, type Verdict } from "./verdict.ts";

const timing = { medianNs: 1, lowNs: 1, highNs: 1, n: 1, boundNs: 0 };
const found = { checked: 300, worst: 0.5, worstUlp: 1, tolerance: "f32", seed: 1 };
const agreement = Agreement.afterComparison(found);

describe("a verdict", () => {
  it("has a time only with agreement, and only when it is measured", () => {
    const measured: Measured = { kind: "measured", agreement, timing };
    // @ts-expect-error a time without a comparison
    const untested: Verdict = { kind: "measured", timing };
    // @ts-expect-error a comparison that nobody made
    const pretended: Verdict = { kind: "measured", timing, agreement: found };
    // @ts-expect-error an estimate has no time
    const dressed: Verdict = { kind: "estimated", estimate: measured.timing };
    // @ts-expect-error nor does what is wrong
    const fast: Verdict = { kind: "rejected", reason: "hung", diagnostics: [], timing };
    // @ts-expect-error a measurement is no estimate
    const turned: Estimated = measured;
    // @ts-expect-error the constructor is private
    const made = new Agreement(found);
    expect([untested, pretended, dressed, fast, turned, made].length).toBe(6);
  });

  it("is agreed on where outputs are compared, and nowhere else", () => {
    const makers = readdirSync(import.meta.dirname)
      .filter((f) => !f.endsWith(".test.ts") && f !== "verdict.ts")
      .filter((f) =>
        readFileSync(join(import.meta.dirname, f), "utf8").includes("afterComparison"),
      );
    expect(makers).toEqual(["check-candidate.ts"]);
  });

  it("adds up what was compared", () => {
    const both = agreement.and(Agreement.afterComparison({ ...found, worst: 0.7, checked: 5 }));
    expect(both).toMatchObject({ checked: 305, worst: 0.7, isCompared: true });
  });

  it("is stored as it is", () => {
    const verdict: Verdict = { kind: "measured", agreement, timing };
    const subject = {
      semantic: "s",
      shapes: {},
      dtypes: [],
      target: "t",
      device: "d",
      driver: "r",
      threads: 1,
      codegen: "c",
      protocol: "p",
    };
    const trial = makeTrial({ subject, region: "r", schedule: "", program: "p", verdict });
    const read = parseTrial(printTrial(trial), "line");
    expect(read).toMatchObject({ ok: true, value: { verdict: { kind: "measured", timing } } });
  });
});
