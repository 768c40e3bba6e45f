import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { configureKernel } from "./configure.ts";
import { countKernel, forms } from "./counts.ts";
import { type KernelProblem, kernelClasses } from "./problem.ts";

const plain: KernelProblem = {
  kind: "gemm",
  type: "bf16",
  batch: 1,
  rows: 1,
  columns: 1,
  depth: 1,
};

describe("countKernel", () => {
  it("counts what a walk over tiles, steps and instructions meets", () => {
    const rng = new Rng(11);
    const walk = (length: number, step: number): number => {
      let trips = 0;
      for (let at = 0; at < length; at += step) trips++;
      return trips;
    };
    for (let i = 0; i < 300; i++) {
      const size = () => rng.integer(1, 70);
      const problem = { ...plain, batch: rng.integer(1, 3), keys: size() };
      const sized = { ...problem, rows: size(), columns: size(), depth: size() };
      const tile = { m: rng.integer(1, 20), n: rng.integer(1, 20), k: rng.integer(1, 20) };
      const small = { m: rng.integer(1, 4), n: rng.integer(1, 4), k: rng.integer(1, 4) };
      const counts = countKernel(sized, { form: "product", tile, instructionTile: small });
      let [tiles, iterations, instructions] = [0, 0, 0];
      const covered = new Set<number>();
      for (let b = 0; b < sized.batch; b++) {
        for (let r = 0; r < sized.rows; r += tile.m) {
          for (let c = 0; c < sized.columns; c += tile.n) {
            tiles++;
            const steps = walk(sized.depth, tile.k);
            iterations += steps;
            instructions +=
              steps * walk(tile.m, small.m) * walk(tile.n, small.n) * walk(tile.k, small.k);
            for (let y = r; y < Math.min(r + tile.m, sized.rows); y++) {
              for (let x = c; x < Math.min(c + tile.n, sized.columns); x++) {
                covered.add((b * sized.rows + y) * sized.columns + x);
              }
            }
          }
        }
      }
      expect(counts.tiles.reduce((x, y) => x * y)).toBe(tiles);
      expect(counts).toMatchObject({
        iterations,
        instructions,
        outputElements: covered.size,
        tileElements: tiles * tile.m * tile.n,
      });
    }
  });

  it("is a product of three ceilings, as for one wgmma of m64n256k16", () => {
    const tile = { m: 64, n: 256, k: 16 };
    const problem = { ...plain, rows: 4096, columns: 4096, depth: 4096 };
    const counts = countKernel(problem, { form: "product", tile, instructionTile: tile });
    expect(counts).toEqual({
      tiles: [64, 16, 1],
      stepsPerTile: 256,
      iterations: 64 * 16 * 256,
      instructions: 64 * 16 * 256,
      outputElements: 4096 * 4096,
      tileElements: 4096 * 4096,
    });
    const edge = countKernel({ ...problem, rows: 65 }, { form: "product", tile });
    expect(edge).toMatchObject({ tiles: [2, 16, 1], iterations: 2 * 16 * 256 });
    expect(edge).toMatchObject({ outputElements: 65 * 4096, tileElements: 128 * 4096 });
  });

  it("counts attention by queries and keys, passes by rows, flat work by elements", () => {
    const attention = { ...plain, rows: 100, keys: 1000, depth: 128, batch: 4 };
    const tile = { m: 64, n: 128, k: 128 };
    const instructionTile = { m: 64, n: 128, k: 16 };
    expect(countKernel(attention, { form: "attention", tile, instructionTile })).toMatchObject({
      tiles: [2, 1, 4],
      stepsPerTile: 8,
      iterations: 64,
      // Eight for the scores, eight for the values.
      instructions: 64 * 16,
    });
    const rows = { ...plain, kind: "softmax", rows: 7, columns: 1000 } as const;
    const row = { m: 1, n: 256, k: 1 };
    expect(countKernel(rows, { form: "rows", tile: row })).toMatchObject({
      tiles: [7, 1, 1],
      stepsPerTile: 4,
      outputElements: 7000,
      tileElements: 7 * 1024,
    });
    const sums = { ...rows, kind: "reduction" } as const;
    expect(countKernel(sums, { form: "rows", tile: row })).toMatchObject({
      outputElements: 7,
      tileElements: 7,
    });
    expect(countKernel(rows, { form: "elements", tile: row })).toMatchObject({
      tiles: [28, 1, 1],
      tileElements: 28 * 256,
    });
  });

  it("never has fewer elements in its tiles than in the result, on any machine and class", () => {
    const rng = new Rng(12);
    const machines = [...targets.values()].filter((t) => t.machine);
    const seen = new Set<string>();
    for (const kind of kernelClasses) {
      for (const target of machines) {
        const problem = {
          ...{ ...plain, kind, keys: rng.integer(1, 5000), rows: rng.integer(1, 3000) },
          ...{ columns: rng.integer(1, 3000), depth: rng.integer(1, 300) },
        };
        const choice = configureKernel(problem, target);
        if (!choice.ok) throw new Error(choice.diagnostics[0]!.message);
        const { counts, chosen } = choice.value;
        seen.add(chosen.form);
        expect(counts.tileElements).toBeGreaterThanOrEqual(counts.outputElements);
        expect(counts.iterations).toBeGreaterThanOrEqual(counts.stepsPerTile);
      }
    }
    expect([...seen].sort()).toEqual([...forms].sort());
  });
});
