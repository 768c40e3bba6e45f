import { describe, expect, it } from "vitest";
import { unitRoot } from "./unit-roots.ts";

describe("unitRoot", () => {
  it("is cos and sin, of any whole turns", () => {
    for (let n = 1; n <= 60; n++) {
      for (let j = -n; j < 2 * n; j++) {
        const [c, s] = unitRoot(j, n);
        expect(c).toBeCloseTo(Math.cos((2 * Math.PI * j) / n), 14);
        expect(s).toBeCloseTo(Math.sin((2 * Math.PI * j) / n), 14);
      }
    }
  });

  it("is exact at quarters, without signed zeros, and symmetric", () => {
    for (const n of [4, 12, 20, 512]) {
      const q = n / 4;
      expect([0, q, 2 * q, 3 * q].map((j) => unitRoot(j, n))).toEqual([
        [1, 0],
        [0, 1],
        [-1, 0],
        [0, -1],
      ]);
      for (let j = 1; j < n; j++) {
        const [[c, s], [mc, ms]] = [unitRoot(j, n), unitRoot(n - j, n)];
        expect([mc, ms]).toEqual([c, s === 0 ? 0 : -s]);
      }
    }
  });
});
