import { describe, expect, it } from "vitest";
import { ThreadChoice, ThreadChoices, ThreadUse } from "./thread-choice.ts";

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

/** The runs of trials that begin there. */
const trialsAt = (...starts: readonly number[]): number[] =>
  starts.flatMap((start) => range(start, start + 3));

describe("ThreadChoice", () => {
  it("stays with all threads where they are faster, and compares ever more rarely", () => {
    const found = runsAlone(600, (alone) => (alone ? 1 : 0.6));
    expect(found).toEqual(trialsAt(12, 63, 258));
  });

  it("is alone where threads are hardly faster: they cost processors", () => {
    const found = runsAlone(24, (alone) => (alone ? 0.4 : 0.38));
    expect(found).toEqual(trialsAt(12));
    expect(runsAlone(80, (alone) => (alone ? 0.4 : 0.41))).toEqual([
      ...range(12, 27),
      ...range(30, 78),
    ]);
  });

  it("takes one run of a trial, or of those before, that is slow or fast for a disturbance", () => {
    for (const [run, ms] of [
      [13, 9],
      [10, 9],
      [10, 0.01],
    ]) {
      const found = runsAlone(80, (alone, at) => (at === run ? ms! : alone ? 0.1 : 0.5));
      expect(found).toEqual([...range(12, 27), ...range(30, 78)]);
    }
    const lucky = runsAlone(60, (alone, at) => (at === 13 ? 0.01 : alone ? 1 : 0.6));
    expect(lucky).toEqual(trialsAt(12));
  });

  it("is not misled by the first runs, which wait for the engine's own threads", () => {
    const found = runsAlone(60, (alone, run) => (alone ? 1 : run < 8 ? 10 - run : 0.6));
    expect(found).toEqual(trialsAt(12));
  });

  it("takes back soon what was chosen while the engine's own threads had the processors", () => {
    const found = runsAlone(100, (alone, run) => (alone ? 1 : run < 20 ? 3 : 0.6));
    expect(found).toEqual([...range(12, 27), ...trialsAt(42, 93)]);
  });

  it("looks again when runs become slower than they were when they were chosen", () => {
    const found = runsAlone(140, (alone, run) => (alone ? 1 : run < 90 ? 0.6 : 3));
    expect(found).toEqual([...trialsAt(12, 63), ...range(93, 108), ...range(111, 140)]);
  });

  it("tries long runs late, when three of them are a hundredth of the time", () => {
    expect(runsAlone(400, (alone) => (alone ? 40 : 30))).toEqual(trialsAt(300));
    expect(runsAlone(400, (alone) => (alone ? 30 : 40))).toEqual(range(300, 400));
  });

  it("tries a way that is known to be slow so rarely that it costs a hundredth", () => {
    const found = runsAlone(20_000, (alone) => (alone ? 8 : 1));
    expect((found.length * 7) / 20_000).toBeLessThan(0.015);
  });

  it("costs little whatever runs take: three runs of a trial in 384 in the end", () => {
    const found = runsAlone(20_000, (alone) => (alone ? 10 : 5));
    expect(found.length / 20_000).toBeLessThan(0.009);
  });
});

describe("programs on the same threads", () => {
  /** Runs of eight programs with little between them, each of another size in each run, after long pauses. */
  function stages(together: boolean) {
    const use = new ThreadUse();
    const whole = new ThreadChoices(2, use);
    const parts = Array.from({ length: 8 }, () => new ThreadChoices(2, use));
    const alone: number[][] = [];
    let now = 0;
    for (let run = 0; run < 120; run++) {
      const found: number[] = [];
      now += 50;
      const make = () => {
        for (const [i, part] of parts.entries()) {
          part.run(
            { n: run % (i + 2) },
            () => now,
            (isAlone) => {
              if (isAlone) found.push(i);
              now += isAlone ? 1 : 0.6;
              return { ok: true };
            },
          );
        }
        return { ok: true };
      };
      if (together) whole.runTogether({}, () => now, make);
      else make();
      alone.push(found);
    }
    return { alone, use };
  }

  it("are decided as one where they run one after another: all of them alone, or none", () => {
    const { alone, use } = stages(true);
    expect(new Set(alone.map((found) => found.length))).toEqual(new Set([0, 8]));
    expect(alone.filter((found) => found.length > 0)).toHaveLength(6);
    expect(use.alone).toBeUndefined();
    expect(stages(false).alone.some((found) => found.length > 0 && found.length < 8)).toBe(true);
  });

  it("find the threads awake where another program ran right before", () => {
    const use = new ThreadUse();
    const [one, other] = [new ThreadChoices(2, use), new ThreadChoices(2, use)];
    const alone: number[] = [];
    let now = 0;
    for (let run = 0; run < 120; run++) {
      now += 50;
      const make = (isFirst: boolean) => (isAlone: boolean) => {
        if (isAlone && !isFirst) alone.push(run);
        // Threads that sleep are not worth being woken; awake they are.
        now += isAlone ? 1 : isFirst ? 1.5 : 0.6;
        return { ok: true };
      };
      one.run({}, () => now, make(true));
      other.run({}, () => now, make(false));
    }
    expect(alone).toEqual(trialsAt(12, 63));
  });

  it("are decided by themselves again when a run of all of them has failed", async () => {
    const use = new ThreadUse();
    const whole = new ThreadChoices(2, use);
    const make = async () => Promise.reject(new Error("ended"));
    await expect(whole.runTogetherAsync({}, () => 0, make)).rejects.toThrow("ended");
    expect(use.alone).toBeUndefined();
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
      300,
    );
    const later = found.filter((run) => run >= 150);
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
    // Of twenty runs, those of the trial that looks at the change again are made the other way.
    expect(later.filter((run) => run % 2 === 0).length).toBeGreaterThanOrEqual(15);
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
    // The trial that succeeds at run 20 is a change, which is looked at again behind as many runs.
    expect(found).toEqual([...range(12, 35), ...range(38, 40)]);
    const failed = await choices.runAsync(
      {},
      () => now,
      async () => ({ ok: false }),
    );
    expect(failed).toEqual({ ok: false });
  });
});
