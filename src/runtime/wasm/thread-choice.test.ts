import { describe, expect, it } from "vitest";
import { ThreadChoice } from "./thread-choice.ts";

/** The numbers of the runs that are made alone, of `count` that take this long in each way. */
function runsAlone(count: number, msOf: (alone: boolean, run: number) => number): number[] {
  const choice = new ThreadChoice();
  const found: number[] = [];
  for (let run = 0; run < count; run++) {
    const alone = choice.next();
    if (alone) found.push(run);
    choice.note(msOf(alone, run));
  }
  return found;
}

describe("ThreadChoice", () => {
  it("stays with all threads where they are faster, and compares ever more rarely", () => {
    expect(runsAlone(100, (alone) => (alone ? 1 : 0.6))).toEqual([8, 16, 32, 64]);
  });

  it("goes on alone where that is faster, and comes back when it no longer is", () => {
    const alone = runsAlone(40, (isAlone, run) => (isAlone === run < 20 ? 0.1 : 0.5));
    const until32 = Array.from({ length: 24 }, (_, i) => 8 + i).filter((run) => run !== 16);
    expect(alone).toEqual(until32);
  });

  it("never makes a long run alone", () => {
    expect(runsAlone(70, (alone) => (alone ? 1 : 3))).toEqual([]);
  });
});
