import { describe, expect, test } from "vitest";
import type { Rng } from "../../src/support/rng.ts";
import { type Contest, type Protocol, runContest } from "./contest.ts";

/** A contest on a fake clock, which also keeps a log of what ran. */
class FakeContest implements Contest {
  now = 0;
  readonly log: string[] = [];
  readonly #costs: { readonly ours: number; readonly peer: number };
  readonly #difference: string | undefined;
  readonly floorNs: Contest["floorNs"] & {};

  constructor(
    costs: { ours: number; peer: number },
    difference?: string,
    floorNs: Contest["floorNs"] = {},
  ) {
    this.#costs = costs;
    this.#difference = difference;
    this.floorNs = floorNs;
  }

  refresh = (rng: Rng) => this.log.push(`refresh ${rng.bits()}`);
  check = async () => {
    this.log.push("check");
    return this.#difference;
  };
  ours = () => this.#spend("A", this.#costs.ours);
  peer = () => this.#spend("B", this.#costs.peer);
  close = async () => {};

  async #spend(side: string, ns: number): Promise<void> {
    this.log.push(side);
    this.now += ns;
  }
}

function run(contest: FakeContest, changes: Partial<Protocol> = {}) {
  return runContest(contest, {
    rounds: 4,
    warmUp: 1,
    leastSampleNs: 0,
    checks: 2,
    seed: 3,
    clock: () => contest.now,
    ...changes,
  });
}

describe("runContest", () => {
  test("times a program that both sides are once", async () => {
    const contest = Object.assign(new FakeContest({ ours: 100, peer: 90 }), { isOneProgram: true });
    expect(await run(contest)).toMatchObject({
      estimate: { oursNs: 100, peerNs: 100, ratio: 1, low: 1, high: 1, n: 4 },
    });
    expect(contest.log).not.toContain("B");
  });

  test("rests before the turns of both sides", async () => {
    const contest = new FakeContest({ ours: 100, peer: 250 });
    const rest = async (): Promise<void> => {
      contest.log.push("rest");
      contest.now += 1e6;
    };
    const outcome = await run(contest, { rounds: 2, rest });
    expect(outcome).toMatchObject({ estimate: { oursNs: 100, peerNs: 250 } });
    const turns = contest.log.slice(-18).join(" ");
    expect(turns).toMatch(/refresh \d+ rest A A A rest B B B refresh \d+ rest B B B rest A A A/);
  });

  test("checks first, then alternates on fresh inputs", async () => {
    const contest = new FakeContest({ ours: 100, peer: 250 });
    expect(await run(contest)).toEqual({
      kind: "measured",
      estimate: { oursNs: 100, peerNs: 250, ratio: 2.5, low: 2.5, high: 2.5, n: 4 },
    });
    const shape = contest.log.map((entry) => entry.split(" ")[0]).join(" ");
    const rounds = "refresh A B refresh B A";
    const checks = "refresh check refresh check";
    expect(shape).toBe(`${checks} A B A B ${[rounds, rounds].join(" ")}`);
    const drawn = contest.log.filter((entry) => entry.startsWith("refresh"));
    expect(new Set(drawn).size).toBe(drawn.length);
  });

  test("a wrong result has no time", async () => {
    const contest = new FakeContest({ ours: 1, peer: 1 }, "output y differs by 3");
    expect(await run(contest)).toEqual({ kind: "wrong", reason: "output y differs by 3" });
    expect(contest.log.filter((entry) => entry === "A")).toEqual([]);
  });

  test("a time that the machine cannot reach is refused, whichever side has it", async () => {
    const outcomeOf = async (ours: number, peer: number, floorNs: Contest["floorNs"]) =>
      (await run(new FakeContest({ ours, peer }, undefined, floorNs))).kind;
    expect(await outcomeOf(9, 50, { ours: 10, peer: 10 })).toBe("implausible");
    expect(await outcomeOf(50, 9, { ours: 10, peer: 10 })).toBe("implausible");
    expect(await outcomeOf(50, 10, { ours: 10, peer: 10 })).toBe("measured");
    expect(await outcomeOf(50, 9, { ours: 10 })).toBe("measured");
  });

  test("after a rest both sides are repeated equally often", async () => {
    const contest = new FakeContest({ ours: 10, peer: 100 });
    const rest = async (): Promise<void> => void contest.log.push("rest");
    await run(contest, { leastSampleNs: 200, rounds: 1, rest });
    const turns = ["rest", ...Array(20).fill("A"), "rest", ...Array(20).fill("B")];
    expect(contest.log.slice(-42)).toEqual(turns);
  });

  test("after a rest a sample is the median run of a turn, and the first run one of its own", async () => {
    let run = 0;
    let now = 0;
    const spend = async (ns: number): Promise<void> => {
      now += ns;
      run++;
    };
    const contest: Contest = {
      refresh: () => {},
      check: async () => undefined,
      ours: () => spend(run === 0 ? 70 : run === 3 ? 900 : 10),
      peer: () => spend(run === 0 ? 350 : 20),
      close: async () => {},
    };
    const outcome = await runContest(contest, {
      rounds: 3,
      warmUp: 1,
      leastSampleNs: 400,
      checks: 0,
      seed: 3,
      clock: () => now,
      rest: async () => {
        run = 0;
      },
    });
    expect(outcome).toMatchObject({
      estimate: { oursNs: 10, peerNs: 20, ratio: 2, high: 2, n: 3 },
      first: { oursNs: 70, peerNs: 350, ratio: 5, n: 3 },
    });
  });

  test("short runs are repeated to fill a sample, each side for itself", async () => {
    const contest = new FakeContest({ ours: 10, peer: 100 });
    const outcome = await run(contest, { leastSampleNs: 200, rounds: 1 });
    expect(contest.log.slice(-22)).toEqual([...Array(20).fill("A"), "B", "B"]);
    expect(outcome.kind === "measured" && outcome.estimate.ratio).toBe(10);
  });
});
