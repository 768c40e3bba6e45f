import fc from "fast-check";
import { expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { factorThin, type Matrix } from "./low-rank.ts";

function multiply(a: Matrix, b: Matrix): Matrix {
  const data = new Float64Array(a.rows * b.columns);
  for (let i = 0; i < a.rows; i++) {
    for (let j = 0; j < b.columns; j++) {
      let sum = 0;
      for (let k = 0; k < a.columns; k++) {
        sum += a.data[i * a.columns + k]! * b.data[k * b.columns + j]!;
      }
      data[i * b.columns + j] = sum;
    }
  }
  return { rows: a.rows, columns: b.columns, data };
}

const random = (rng: Rng, rows: number, columns: number): Matrix => ({
  rows,
  columns,
  data: Float64Array.from({ length: rows * columns }, () => rng.uniform() - 0.5),
});

function longest({ rows, columns, data }: Matrix): number {
  const lengths = Array.from({ length: columns }, (_, j) =>
    Math.hypot(...Array.from({ length: rows }, (_, i) => data[i * columns + j]!)),
  );
  return Math.max(...lengths);
}

const size = fc.integer({ min: 2, max: 12 });
const sizes = fc.tuple(size, size, fc.integer({ min: 1, max: 4 }), fc.integer());

it("misses no column by more than the share, and saves work", () => {
  fc.assert(
    fc.property(sizes, ([rows, columns, rank, seed]) => {
      const rng = new Rng(seed);
      const matrix = multiply(random(rng, rows, rank), random(rng, rank, columns));
      const noisy = { ...matrix, data: matrix.data.map((x) => x + 1e-5 * (rng.uniform() - 0.5)) };
      const found = factorThin(noisy, 0.01);
      if (!found) return;
      expect(found.left.columns * (rows + columns)).toBeLessThan(rows * columns);
      const product = multiply(found.left, found.right);
      const gap = { ...noisy, data: noisy.data.map((x, i) => x - product.data[i]!) };
      expect(longest(gap)).toBeLessThanOrEqual(0.0101 * longest(noisy));
    }),
  );
});

it("finds the rank of a product, and nothing in a matrix without one", () => {
  const rng = new Rng(3);
  const thin = multiply(random(rng, 40, 3), random(rng, 3, 50));
  expect(factorThin(thin, 1e-6)?.left.columns).toBe(3);
  expect(factorThin(random(rng, 30, 30), 1e-3)).toBeUndefined();
  expect(factorThin({ rows: 4, columns: 4, data: new Float64Array(16) }, 1e-3)).toBeUndefined();
});
