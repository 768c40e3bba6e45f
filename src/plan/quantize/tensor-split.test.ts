import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type SplitDevice, splitTensors } from "./tensor-split.ts";

const decoder = {
  ...{ layers: 80, hidden: 8192, kvHeads: 8, headWidth: 128 },
  ...{ intermediate: 28672, vocabulary: 128256 },
};
const load = { weightBytes: 40e9, cacheBytes: 8e9, decoder };
const alike = (count: number): readonly SplitDevice[] =>
  Array.from({ length: count }, () => ({ budgetBytes: 60e9, bytesPerNs: 1000 }));

function heldBytes({ parts }: ReturnType<typeof splitTensors>): readonly number[] {
  return parts.map((p) => p.weightShare * load.weightBytes + p.cacheShare * load.cacheBytes);
}

describe("a tensor split", () => {
  it("is even where the KV heads divide", () => {
    for (const count of [1, 2, 4, 8]) {
      for (const part of splitTensors(load, alike(count)).parts) {
        expect(part.kvHeads).toBe(8 / count);
        expect(part.cacheShare).toBeCloseTo(1 / count, 9);
        expect(part.weightShare).toBeCloseTo(1 / count, 6);
      }
    }
  });

  it("gives whole heads where they do not divide: three devices hold 3, 3 and 2 of 8", () => {
    const split = splitTensors(load, alike(3));
    expect(split.parts.map((p) => p.kvHeads).sort()).toEqual([2, 3, 3]);
    expect(split.parts.reduce((n, p) => n + p.cacheShare, 0)).toBeCloseTo(1, 9);
    // What is cut anywhere makes up for it: all devices hold the same bytes.
    for (const bytes of heldBytes(split)) expect(bytes / (48e9 / 3)).toBeCloseTo(1, 6);
  });

  it("holds the cache of a head twice where devices outnumber heads", () => {
    const split = splitTensors(load, alike(16));
    for (const part of split.parts) expect(part).toMatchObject({ kvHeads: 1, cacheShare: 1 / 8 });
    // Keys' and values' projections stand twice as well: 80 x 2 x 8192 x 1024 of 70e9 and a bit.
    const weights = split.parts.reduce((n, p) => n + p.weightShare, 0);
    expect(weights).toBeGreaterThan(1.015);
    expect(weights).toBeLessThan(1.025);
  });

  it("gives more to the faster and to the larger device", () => {
    const faster = splitTensors(load, [
      { budgetBytes: 60e9, bytesPerNs: 3000 },
      { budgetBytes: 60e9, bytesPerNs: 1000 },
    ]);
    const [most, least] = heldBytes(faster);
    expect(most! / least!).toBeCloseTo(3, 3);
    const larger = splitTensors(load, [
      { budgetBytes: 15e9, bytesPerNs: 1000 },
      { budgetBytes: 40e9, bytesPerNs: 1000 },
    ]);
    // An even split would not fit the smaller one.
    expect(larger.shortfallBytes).toBe(0);
    expect(heldBytes(larger)[0]).toBeLessThanOrEqual(15e9 + 1);
  });

  it("is as fast as any assignment of heads that force finds, and fits where one does", () => {
    const device = fc.record({
      budgetBytes: fc.integer({ min: 1e9, max: 40e9 }),
      bytesPerNs: fc.integer({ min: 100, max: 4000 }),
    });
    const devices = fc.array(device, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(devices, (set) => {
        const best = byForce(set);
        const split = splitTensors(load, set);
        expect(split.shortfallBytes === 0).toBe(best < Infinity);
        if (best === Infinity) return;
        const times = heldBytes(split).map((bytes, i) => bytes / set[i]!.bytesPerNs);
        expect(Math.max(...times) / best).toBeLessThan(1.001);
        heldBytes(split).forEach((bytes, i) => {
          expect(bytes).toBeLessThanOrEqual(set[i]!.budgetBytes + 1);
        });
      }),
      { numRuns: 200, seed: 9 },
    );
  });

  it("without a decoder's sizes cuts everything anywhere", () => {
    const split = splitTensors({ weightBytes: 9e9, cacheBytes: 0 }, alike(3));
    for (const part of split.parts) expect(part.weightShare).toBeCloseTo(1 / 3, 9);
  });
});

/** The least time over all ways to give 8 heads away, the rest poured where time is least. */
function byForce(devices: readonly SplitDevice[]): number {
  const [queries, keys] = [2 * 8192 * 8192, 2 * 8192 * 1024];
  const layer = queries + keys + 3 * 8192 * 28672;
  const unit = (load.weightBytes * (queries + keys)) / layer / 8 + load.cacheBytes / 8;
  const rest = load.weightBytes * (1 - (queries + keys) / layer);
  let best = Infinity;
  for (const heads of compositions(8, devices.length)) {
    const fits = devices.every((d, i) => heads[i]! * unit <= d.budgetBytes);
    const room = devices.reduce((n, d, i) => n + d.budgetBytes - heads[i]! * unit, 0);
    if (!fits || room < rest) continue;
    let [low, high] = [0, 1e12];
    for (let i = 0; i < 100; i++) {
      const ns = (low + high) / 2;
      const free = devices.map(
        (d, j) => Math.min(ns * d.bytesPerNs, d.budgetBytes) - heads[j]! * unit,
      );
      const enough = free.every((f) => f >= 0) && free.reduce((a, b) => a + b, 0) >= rest;
      if (enough) high = ns;
      else low = ns;
    }
    best = Math.min(best, high);
  }
  return best;
}

function compositions(total: number, parts: number): readonly (readonly number[])[] {
  if (parts === 1) return [[total]];
  return Array.from({ length: total + 1 }, (_, first) =>
    compositions(total - first, parts - 1).map((rest) => [first, ...rest]),
  ).flat();
}
