/**
 * Candidate tiles of a product by blocks: for each machine that copies asynchronously, blocks of one to
 * eight warps, each warp with 32 or 64 rows and columns (16 where there are no more), depths and numbers of
 * stages as far as shared memory holds them. Deterministic; prices and the choice are elsewhere.
 */
import type { Region } from "../region/nest.ts";
import { dtypes } from "../semantics/dtype.ts";
import type { Target } from "../target/target.ts";
import type { Multiplier, MultiplyDirective } from "./directive.ts";
import { multiplyFault, type ProductForm, productForm } from "./product-form.ts";

/** Rows and columns of a warp, and warps down and across. */
const warpTiles: Readonly<Record<Multiplier, readonly (readonly [number, number])[]>> = {
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
const depths: Readonly<Record<Multiplier, readonly number[]>> = { fma: [8, 16, 32], mma: [32, 64] };
const stageCounts = [2, 3, 4, 6] as const;
/** Products below so many multiplications run as other candidates do. */
const leastWork = 4096;

export function enumerateProducts(region: Region, target: Target): readonly MultiplyDirective[] {
  const limits = target.blocks;
  const [statement] = region.statements;
  if (!limits || region.statements.length !== 1 || !target.capabilities.has("cp.async")) return [];
  const form = productForm(region, statement!);
  if (typeof form === "string" || !isWorth(form)) return [];
  const by: Multiplier = form.dtype === "f32" ? "fma" : "mma";
  const has = (name: string): boolean => target.capabilities.has(name);
  if (by === "mma" && !(has("mma") && has("ldmatrix"))) return [];
  const bytes = dtypes[form.dtype].bits / 8;
  const found: MultiplyDirective[] = [];
  for (const [tall, wide] of warpTiles[by]) {
    for (const warps of warpGrids) {
      const [rows, columns] = [tall * warps[0], wide * warps[1]];
      if (
        isWasteful(rows, form.rows.extent, tall) ||
        isWasteful(columns, form.columns.extent, wide)
      )
        continue;
      for (const depth of depths[by]) {
        for (const stages of stageCounts) {
          const shared = stages * (rows + columns) * (depth * bytes + 16);
          if (shared > limits.sharedBytesPerBlock || stages > depthSteps(form, depth) + 1) continue;
          const swizzle = by === "fma" ? 0 : depth === 32 ? 64 : 128;
          const tile = [rows, columns, depth] as const;
          const d = {
            kind: "multiply",
            statement: statement!.name,
            by,
            tile,
            warps,
            stages,
            swizzle,
          } as const;
          if (multiplyFault(d, form) === undefined) found.push(d);
        }
      }
    }
  }
  return found;
}

function depthSteps({ depth }: ProductForm, step: number): number {
  return Math.ceil(depth.extent / step);
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
