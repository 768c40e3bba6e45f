/** The closed form of tile footprints against listing all values and against the library's own count. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BoxImage } from "./box-image.ts";
import { within } from "./build.ts";
import { add, scale } from "./expression.ts";
import { applyMap, countPoints, makeMap, makeSet } from "./index.ts";

type Terms = readonly (readonly [step: number, trips: number])[];

function imageOf(terms: Terms): BoxImage {
  const image = new BoxImage();
  for (const [step, trips] of terms) image.add(step, trips);
  return image;
}

function listed(terms: Terms): ReadonlySet<number> {
  return terms.reduce<ReadonlySet<number>>(
    (values, [step, trips]) => {
      const next = new Set<number>();
      for (const v of values) for (let i = 0; i < trips; i++) next.add(v + step * i);
      return next;
    },
    new Set([0]),
  );
}

const terms = (step: number, trips: number): fc.Arbitrary<Terms> =>
  fc.array(fc.tuple(fc.integer({ min: -step, max: step }), fc.integer({ min: 1, max: trips })), {
    maxLength: 4,
  });

describe("values of a box under a linear form", () => {
  it("are as many as listing finds", () => {
    fc.assert(
      fc.property(terms(12, 4), (drawn) => {
        expect(imageOf(drawn).count()).toBe(listed(drawn).size);
      }),
      { numRuns: 2000 },
    );
  });

  it("of splits and windows are exact however long", () => {
    const tiles = fc.record({
      stride: fc.integer({ min: 1, max: 4 }),
      kernel: fc.integer({ min: 1, max: 7 }),
      dilation: fc.integer({ min: 1, max: 3 }),
      factor: fc.integer({ min: 1, max: 16 }),
      outer: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(tiles, ({ stride, kernel, dilation, factor, outer }) => {
        const drawn: Terms = [
          [stride * factor, outer],
          [stride, factor],
          [dilation % stride === 0 || stride % dilation === 0 ? dilation : 1, kernel],
        ];
        expect(imageOf(drawn).count()).toBe(listed(drawn).size);
      }),
      { numRuns: 500 },
    );
  });

  it("are never more than counted where they interleave beyond listing", () => {
    fc.assert(
      fc.property(terms(60, 30), (drawn) => {
        const exact = listed(drawn);
        const image = imageOf(drawn);
        expect(image.count()).toBeGreaterThanOrEqual(exact.size);
        expect(image.count()).toBeLessThanOrEqual(image.span());
        expect(image.span()).toBe(Math.max(...exact) - Math.min(...exact) + 1);
      }),
      { numRuns: 300 },
    );
  });

  it("are the points of the image as a set", () => {
    fc.assert(
      fc.property(terms(9, 4), (drawn) => {
        const dims = drawn.map((_, k) => `i${k}`);
        const box = makeSet({
          tuple: "S",
          dims,
          where: drawn.flatMap(([, trips], k) => within(0, dims[k]!, trips)),
        });
        const value = add(0, ...drawn.map(([step], k) => scale(step, dims[k]!)));
        const map = makeMap({ from: { tuple: "S", dims }, to: { values: [value] } });
        const counted = countPoints(applyMap(map, box));
        expect(counted).toEqual({ kind: "known", value: imageOf(drawn).count() });
      }),
      { numRuns: 60 },
    );
  });

  it("under a divisor are floors", () => {
    const drawn: Terms = [
      [8, 3],
      [1, 8],
    ];
    expect(imageOf(drawn).count(8)).toBe(3);
    expect(imageOf(drawn).count(5)).toBe(5);
    expect(imageOf([[16, 4]]).count(8)).toBe(4);
  });
});
