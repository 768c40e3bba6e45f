import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Interval, packIntervals } from "./pack-intervals.ts";

const intervals = fc.array(
  fc
    .tuple(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 0, max: 5 }),
    )
    .map(([size, first, span]): Interval => ({ size, first, last: first + span })),
  { minLength: 1, maxLength: 25 },
);

describe("packIntervals", () => {
  it("never lets two live blocks overlap and reports the true peak and bound", () => {
    fc.assert(
      fc.property(intervals, (list) => {
        const { offsets, peak, lowerBound } = packIntervals(list, 8);
        list.forEach((a, i) => {
          expect(offsets[i]! % 8).toBe(0);
          expect(offsets[i]! + a.size).toBeLessThanOrEqual(peak);
          list.slice(i + 1).forEach((b, k) => {
            const j = i + 1 + k;
            if (a.first > b.last || b.first > a.last) return;
            const apart =
              offsets[i]! + a.size <= offsets[j]! || offsets[j]! + b.size <= offsets[i]!;
            expect(apart).toBe(true);
          });
        });
        expect(lowerBound).toBeLessThanOrEqual(peak);
      }),
      { numRuns: 60 },
    );
  });

  it("reaches the bound on a chain of layers with a skip connection", () => {
    const chain = Array.from({ length: 40 }, (_, i) => ({
      size: 64 * (1 + ((i * 7) % 5)),
      first: i,
      last: i + 1 + (i % 6 === 0 ? 4 : 0),
    }));
    const { peak, lowerBound } = packIntervals(chain, 64);
    expect(peak / lowerBound).toBeLessThanOrEqual(1.1);
  });
});
