import { describe, expect, it } from "vitest";
import { ThreadChoice, ThreadChoices } from "./thread-choice.ts";

/** The numbers of the runs that are made alone, of `count` that take this long in each way. */
function runsAlone(count: number, msOf: (alone: boolean, run: number) => number): number[] {
  const choice = new ThreadChoice(2);
  const found: number[] = [];
  for (let run = 0; run < count; run++) {
    const alone = choice.next();
    if (alone) found.push(run);
    choice.note(msOf(alone, run));
  }
  return found;
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i);

describe("ThreadChoice", () => {
  it("stays with all threads where they are faster, and compares ever more rarely", () => {
    const found = runsAlone(600, (alone) => (alone ? 1 : 0.6));
    expect(found).toEqual([2, 3, 12, 13, 46, 47, 176, 177, 434, 435]);
  });

  it("is alone where threads are hardly faster: they cost processors", () => {
    const found = runsAlone(12, (alone) => (alone ? 0.4 : 0.38));
    expect(found).toEqual([2, 3]);
    expect(runsAlone(20, (alone) => (alone ? 0.4 : 0.41))).toEqual([
      ...range(2, 12),
      ...range(14, 20),
    ]);
  });

  it("takes one slow run of a trial for a disturbance", () => {
    const found = runsAlone(20, (alone, run) => (run === 2 ? 9 : alone ? 0.1 : 0.5));
    expect(found).toEqual([...range(2, 12), ...range(14, 20)]);
  });

  it("looks again when runs become slower than they were when they were chosen", () => {
    const found = runsAlone(80, (alone, run) => (alone ? 1 : run < 52 ? 0.6 : 3));
    expect(found).toEqual([2, 3, 12, 13, 46, 47, ...range(56, 80)]);
  });

  it("tries long runs late, when two of them are a hundredth of the time", () => {
    expect(runsAlone(300, (alone) => (alone ? 40 : 30))).toEqual([200, 201]);
    expect(runsAlone(300, (alone) => (alone ? 30 : 40))).toEqual(range(200, 300));
  });

  it("tries a way that is known to be slow so rarely that it costs a hundredth", () => {
    const found = runsAlone(20_000, (alone) => (alone ? 8 : 1));
    expect((found.length * 7) / 20_000).toBeLessThan(0.015);
  });

  it("costs little whatever runs take: two runs of a trial in 256 in the end", () => {
    const found = runsAlone(20_000, (alone) => (alone ? 10 : 5));
    expect(found.length / 20_000).toBeLessThan(0.009);
  });
});

describe("ThreadChoices", () => {
  /** Runs with pauses before them; which of them were made alone. */
  function runs(pauseMs: (run: number) => number, n: (run: number) => number, count: number) {
    const choices = new ThreadChoices(2);
    const found: number[] = [];
    let now = 0;
    for (let run = 0; run < count; run++) {
      now += pauseMs(run);
      choices.run(
        { n: n(run) },
        () => now,
        (alone) => {
          const threadsMs = n(run) / 10 + (pauseMs(run) > 1 ? 0.5 : 0);
          if (alone) found.push(run);
          now += alone ? n(run) / 5 : threadsMs;
          return { ok: true };
        },
      );
    }
    return found;
  }

  it("decides for runs after a pause, when threads have to be woken, by themselves", () => {
    const isFirst = (run: number): boolean => run % 10 === 0;
    const found = runs(
      (run) => (isFirst(run) ? 60 : 0.01),
      () => 1,
      200,
    );
    const later = found.filter((run) => run >= 60);
    expect(later.filter(isFirst).length).toBeGreaterThanOrEqual(12);
    expect(later.filter((run) => !isFirst(run)).length).toBeLessThanOrEqual(6);
  });

  it("decides for each combination of extents by itself", () => {
    const found = runs(
      () => 60,
      (run) => (run % 2 === 0 ? 1 : 40),
      60,
    );
    const later = found.filter((run) => run >= 20);
    expect(later.filter((run) => run % 2 === 0).length).toBeGreaterThanOrEqual(16);
    expect(later.filter((run) => run % 2 === 1).length).toBeLessThanOrEqual(4);
  });

  it("decides for runs that are promised, and learns nothing from those that failed", async () => {
    const choices = new ThreadChoices(2);
    const found: number[] = [];
    let now = 0;
    for (let run = 0; run < 40; run++) {
      // Each trial of the calling thread alone fails at once.
      const make = async (alone: boolean) => {
        if (alone) found.push(run);
        now += alone ? 0.01 : 1;
        return { ok: !alone || run >= 20 };
      };
      await choices.runAsync({}, () => now, make);
      now += 10;
    }
    expect(found).toEqual([...range(2, 30), ...range(32, 40)]);
    const failed = await choices.runAsync(
      {},
      () => now,
      async () => ({ ok: false }),
    );
    expect(failed).toEqual({ ok: false });
  });
});
