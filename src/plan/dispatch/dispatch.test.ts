import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import { randomArrivals } from "./arrivals.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { Accelerator, Job } from "./fleet.ts";
import { type Assignment, loadsOf, suggestMoves } from "./migrate.ts";
import { type Arrival, simulateDispatch } from "./simulate.ts";
import { makeStrategy, type StrategyName, strategyNames } from "./strategies.ts";

function accelerators(count: number, memoryBytes = 100, queueDepth = 2): Accelerator[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `a${i}`,
    memoryBytes,
    speed: 1,
    queueDepth,
  }));
}

const job = (id: number, more: Partial<Job> = {}): Job => ({
  id,
  work: 10,
  memoryBytes: 10,
  priority: 0,
  ...more,
});

function submitted(name: StrategyName, devices: readonly Accelerator[], jobs: readonly Job[]) {
  const got = new Map<number, number>();
  const dispatcher = new Dispatcher(devices, makeStrategy(name), (j, device) =>
    got.set(j.id, device),
  );
  const kinds = jobs.map((j) => dispatcher.submit(j).kind);
  return { dispatcher, kinds, devices: jobs.map((j) => got.get(j.id) ?? -1), got };
}

describe("strategies", () => {
  it("take turns, skipping who has no room", () => {
    const devices = accelerators(3).map((d, i) => ({ ...d, memoryBytes: i === 1 ? 5 : 100 }));
    expect(
      submitted(
        "round-robin",
        devices,
        [0, 1, 2, 3].map((i) => job(i)),
      ).devices,
    ).toEqual([0, 2, 0, 2]);
  });
  it("balance by when the job would end, speed counted", () => {
    const devices = accelerators(2).map((d, i) => ({ ...d, speed: i === 1 ? 3 : 1 }));
    expect(
      submitted(
        "load-balanced",
        devices,
        [0, 1, 2].map((i) => job(i)),
      ).devices,
    ).toEqual([1, 1, 0]);
  });
  it("fit where the least memory is left over", () => {
    const devices = accelerators(3).map((d, i) => ({ ...d, memoryBytes: [100, 30, 15][i]! }));
    const jobs = [
      job(0, { memoryBytes: 12 }),
      job(1, { memoryBytes: 20 }),
      job(2, { memoryBytes: 20 }),
    ];
    expect(submitted("best-fit", devices, jobs).devices).toEqual([2, 1, 0]);
  });
  it("take who waits by priority, then by arrival", () => {
    const devices = accelerators(1, 100, 0);
    const { dispatcher, kinds, got } = submitted("priority", devices, [
      job(0),
      job(1, { priority: 1 }),
      job(2, { priority: 2 }),
      job(3, { priority: 2 }),
    ]);
    expect(kinds).toEqual(["assigned", "waiting", "waiting", "waiting"]);
    dispatcher.complete(job(0), 0);
    dispatcher.complete(job(2, { priority: 2 }), 0);
    dispatcher.complete(job(3, { priority: 2 }), 0);
    expect([...got.keys()]).toEqual([0, 2, 3, 1]);
  });
});

describe("the dispatcher", () => {
  it("reserves memory and gives it back, and keeps the queue's depth", () => {
    const { dispatcher, kinds } = submitted(
      "load-balanced",
      accelerators(1, 25, 5),
      [0, 1, 2].map((i) => job(i)),
    );
    expect(kinds).toEqual(["assigned", "assigned", "waiting"]);
    expect(dispatcher.fleet.freeBytes[0]).toBe(5);
    dispatcher.complete(job(0), 0);
    expect([dispatcher.waiting, dispatcher.fleet.freeBytes[0]]).toEqual([0, 5]);
    expect(
      submitted(
        "load-balanced",
        accelerators(1, 100, 1),
        [0, 1, 2].map((i) => job(i)),
      ).kinds,
    ).toEqual(["assigned", "assigned", "waiting"]);
  });
  it("honours the preferred device, and lets nobody wait behind it", () => {
    const jobs = [
      job(0, { preferred: 1 }),
      job(1, { preferred: 1 }),
      job(2, { preferred: 1 }),
      job(3),
    ];
    const { kinds, devices } = submitted("round-robin", accelerators(2, 100, 1), jobs);
    expect(kinds).toEqual(["assigned", "assigned", "waiting", "assigned"]);
    expect(devices).toEqual([1, 1, -1, 0]);
  });
  it("refuses numbers that make no sense (PLN001), and its state stays as it was", () => {
    const dispatcher = new Dispatcher(accelerators(2), makeStrategy("load-balanced"), () => {});
    const before = dispatcher.fleet.freeBytes.slice();
    const bad: readonly Partial<Job>[] = [
      { memoryBytes: -5 },
      { memoryBytes: Number.NaN },
      { work: Number.NaN },
      { work: -1 },
      { work: Infinity },
      { priority: Number.NaN },
      { id: Number.NaN },
    ];
    for (const part of bad) {
      const submitted = dispatcher.submit({ ...job(1), ...part });
      expect(submitted).toMatchObject({ kind: "refused", fault: { code: "PLN001" } });
    }
    expect(dispatcher.fleet.freeBytes).toEqual(before);
    expect([...dispatcher.fleet.pendingNs, dispatcher.waiting]).toEqual([0, 0, 0]);
  });
  it("completes each job once, on its device (PLN008)", () => {
    const dispatcher = new Dispatcher(
      accelerators(2, 10, 4),
      makeStrategy("round-robin"),
      () => {},
    );
    const first = job(0, { memoryBytes: 6 });
    expect(dispatcher.submit(first)).toEqual({ kind: "assigned", device: 0 });
    const refused = { kind: "refused", fault: { code: "PLN008" } };
    expect(dispatcher.submit(first)).toMatchObject(refused);
    expect(dispatcher.complete(first, 1)).toMatchObject(refused);
    expect(dispatcher.complete(job(7), 0)).toMatchObject(refused);
    // What was reserved comes back, whatever is said of the job now.
    expect(dispatcher.complete(job(0, { memoryBytes: 1 }), 0)).toEqual({ kind: "completed" });
    expect(dispatcher.complete(first, 0)).toMatchObject(refused);
    expect([...dispatcher.fleet.freeBytes]).toEqual([10, 10]);
    expect([...dispatcher.fleet.depth]).toEqual([0, 0]);
  });
  it("refuses what no device could ever hold", () => {
    const tooLarge = job(0, { memoryBytes: 101 });
    expect(submitted("best-fit", accelerators(2), [tooLarge]).kinds).toEqual(["refused"]);
    const elsewhere = accelerators(2).map((d, i) => ({ ...d, memoryBytes: i === 0 ? 5 : 100 }));
    expect(submitted("best-fit", elsewhere, [job(0, { preferred: 0 })]).kinds).toEqual(["refused"]);
  });
  it("never reserves more than there is, ends with all of it free, and is the same twice", () => {
    const run = fc.record({
      seed: fc.nat(),
      count: fc.integer({ min: 1, max: 6 }),
      name: fc.constantFrom(...strategyNames),
    });
    fc.assert(
      fc.property(run, ({ seed, count, name }) => {
        const rng = new Rng(seed);
        const devices = accelerators(count).map((d) => ({
          ...d,
          memoryBytes: rng.integer(20, 100),
          speed: rng.integer(1, 3),
          queueDepth: rng.integer(0, 3),
        }));
        let atNs = 0;
        const arrivals = Array.from({ length: 80 }, (_, id): Arrival => {
          atNs += rng.integer(0, 8);
          const preferred = rng.uniform() < 0.2 ? { preferred: rng.integer(0, count - 1) } : {};
          return {
            id,
            atNs,
            work: rng.integer(0, 30),
            memoryBytes: rng.integer(0, 60),
            priority: rng.integer(0, 2),
            ...preferred,
          };
        });
        const report = simulateDispatch(devices, arrivals, name);
        expect(report.served + report.refused).toBe(80);
        report.devices.forEach((d, i) => {
          expect(d.mostBytes).toBeLessThanOrEqual(devices[i]!.memoryBytes);
          expect(d.utilisation).toBeLessThanOrEqual(1 + 1e-9);
        });
        expect(report.wait.mostNs).toBeGreaterThanOrEqual(report.wait.p99Ns);
        expect(simulateDispatch(devices, arrivals, name)).toEqual(report);
      }),
      { numRuns: 150 },
    );
  });
});

describe("simulation", () => {
  it("agrees with the formula of one server: M/M/1 waits rho / (1 - rho) of the work", () => {
    const arrivals = randomArrivals({
      count: 200_000,
      perSecond: 0.7e9 / 1000,
      workNs: 1000,
      memoryBytes: 0,
      seed: 5,
    });
    if (!arrivals.ok) throw new Error("no arrivals");
    const { wait, devices } = simulateDispatch(
      accelerators(1, 1, 1e9),
      arrivals.value,
      "round-robin",
    );
    expect(devices[0]!.utilisation).toBeCloseTo(0.7, 1);
    expect(Math.abs(wait.meanNs / ((0.7 / 0.3) * 1000) - 1)).toBeLessThan(0.08);
  });
  it("of 1,000,000 arrivals takes less than 10 s", () => {
    const count = 1_000_000;
    const spec = { count, perSecond: 7.2e6, workNs: 1000, memoryBytes: 10, seed: 1 };
    const arrivals = randomArrivals(spec);
    if (!arrivals.ok) throw new Error("no arrivals");
    // Of the processor's time: a busy machine is not a slow simulation.
    const begin = process.cpuUsage();
    const { served } = simulateDispatch(accelerators(8, 1000, 4), arrivals.value, "load-balanced");
    expect(process.cpuUsage(begin).user / 1e6).toBeLessThan(10);
    expect(served).toBe(count);
  });
  it("tells the strategies apart", () => {
    const spec = { count: 30_000, perSecond: 7.2e6, workNs: 1000, memoryBytes: 10, seed: 1 };
    const arrivals = randomArrivals(spec);
    if (!arrivals.ok) throw new Error("no arrivals");
    const run = (name: StrategyName, depth: number) =>
      simulateDispatch(accelerators(8, 1000, depth), arrivals.value, name);
    expect(run("load-balanced", 8).wait.meanNs).toBeLessThan(run("round-robin", 8).wait.meanNs);
    const [high, , low] = run("priority", 8).byPriority;
    expect(high!.wait.meanNs).toBeLessThan(0.5 * low!.wait.meanNs);
  });
  it("refuses numbers that make no sense (PLN001)", () => {
    const spec = { count: 10, perSecond: 1, workNs: 1, memoryBytes: 0, seed: 1 };
    for (const bad of [
      { count: 0 },
      { count: 1e18 },
      { perSecond: 0 },
      { workNs: Number.NaN },
      { memoryBytes: -1 },
    ]) {
      expect(randomArrivals({ ...spec, ...bad })).toMatchObject({
        diagnostics: [{ code: "PLN001" }],
      });
    }
  });
});

describe("migration", () => {
  it("ends where two devices are as busy but for the rounding of thirds", () => {
    const devices = accelerators(2).map((d) => ({ ...d, speed: 3, queueDepth: 9 }));
    const works = [7, 1, 9, 5, 3];
    const on = [0, 1, 1, 0, 1];
    const assigned = works.map((work, id) => ({ job: job(id, { work }), device: on[id]! }));
    expect(suggestMoves(devices, assigned, 0).length).toBeLessThan(works.length);
  });
  it("never raises the largest load, never exceeds memory, moves no pinned job, and ends", () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 0, max: 60 }),
        (seed, count, threshold) => {
          const rng = new Rng(seed);
          const devices = accelerators(count).map((d) => ({
            ...d,
            speed: rng.integer(1, 3),
            memoryBytes: rng.integer(20, 120),
            queueDepth: rng.integer(2, 20),
          }));
          const assigned: Assignment[] = [];
          const free = devices.map((d) => d.memoryBytes);
          for (let id = 0; id < 25; id++) {
            const device = rng.uniform() < 0.6 ? 0 : rng.integer(0, count - 1);
            const memoryBytes = rng.integer(0, 12);
            if (memoryBytes > free[device]!) continue;
            free[device]! -= memoryBytes;
            const pinned = rng.uniform() < 0.2 ? { preferred: device } : {};
            assigned.push({
              job: job(id, { work: rng.integer(0, 20), memoryBytes, ...pinned }),
              device,
            });
          }
          const moves = suggestMoves(devices, assigned, threshold);
          let now: readonly Assignment[] = assigned;
          for (const move of moves) {
            const before = loadsOf(devices, now);
            expect(before[move.from]!).toBeGreaterThan(threshold);
            now = now.map((a) => (a.job.id === move.job ? { ...a, device: move.to } : a));
            const after = loadsOf(devices, now);
            expect(Math.max(...after)).toBeLessThanOrEqual(Math.max(...before) + 1e-9);
            expect(after[move.to]!).toBeCloseTo(move.toNs, 6);
            const used = now
              .filter((a) => a.device === move.to)
              .reduce((sum, a) => sum + a.job.memoryBytes, 0);
            expect(used).toBeLessThanOrEqual(devices[move.to]!.memoryBytes);
            const depth = now.filter((a) => a.device === move.to).length;
            expect(depth).toBeLessThanOrEqual(devices[move.to]!.queueDepth + 1);
          }
          for (const { job: j, device } of now)
            if (j.preferred !== undefined) expect(device).toBe(j.preferred);
          expect(suggestMoves(devices, assigned, threshold)).toEqual(moves);
        },
      ),
      { numRuns: 200 },
    );
  });
});
