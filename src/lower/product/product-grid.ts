/**
 * Which tiles a block takes: the axes of the grid, and the walks over tiles that a block makes one after the other.
 *
 *   blocks 0             one tile a block, or a cluster
 *   blocks B             one walk: tile B * turn + block, as long as there are some
 *   blocks B parts P     two: first the tiles that do not fill a round, each by the P blocks of a cluster, a part of
 *                        the depth each; then the others, in whole rounds, as above
 *
 * Tiles that are shared come first, so that what their blocks send to each other is written before anything
 * else is in that part of shared memory, and no block waits for another at the end. Tiles are counted by batch,
 * groups of rows, columns and rows within the group: the last moves fastest.
 */
import type { GridAxis } from "../../program/program.ts";
import type { MultiplyDirective } from "../../schedule/directive.ts";
import { sharedTiles } from "../../schedule/products/product-blocks.ts";
import { type Condition, less } from "../../semantics/condition.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  sub,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRange, type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import type { Names } from "../block.ts";
import type { Turns } from "./copies.ts";

/** Where a block's tile is: batch, group of rows, columns, row of the group. */
export type TilePlace = readonly [IndexExpr, IndexExpr, IndexExpr, IndexExpr];

/** Tiles that a block takes one after the other, or one. */
export interface TileWalk {
  readonly at: TilePlace;
  readonly turns: Turns | undefined;
  readonly part: IndexExpr | undefined;
  /** Of the blocks that walk at all. */
  readonly given: readonly Condition[];
  /** Tiles that the block has shared with others of its cluster before. */
  readonly sharedBefore: IndexExpr;
  /** Of the variables in them. */
  readonly ranges: ReadonlyMap<string, IndexRange>;
}

export interface ProductGrid {
  readonly axes: readonly GridAxis[];
  readonly walks: readonly TileWalk[];
  /** The axis along which blocks are neighbours. */
  readonly nearest: IndexExpr;
}

/** Problems, groups of tiles below each other, tiles beside each other, tiles of a group. */
type TileCounts<T> = readonly [batch: T, down: T, across: T, below: T];
type Extents = TileCounts<number>;

/** @param ranges of the symbols in counts that are open */
export function productGrid(
  directive: Pick<MultiplyDirective, "blocks" | "parts">,
  counts: TileCounts<IndexExpr>,
  { names, ranges }: { readonly names: Names; readonly ranges: IndexRanges },
): ProductGrid {
  const making = new GridMaking(names);
  if (directive.blocks === 0) return making.tileABlock(counts, directive.parts, ranges);
  // Only where nothing is open blocks go on to further tiles (product-limits.ts).
  const extents = counts.map((e) => constantValue(e)!) as unknown as Extents;
  return directive.parts > 1
    ? making.sharedRound(extents, directive)
    : making.rounds(extents, directive.blocks);
}

const none = { given: [], sharedBefore: constant(0), turns: undefined, part: undefined } as const;

class GridMaking {
  readonly #names: Names;
  readonly #axes: GridAxis[] = [];
  readonly #ranges = new Map<string, IndexRange>();

  constructor(names: Names) {
    this.#names = names;
  }

  #grid(walks: readonly TileWalk[]): ProductGrid {
    const nearest = variable(this.#axes.at(-1)!.name);
    return { axes: this.#axes, walks, nearest };
  }

  #axis(stem: string, extent: number, size: IndexExpr = constant(extent)): IndexExpr {
    const name = this.#names.fresh(stem);
    this.#ranges.set(name, { min: 0, max: extent - 1 });
    this.#axes.push({ name, extent: size });
    return variable(name);
  }

  tileABlock(counts: TileCounts<IndexExpr>, parts: number, ranges: IndexRanges): ProductGrid {
    const stems = ["batch", "down", "across", "below"] as const;
    const at = counts.map((count, i) => {
      const most = rangeOf(count, ranges).max;
      return most === 1 ? constant(0) : this.#axis(stems[i]!, most, count);
    }) as unknown as TilePlace;
    // Blocks of a cluster are neighbours along the last axis.
    const part = parts > 1 ? this.#axis("part", parts) : undefined;
    const block = { name: this.#names.fresh("block"), extent: constant(1) };
    if (this.#axes.length === 0) this.#axes.push(block);
    return this.#grid([{ ...none, at, part, ranges: this.#ranges }]);
  }

  rounds(extents: Extents, blocks: number): ProductGrid {
    const tiles = extents.reduce((a, b) => a * b, 1);
    const [block, turn] = [this.#axis("block", blocks), this.#names.fresh("turn")];
    this.#ranges.set(turn, { min: 0, max: Math.ceil(tiles / blocks) - 1 });
    const isEven = tiles % blocks === 0;
    const count = isEven ? constant(tiles / blocks) : ceilDiv(sub(tiles, block), blocks);
    const at = tileAt(add(mul(blocks, variable(turn)), block), extents);
    return this.#grid([{ ...none, at, turns: { variable: turn, count }, ranges: this.#ranges }]);
  }

  sharedRound(
    extents: Extents,
    { blocks, parts }: Pick<MultiplyDirective, "blocks" | "parts">,
  ): ProductGrid {
    const tiles = extents.reduce((a, b) => a * b, 1);
    const clusters = blocks / parts;
    const shared = sharedTiles({ blocks }, tiles);
    const [whole, rounds] = [tiles - shared, (tiles - shared) / blocks];
    const cluster = this.#axis("cluster", clusters);
    const part = this.#axis("part", parts);
    const turn = this.#names.fresh("turn");
    const block = add(mul(parts, cluster), part);
    // Both walks spell the place of a tile of any number, so that it is seen to be the same function of it.
    const first = { min: -whole, max: shared - 1 };
    const sharing = floorDiv(sub(clusters + shared - 1, cluster), clusters);
    return this.#grid([
      {
        ...none,
        at: tileAt(add(whole, cluster), extents),
        part,
        given: [less(cluster, constant(shared))],
        ranges: new Map(this.#ranges).set(cluster.key, first),
      },
      {
        ...none,
        at: tileAt(add(mul(blocks, variable(turn)), block), extents),
        turns: { variable: turn, count: constant(rounds) },
        sharedBefore: shared === clusters ? constant(1) : sharing,
        ranges: new Map(this.#ranges).set(turn, { min: 0, max: rounds }),
      },
    ]);
  }
}

/** The digits of a tile's number; the outermost that counts needs no remainder. */
function tileAt(number: IndexExpr, extents: Extents): TilePlace {
  const outermost = extents.findIndex((extent) => extent > 1);
  let rest = number;
  const at: IndexExpr[] = [];
  for (let i = extents.length - 1; i >= 0; i--) {
    const extent = extents[i]!;
    at.unshift(i < outermost ? constant(0) : i === outermost ? rest : mod(rest, extent));
    rest = floorDiv(rest, extent);
  }
  return at as unknown as TilePlace;
}
