/** What the quick look says is exact: against all points of a small box, and where intervals stay open. */
import { describe, expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { searchQuickly } from "./bounded-search.ts";
import type { Row } from "./row.ts";

const reach = 5;

function points(columns: number): readonly (readonly number[])[] {
  let all: readonly (readonly number[])[] = [[]];
  for (let c = 0; c < columns; c++) {
    const values = Array.from({ length: 2 * reach + 1 }, (_, i) => i - reach);
    all = all.flatMap((head) => values.map((v) => [...head, v]));
  }
  return all;
}

function valueAt(row: Row, point: readonly number[]): number {
  return point.reduce((sum, v, c) => sum + row[c]! * v, row.at(-1)!);
}

describe("searchQuickly", () => {
  it("contradicts no point, and finds points only", () => {
    const rng = new Rng(11);
    const seen = { empty: 0, found: 0 };
    for (let turn = 0; turn < 2000; turn++) {
      const columns = rng.integer(1, 3);
      const row = (): number[] => Array.from({ length: columns + 1 }, () => rng.integer(-3, 3));
      const equalities = Array.from({ length: rng.integer(0, 2) }, row);
      const multiples = equalities.map((e) => {
        const times = rng.integer(-2, 2);
        return e.map((v, c) => times * v + (c === columns ? rng.integer(-2, 2) : 0));
      });
      const rows = [...multiples, ...Array.from({ length: rng.integer(0, 3) }, row)];
      const holds = (p: readonly number[]): boolean =>
        equalities.every((r) => valueAt(r, p) === 0) && rows.every((r) => valueAt(r, p) >= 0);
      const found = searchQuickly(equalities, rows, columns);
      if (found === null) {
        seen.empty++;
        expect(points(columns).some(holds), JSON.stringify({ equalities, rows })).toBe(false);
      } else if (found) {
        seen.found++;
        expect(holds(found)).toBe(true);
      }
    }
    expect(seen.empty).toBeGreaterThan(200);
    expect(seen.found).toBeGreaterThan(200);
  });

  it("refutes a row that its equality contradicts where no interval ends", () => {
    // x = y and x < y; 3x - 3y + 1 <= -1 for x = y.
    expect(searchQuickly([[1, -1, 0]], [[-1, 1, -1]], 2)).toBeNull();
    expect(searchQuickly([[1, -1, 0]], [[-3, 3, -2]], 2)).toBeNull();
    expect(searchQuickly([[1, -1, 0]], [[-3, 3, 0]], 2)).toEqual([0, 0]);
    expect(searchQuickly([[2, -2, 2]], [[-1, 1, -1]], 2)).not.toBeNull();
  });
});
