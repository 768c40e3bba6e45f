import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ok } from "../support/diagnostic.ts";
import { keyOf, makeTrial, parseTrial, printTrial, type Trial, trialSchema } from "./trial.ts";
import { incumbentsOf, mergeTrials, readStore, type TrialLog, TrialStore } from "./trial-store.ts";

const subject: Trial["subject"] = {
  semantic: "sha256:00",
  shapes: { M: 4 },
  dtypes: ["f32"],
  target: "wasm",
  device: "a processor",
  driver: "an engine",
  threads: 1,
  codegen: "0.1.0",
  protocol: "p1",
};
const agreement = { checked: 300, worst: 0.2, worstUlp: 2, tolerance: "f32", seed: 1 };

function measured(medianNs: number, schedule = "s", semantic = "sha256:00"): Trial {
  const timing = { medianNs, lowNs: medianNs, highNs: medianNs, n: 5, boundNs: 1 };
  return makeTrial({
    subject: { ...subject, semantic },
    region: "r",
    schedule,
    program: "sha256:11",
    verdict: { kind: "measured", agreement, timing },
  });
}

const mismatch = { tensor: "y", index: [0, 3], found: "NaN", expected: "1.5", tolerance: 1e-6 };
const verdicts: readonly Trial["verdict"][] = [
  { kind: "rejected", reason: "hung", diagnostics: [{ code: "VER002", message: "m", notes: [] }] },
  { kind: "wrong", checked: 300, wrong: 2, first: mismatch, worst: mismatch, seed: 1 },
  { kind: "estimated", agreement, estimate: { lowNs: 1, highNs: 2, model: "analytical" } },
  measured(8).verdict,
];

class MemoryLog implements TrialLog {
  readonly name = "memory";
  text: string;
  constructor(text = "") {
    this.text = text;
  }
  read = () => ok(this.text);
  append = (lines: readonly string[]) => {
    this.text += lines.map((line) => `${line}\n`).join("");
    return ok(undefined);
  };
}

const anyTrial = fc
  .record({
    verdict: fc.constantFrom(...verdicts, measured(5).verdict, measured(6).verdict),
    schedule: fc.constantFrom("a", "b"),
    semantic: fc.constantFrom("sha256:00", "sha256:01"),
  })
  .map(({ verdict, schedule, semantic }) =>
    makeTrial({
      subject: { ...subject, semantic },
      region: "r",
      schedule,
      program: "sha256:11",
      verdict,
    }),
  );

describe("trial records", () => {
  it("are read back as they were written, whatever the verdict", () => {
    for (const verdict of verdicts) {
      const trial = { ...measured(1), verdict };
      expect(parseTrial(printTrial(trial), "line")).toEqual(ok(trial));
    }
  });

  it("hold what the emitter counted, and those without it are read as before", () => {
    const plain = measured(1);
    expect(JSON.parse(printTrial(plain))).not.toHaveProperty("emitted");
    const emitted = [{ kernel: "k", spills: 3, vectorSpills: 1, reloads: 2 }];
    const trial = { ...plain, emitted };
    expect(parseTrial(printTrial(trial), "line")).toEqual(ok(trial));
    expect(trial.key).toBe(plain.key);
    const negative = { ...plain, emitted: [{ ...emitted[0]!, spills: -1 }] };
    expect(parseTrial(printTrial(negative), "line").ok).toBe(false);
  });

  it("have one key for one subject, however its fields are ordered", () => {
    const reordered = Object.fromEntries(Object.entries(subject).reverse()) as typeof subject;
    expect(keyOf(reordered)).toBe(keyOf(subject));
    for (const field of Object.keys(subject) as (keyof typeof subject)[]) {
      const other = { shapes: { M: 5 }, dtypes: ["f16"], threads: 2 }[field as string] ?? "other";
      expect(keyOf({ ...subject, [field]: other })).not.toBe(keyOf(subject));
    }
  });

  it("cannot hold a time without agreement, or beside another verdict", () => {
    const { timing } = measured(4).verdict as { timing: unknown } & Trial["verdict"];
    const untrue = [
      { kind: "measured", timing },
      { ...verdicts[2]!, timing },
    ];
    for (const verdict of untrue) {
      const line = JSON.stringify({ ...measured(1), verdict });
      expect(parseTrial(line, "line")).toMatchObject({ diagnostics: [{ code: "STO001" }] });
    }
  });
});

describe("a store", () => {
  it("refuses what is no trial (STO001), another version (STO002) and reports a torn line (STO003)", () => {
    const good = printTrial(measured(3));
    const later = good.replace(trialSchema, "wavetile/trial/2");
    const forged = good.replace(`"M":4`, `"M":5`);
    const text = [good, "{", later, forged, "", good.slice(0, 40)].join("\n");
    const { trials, faults } = readStore(text, "t.jsonl");
    expect(trials).toEqual([measured(3)]);
    expect(faults.map((d) => [d.code, d.severity, d.at])).toEqual([
      ["STO001", "error", "t.jsonl line 2"],
      ["STO002", "error", "t.jsonl line 3"],
      ["STO001", "error", "t.jsonl line 4"],
      ["STO003", "warning", "t.jsonl line 6"],
    ]);
  });

  it("answers the best measured trial of a key", () => {
    const store = new TrialStore(new MemoryLog());
    store.record([
      measured(9, "slow"),
      { ...measured(1), verdict: verdicts[1]! },
      measured(7, "fast"),
    ]);
    const found = store.incumbent(keyOf(subject));
    expect(found).toMatchObject({ value: { schedule: "fast" } });
    expect(store.incumbent("another")).toEqual(ok(undefined));
  });

  it("adds only what it lacks", () => {
    const log = new MemoryLog(`${printTrial(measured(3))}\n`);
    const store = new TrialStore(log);
    expect(store.merge([measured(3), measured(4)])).toMatchObject({ value: 1 });
    expect(store.merge([measured(3), measured(4)])).toMatchObject({ value: 0 });
  });

  it("merges in any order and any number of times to the same content", () => {
    const lists = fc.array(anyTrial, { maxLength: 6 });
    fc.assert(
      fc.property(lists, lists, lists, (a, b, c) => {
        const once = mergeTrials([a, b, c]);
        expect(mergeTrials([c, mergeTrials([b, a]), a])).toEqual(once);
        const best = incumbentsOf(once);
        expect(incumbentsOf([...once].reverse())).toEqual(best);
        for (const trial of once) {
          if (trial.verdict.kind !== "measured") continue;
          const { medianNs } = best.get(trial.key)!.verdict.timing;
          expect(medianNs).toBeLessThanOrEqual(trial.verdict.timing.medianNs);
        }
      }),
    );
  });
});
