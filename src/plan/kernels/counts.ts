/**
 * What a configuration makes of a problem, counted: tiles, iterations of the main loop, instructions and
 * elements. Plain products of ceilings over the extents; the tests walk small grids element by element.
 */
import type { KernelConfiguration } from "./configuration.ts";
import type { KernelProblem } from "./problem.ts";

/** What a tile stands for, and what its steps go along. */
export const forms = ["product", "attention", "rows", "elements"] as const;
/**
 * `product`: m x n of the result, steps of k along the summed extent. `attention`: m queries, steps of n
 * keys. `rows`: m rows, steps of n along them. `elements`: n elements of the flat tensor, one step.
 */
export type Form = (typeof forms)[number];

export interface KernelCounts {
  /** Tiles of the result down its rows, across its columns, and over the batch. */
  readonly tiles: readonly [down: number, across: number, batch: number];
  /** Trips of the main loop for one tile. */
  readonly stepsPerTile: number;
  /** Trips of the main loop for all tiles. */
  readonly iterations: number;
  /** Matrix instructions of all trips; absent on vector units. */
  readonly instructions?: number;
  readonly outputElements: number;
  /** Elements of all tiles: what lies over the edges is computed and thrown away. */
  readonly tileElements: number;
}

export function countKernel(
  problem: KernelProblem,
  config: Pick<KernelConfiguration, "form" | "tile" | "instructionTile">,
): KernelCounts {
  const { form, tile, instructionTile } = config;
  const { tiles, stepsPerTile, elementsOfTile } = gridOf(problem, config);
  const count = tiles[0] * tiles[1] * tiles[2];
  const iterations = count * stepsPerTile;
  const instructions = instructionTile && iterations * instructionsOf(form, tile, instructionTile);
  return {
    tiles,
    stepsPerTile,
    iterations,
    ...(instructions !== undefined && { instructions }),
    outputElements: outputElements(problem),
    tileElements: count * elementsOfTile,
  };
}

type Grid = Pick<KernelCounts, "tiles" | "stepsPerTile"> & { readonly elementsOfTile: number };

function gridOf(
  { batch, rows, columns, depth, keys = 1, kind }: KernelProblem,
  { form, tile: { m, n, k } }: Pick<KernelConfiguration, "form" | "tile">,
): Grid {
  const down = Math.ceil(rows / m);
  switch (form) {
    case "product":
      return {
        tiles: [down, Math.ceil(columns / n), batch],
        stepsPerTile: Math.ceil(depth / k),
        elementsOfTile: m * n,
      };
    case "attention":
      return {
        tiles: [down, 1, batch],
        stepsPerTile: Math.ceil(keys / n),
        elementsOfTile: m * depth,
      };
    case "rows": {
      const steps = Math.ceil(columns / n);
      const elementsOfTile = kind === "reduction" ? m : m * n * steps;
      return { tiles: [down, 1, batch], stepsPerTile: steps, elementsOfTile };
    }
    case "elements":
      return {
        tiles: [Math.ceil((batch * rows * columns) / n), 1, 1],
        stepsPerTile: 1,
        elementsOfTile: n,
      };
  }
}

type Extents = KernelConfiguration["tile"];

/** Of one step. Attention multiplies queries by keys, then the scores by values. */
function instructionsOf(form: Form, tile: Extents, i: Extents): number {
  const cover = (m: number, n: number, k: number): number =>
    Math.ceil(m / i.m) * Math.ceil(n / i.n) * Math.ceil(k / i.k);
  return form === "attention"
    ? cover(tile.m, tile.n, tile.k) + cover(tile.m, tile.k, tile.n)
    : cover(tile.m, tile.n, tile.k);
}

export function outputElements({ kind, batch, rows, columns, depth }: KernelProblem): number {
  if (kind === "reduction") return batch * rows;
  return batch * rows * (kind.startsWith("attention") ? depth : columns);
}
