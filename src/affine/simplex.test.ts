import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isRefuted, searchQuickly } from "./bounded-search.ts";
import { findPoint, solveExactly } from "./omega.ts";
import { evaluateRow, type Row } from "./row.ts";
import { minimizeRationally } from "./simplex.ts";
import { Work } from "./work.ts";

const reach = 4;
const columns = 3;

/** All points of a box around the origin. */
const box: number[][] = [];
for (let x = -reach; x <= reach; x++) {
  for (let y = -reach; y <= reach; y++) {
    for (let z = -reach; z <= reach; z++) box.push([x, y, z]);
  }
}

const rowOf = (most: number): fc.Arbitrary<number[]> =>
  fc.tuple(
    ...Array.from({ length: columns }, () => fc.integer({ min: -most, max: most })),
    fc.integer({ min: -9, max: 9 }),
  );

const system = fc.record({
  equalities: fc.array(rowOf(3), { maxLength: 2 }),
  inequalities: fc.array(rowOf(5), { maxLength: 5 }),
  row: rowOf(4),
  bounded: fc.boolean(),
});

const bounds: Row[] = [0, 1, 2].flatMap((c) =>
  [1, -1].map((v) => [...[0, 1, 2].map((k) => (k === c ? v : 0)), reach]),
);

function isInside(equalities: readonly Row[], inequalities: readonly Row[], point: number[]) {
  return (
    equalities.every((r) => evaluateRow(r, point) === 0) &&
    inequalities.every((r) => evaluateRow(r, point) >= 0)
  );
}

describe("the rational minimum", () => {
  it("bounds the integer one from below and is it where it says so", () => {
    let attained = 0;
    let open = 0;
    fc.assert(
      fc.property(system, ({ equalities, inequalities, row, bounded }) => {
        const rows = bounded ? [...inequalities, ...bounds] : inequalities;
        const start = findPoint(equalities, rows, columns, new Work());
        if (!start) return;
        const found = minimizeRationally({ equalities, inequalities: rows, start }, row)!;
        const values = box
          .filter((p) => isInside(equalities, rows, p))
          .map((p) => evaluateRow(row, p));
        if (found.kind === "unbounded") {
          open++;
          expect(bounded).toBe(false);
          const far = [...row.map((v) => -v)];
          far[columns]! -= 1_000_000;
          expect(findPoint(equalities, [...rows, far], columns, new Work())).not.toBeNull();
          return;
        }
        expect(found.ceiling).toBeLessThanOrEqual(Math.min(evaluateRow(row, start), ...values));
        const below = row.map((v) => -v);
        below[columns]! += found.ceiling - 1;
        expect(findPoint(equalities, [...rows, below], columns, new Work())).toBeNull();
        if (!found.attained) return;
        attained++;
        if (bounded) expect(Math.min(...values)).toBe(found.ceiling);
      }),
      { numRuns: 1500, seed: 3 },
    );
    expect(attained).toBeGreaterThan(150);
    expect(open).toBeGreaterThan(100);
  });

  it("has no answer where numbers grow too large", () => {
    const big = 2 ** 51;
    const program = { equalities: [], inequalities: [[big, 3, 0]], start: [big, 0] };
    expect(minimizeRationally(program, [1, 1, 0])).toBeUndefined();
  });
});

describe("the quick look", () => {
  it("is never wrong and decides most", () => {
    let open = 0;
    let asked = 0;
    fc.assert(
      fc.property(system, ({ equalities, inequalities, bounded }) => {
        const rows = bounded ? [...inequalities, ...bounds] : inequalities;
        const quick = searchQuickly(equalities, rows, columns);
        const exact = solveExactly(equalities, rows, columns, new Work());
        asked++;
        if (quick === undefined) open++;
        else expect(quick === null).toBe(exact === null);
        if (quick) expect(isInside(equalities, rows, quick)).toBe(true);
        if (isRefuted(equalities, rows, columns)) expect(exact).toBeNull();
        if (bounded) {
          expect(exact === null).toBe(!box.some((p) => isInside(equalities, rows, p)));
        }
      }),
      { numRuns: 1500, seed: 5 },
    );
    expect(open * 2).toBeLessThan(asked);
  });

  it("leaves numbers that could round to the exact test", () => {
    expect(searchQuickly([], [[2 ** 40, -1]], 1)).toBeUndefined();
    expect(findPoint([], [[2 ** 40, -1]], 1, new Work())).toEqual([1]);
  });
});
