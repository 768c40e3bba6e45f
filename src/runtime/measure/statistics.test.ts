import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rankCorrelation } from "../../support/rank-correlation.ts";
import { Rng } from "../../support/rng.ts";
import {
  estimateRatio,
  geometricMean,
  median,
  quantile,
  rankCorrelationInterval,
  type TimingPair,
} from "./statistics.ts";

const times = fc.array(fc.double({ min: 1, max: 1e9, noNaN: true }), {
  minLength: 1,
  maxLength: 30,
});

describe("quantile and median", () => {
  test("known values", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(quantile([10, 20, 30, 40, 50], 0.1)).toBeCloseTo(14, 9);
    expect(quantile([5], 0.9)).toBe(5);
  });
  test("as many values lie below the median as above", () => {
    fc.assert(
      fc.property(times, (values) => {
        const m = median(values);
        const below = values.filter((v) => v < m).length;
        const above = values.filter((v) => v > m).length;
        expect(Math.max(below, above) * 2).toBeLessThanOrEqual(values.length);
      }),
    );
  });
  test("the input is left in its order", () => {
    const values = [3, 1, 2];
    median(values);
    expect(values).toEqual([3, 1, 2]);
  });
});

describe("geometricMean", () => {
  test("a win and the equal loss cancel", () => {
    expect(geometricMean([2, 0.5])).toBeCloseTo(1, 12);
    expect(geometricMean([8, 1, 1])).toBeCloseTo(2, 12);
  });
});

describe("estimateRatio", () => {
  /** Rounds with log-normal noise, and a drift of the machine that both sides share. */
  function rounds(trueRatio: number, count: number, rng: Rng): TimingPair[] {
    return Array.from({ length: count }, (_, i) => {
      const drift = 1 + i / count;
      const noise = () => Math.exp(0.05 * rng.normal());
      return { oursNs: 1000 * drift * noise(), peerNs: 1000 * trueRatio * drift * noise() };
    });
  }

  test("the interval holds the true ratio in about 95 of 100 trials", () => {
    const rng = new Rng(11);
    let held = 0;
    const trials = 200;
    for (let t = 0; t < trials; t++) {
      const { low, high } = estimateRatio(rounds(1.2, 25, rng), rng);
      if (low <= 1.2 && 1.2 <= high) held++;
    }
    expect(held / trials).toBeGreaterThan(0.88);
  });

  test("low <= ratio <= high, and no noise leaves no doubt", () => {
    fc.assert(
      fc.property(times, times, fc.integer(), (a, b, seed) => {
        const n = Math.min(a.length, b.length);
        const pairs = a.slice(0, n).map((oursNs, i) => ({ oursNs, peerNs: b[i]! }));
        const e = estimateRatio(pairs, new Rng(seed));
        expect(e.low).toBeLessThanOrEqual(e.high);
        expect(e.n).toBe(n);
      }),
      { numRuns: 20 },
    );
    const flat = Array.from({ length: 5 }, () => ({ oursNs: 2, peerNs: 3 }));
    expect(estimateRatio(flat, new Rng(1))).toEqual({
      oursNs: 2,
      peerNs: 3,
      ratio: 1.5,
      low: 1.5,
      high: 1.5,
      n: 5,
    });
  });
});

describe("rankCorrelation", () => {
  test("known values, with ties", () => {
    expect(rankCorrelation([1, 2, 3, 4], [10, 20, 30, 40])).toBe(1);
    expect(rankCorrelation([1, 2, 3, 4], [4, 3, 2, 1])).toBe(-1);
    expect(rankCorrelation([1, 2, 3], [5, 5, 5])).toBe(0);
    expect(rankCorrelation([1, 2, 2, 3], [1, 3, 2, 4])).toBeCloseTo(3 / Math.sqrt(10), 9);
  });
  test("any increasing change of scale leaves it, and its interval holds it", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 1000 }), { minLength: 3 }), (values) => {
        const other = values.map((v, i) => v * ((i * 7) % 5));
        const rho = rankCorrelation(values, other);
        const scaled = rankCorrelation(
          values.map((v) => Math.log(v)),
          other,
        );
        expect(scaled).toBeCloseTo(rho, 9);
      }),
    );
    const xs = Array.from({ length: 50 }, (_, i) => i);
    const { rho, low, high } = rankCorrelationInterval(
      xs,
      xs.map((x) => (x * 13) % 50),
      new Rng(1),
    );
    expect(low).toBeLessThanOrEqual(rho);
    expect(high).toBeGreaterThanOrEqual(rho);
  });
});
