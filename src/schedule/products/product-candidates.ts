/**
 * Candidate tiles of a product by blocks: for each machine that copies asynchronously, blocks of one to
 * eight warps, each warp with 32 or 64 rows and columns (16 where there are no more), depths and numbers of
 * stages as far as shared memory holds them. Deterministic; prices and the choice are elsewhere.
 */
import type { Region } from "../../region/nest.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { tf32Products } from "../../target/allowing.ts";
import type { BlockLimits, Target } from "../../target/target.ts";
import type { MultiplyDirective } from "../directive.ts";
import { fitsWidened, sumsApart } from "./apart-sums.ts";
import { blockBytes } from "./block-bytes.ts";
import { exchangedBytes, productTiles, sharedTiles } from "./product-blocks.ts";
import {
  hasPrologue,
  isOpen,
  isWhole,
  type ProductForm,
  productForm,
  resultColumns,
  resultParts,
} from "./product-form.ts";
import { multiplyFault } from "./product-limits.ts";
import { streamedDepth } from "./stream-operands.ts";

/** Rows and columns of a warp, and warps down and across. */
const warpTiles: Readonly<Record<"fma" | "mma", readonly (readonly [number, number])[]>> = {
  fma: [
    [32, 64],
    [32, 32],
    [16, 32],
  ],
  mma: [
    [64, 64],
    [64, 32],
    [32, 64],
    [32, 32],
    [16, 64],
    [16, 32],
    [16, 16],
  ],
};
const warpGrids = [
  [4, 2],
  [2, 4],
  [2, 2],
  [1, 4],
  [4, 1],
  [1, 2],
  [2, 1],
  [1, 1],
] as const;
const threadDepths = [8, 16, 32] as const;
const stageCounts = [2, 3, 4, 6] as const;
type Tile = readonly [rows: number, columns: number, depth: number];

/** Bytes of a step's depth that warps multiply, as wide as a swizzle spans. */
const warpDepthBytes = [64, 128] as const;

/** Products below so many multiplications run as other candidates do. */
const leastWork = 4096;

export function enumerateProducts(region: Region, target: Target): readonly MultiplyDirective[] {
  const limits = target.blocks;
  const [statement] = region.statements;
  if (!limits || region.statements.length > 2 || !target.capabilities.has("cp.async")) return [];
  const form = productForm(region, statement!);
  if (typeof form === "string" || !isWorth(form)) return [];
  if (region.statements.length > 1 && !form.fold) return [];
  const has = (name: string): boolean => target.capabilities.has(name);
  const name = statement!.name;
  const found = form.dtype === "f32" ? stagedProducts("fma", form, name, limits) : [];
  const isExact = form.dtype !== "f32";
  if (!(has("mma") && has("ldmatrix") && (isExact || has(tf32Products)))) return found;
  if (multipliesBy(form, limits)) {
    const isWidened = sumsApart(form) && !has("fp8-mma");
    const staged = stagedProducts("mma", form, name, limits);
    found.push(...(isWidened ? staged.filter(fitsWidened) : staged));
  }
  found.push(...streamedProducts(form, name, target));
  const turned = form.rows.extent <= fewRows ? productForm(region, statement!, true) : form;
  if (typeof turned !== "string" && turned !== form)
    found.push(...streamedProducts(turned, name, target));
  return found;
}

/** Whether the machine's warps multiply such operands: floats of 8 bits are not everywhere. */
function multipliesBy({ dtype }: ProductForm, { warpMatrixFlopsPerNs }: BlockLimits): boolean {
  return dtype in warpMatrixFlopsPerNs;
}

/** All threads of a block copy, and its threads or warps multiply. */
function stagedProducts(
  by: "fma" | "mma",
  form: ProductForm,
  statement: string,
  limits: BlockLimits,
): MultiplyDirective[] {
  const bytes = dtypes[form.dtype].bits / 8;
  const depths = by === "fma" ? threadDepths : warpDepthBytes.map((n) => n / bytes);
  const found: MultiplyDirective[] = [];
  for (const [tall, wide] of warpTiles[by]) {
    for (const warps of warpGrids) {
      const [rows, columns] = [tall * warps[0], wide * warps[1]];
      if (
        isUnproved([rows, 1], form) ||
        isWasteful(rows, form.rows.extent, tall) ||
        isWasteful(columns, form.columns.extent, wide)
      )
        continue;
      for (const depth of depths) {
        for (const stages of stageCounts) {
          if (stages > depthSteps(form, depth) + 1) continue;
          const swizzle = by === "fma" ? 0 : depth * bytes === 64 ? 64 : 128;
          const tile = [rows, columns, depth] as const;
          const d = {
            kind: "multiply",
            statement,
            by,
            tile,
            warps,
            stages,
            swizzle,
            group: 1,
            results: 0,
            blocks: 0,
            teams: 1,
            parts: 1,
            cluster: 1,
            ahead: false,
            swapped: false,
          } as const;
          if (blockBytes(d, form) > limits.sharedBytesPerBlock) continue;
          if (multiplyFault(d, form) === undefined) found.push(d);
        }
      }
    }
  }
  return found;
}

/** Warpgroups that multiply, rows of each, columns, and tiles worked through together. */
const groupCounts = [2, 1] as const;
const groupRows = [64, 128] as const;
const groupColumns = [256, 192, 160, 128, 96, 64, 48, 32, 16] as const;
/** Where prices are the same the first is taken: a slot's number is then bits of the step's. */
const groupStages = [16, 8, 4, 12, 6, 5, 3] as const;
const [usualRaster, mostRaster] = [8, 16] as const;
/** Rows up to which the columns may take their place: an instruction has 64 rows, but from 8 columns on. */
const fewRows = 48;
/** Parts of results in shared memory: one is filled while the other is copied out. */
const gatherings = 2;

/** None, and of the numbers that divide the tiles below each other the one that is nearest to the usual. */
function rastersOf(tall: number): readonly number[] {
  const whole = Array.from({ length: mostRaster - 1 }, (_, i) => i + 2).filter(
    (n) => tall % n === 0,
  );
  const away = (n: number): number => Math.abs(Math.log2(n / usualRaster));
  const best = whole.sort((a, b) => away(a) - away(b))[0];
  return best === undefined ? [1] : [best, 1];
}

/** Rows and columns from which on both operands are most of what the near cache is asked for. */
const sharedExtent = 512;

/** Blocks that bring a tile together: where operands do not stay in the near cache, which is asked less then. */
function clustersOf(
  { rows, columns, batch, depth, dtype }: ProductForm,
  target: Target,
): readonly number[] {
  const bytes = ((rows.extent + columns.extent) * depth.extent * dtypes[dtype].bits) / 8;
  const isWorth =
    target.capabilities.has("cluster") &&
    !isOpenTiled({ rows, columns, batch }) &&
    Math.min(rows.extent, columns.extent) >= sharedExtent &&
    bytes > target.blocks!.nearBytes;
  return isWorth ? [1, 2] : [1];
}

function streamedProducts(
  form: ProductForm,
  statement: string,
  target: Target,
): readonly MultiplyDirective[] {
  if (!target.capabilities.has("wgmma") || hasPrologue(form)) return [];
  const found: MultiplyDirective[] = [];
  const depth = streamedDepth(form.dtype);
  const bytes = dtypes[form.dtype].bits / 8;
  const clusters = clustersOf(form, target);
  for (const count of groupCounts) {
    for (const own of groupRows) {
      for (const columns of groupColumns) {
        const rows = count * own;
        if (
          isUnproved([rows, columns], form) ||
          isWasteful(rows, form.rows.extent, 64) ||
          isWasteful(columns, form.columns.extent, 16)
        ) {
          continue;
        }
        const tile = [rows, columns, depth] as const;
        const warps = [4 * count, 1] as const;
        for (const turns of turnsOf({ tile, warps }, form, target)) {
          for (const stages of groupStages) {
            const gathered =
              turns.teams * count * turns.results * 64 * resultColumns({ tile, ...turns }, form);
            const staged = stages * (rows + columns) * depth * bytes;
            const results = (gathered * dtypes[form.result].bits) / 8;
            const shared = staged + results + exchangedBytes({ tile, ...turns }) + 2048;
            if (shared > target.blocks!.sharedBytesPerBlock) continue;
            // A ring is not longer than the part of the depth.
            const own = depthSteps(form, depth) / turns.parts;
            if (turns.parts > 1 && stages > own) continue;
            if (turns.blocks > 0 && own % stages !== 0) continue;
            for (const group of rastersOf(Math.ceil(form.rows.extent / rows))) {
              for (const cluster of clusters) {
                const swapped = form.isSwapped;
                const d = { tile, warps, stages, swizzle: 128, group, cluster, swapped } as const;
                const how = { kind: "multiply", statement, by: "wgmma", ...d, ...turns } as const;
                // What is read at the end is waited for: it comes before, where registers hold it.
                const early = { ...how, ahead: true };
                const isHeld = multiplyFault(early, form) === undefined;
                found.push(isHeld ? early : { ...how, ahead: false });
              }
            }
          }
        }
      }
    }
  }
  return found.filter((d) => multiplyFault(d, form) === undefined);
}

/**
 * Steps of the depth up to which blocks may go on from tile to tile: more of them hide the ends of a tile
 * as well, and cost proofs time.
 */
const fewSteps = 32;

/**
 * Parts of the depth in a cluster, and what share of the multiprocessors such clusters may ask for: 32 clusters of
 * four take two rounds on the 132 of an H200, 13 us where 64 clusters of two take 8.
 */
const partCounts = [2, 4] as const;
const placedShare = { 2: 1, 4: 0.85 } as const;
/** Rounds of whole tiles up to which a shared one saves enough to be tried. */
const mostSharedRounds = 6;

type Turns = Pick<MultiplyDirective, "blocks" | "teams" | "results" | "parts">;

/**
 * A block a tile; where there are more tiles than multiprocessors, of little depth, also a block for each of
 * these, with room for all results of a tile. Stages then come round within a tile. Where there are fewer tiles
 * than multiprocessors, also clusters whose blocks take a part of the depth each, and where a few whole rounds leave
 * no more tiles than clusters, clusters that share these.
 */
function turnsOf(
  how: Pick<MultiplyDirective, "tile" | "warps">,
  form: ProductForm,
  target: Target,
): readonly Turns[] {
  const canGather = (parts: number): boolean =>
    form.unwritable === undefined && resultColumns({ ...how, parts }, form) > 0;
  const one = { blocks: 0, teams: 1, parts: 1 } as const;
  const gathers = canGather(1);
  const found: Turns[] = [{ ...one, results: gathers ? gatherings : 0 }];
  // How many rounds there are, and steps, is known at run time.
  if (isOpenTiled(form) || isOpen(form.depth)) return found;
  const blocks = target.blocks!.cores;
  const tiles = productTiles({ ...how, group: 1 }, form);
  const isShort = depthSteps(form, streamedDepth(form.dtype)) <= fewSteps;
  const hasClusters = target.capabilities.has("cluster");
  const shared = sharedTiles({ blocks }, tiles);
  const sharing = partCounts.filter(
    (n) => hasClusters && blocks % n === 0 && shared > 0 && shared * n <= blocks,
  );
  const rounds = Math.floor(tiles / blocks);
  // Beside what an epilogue reads for each result two ways to its end would need more registers.
  const isPlain = form.operandBits === 0 && !form.roundsFunctions && !form.isPart;
  if (isPlain && rounds >= 1 && rounds <= mostSharedRounds) {
    for (const parts of sharing) {
      found.push({ ...one, blocks, parts, results: canGather(parts) ? gatherings : 0 });
    }
  }
  if (isShort && tiles > blocks)
    return [
      ...found,
      { ...one, blocks, results: gathers ? resultParts({ ...how, parts: 1 }, form) : 0 },
    ];
  const most = hasClusters ? blocks : 0;
  const parts = partCounts.filter((n) => tiles * n <= placedShare[n] * most);
  return [...found, ...parts.map((n) => ({ ...one, parts: n, results: 0 }))];
}

/** Whether a block's tile of so many warps is among those that are tried; `mma`: of elements of 16 bits. */
export function hasWarpTile(
  by: "fma" | "mma",
  [rows, columns, depth]: Tile,
  warps: number,
): boolean {
  const depths: readonly number[] = by === "fma" ? threadDepths : warpDepthBytes.map((n) => n / 2);
  if (!depths.includes(depth)) return false;
  return warpTiles[by].some(([tall, wide]) =>
    warpGrids.some(
      ([down, across]) =>
        down * across === warps && tall * down === rows && wide * across === columns,
    ),
  );
}

function depthSteps({ depth }: ProductForm, step: number): number {
  return Math.ceil(depth.extent / step);
}

/** Whether how many tiles there are is known at run time. */
function isOpenTiled(form: Pick<ProductForm, "rows" | "columns" | "batch">): boolean {
  return [form.rows, form.columns, form.batch].some(isOpen);
}

/** A tile that sticks out of a part of a tensor: that the other parts make it whole is not proved then. */
function isUnproved(
  tile: readonly [number, number],
  { isPart, rows, columns }: ProductForm,
): boolean {
  return isPart && !(isWhole(rows, tile[0]) && isWhole(columns, tile[1]));
}

/** A tile of which more than half would stick out, where a smaller one is there. */
function isWasteful(tile: number, extent: number, least: number): boolean {
  return tile > least && tile >= 2 * extent;
}

function isWorth({ rows, columns, depth }: ProductForm): boolean {
  return (
    rows.extent * columns.extent * depth.extent >= leastWork &&
    rows.extent > 1 &&
    columns.extent > 1
  );
}
