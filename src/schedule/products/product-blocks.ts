/**
 * The tiles that blocks take, and what those of a cluster do together in a product by warpgroups: each takes a part of the depth of one
 * tile (`parts`), or neighbouring tiles bring the operand that they share, a part each (`cluster`).
 */
import type { MultiplyDirective } from "../directive.ts";
import type { ProductForm } from "./product-form.ts";
import { streamedPanel } from "./stream-operands.ts";
import { type TileFault, unfit } from "./tile-fault.ts";

/** Columns of a warpgroup's instruction come in eights. */
const instructionColumns = 8;
/** Blocks of a cluster that every device takes. */
const mostBlocks = 8;

/** Tiles of a product: of its batch, its rows and its columns; groups of rows are worked through whole. */
export function productTiles(
  { tile, group }: Pick<MultiplyDirective, "tile" | "group">,
  { rows, columns, batch }: ProductForm,
): number {
  const tall = Math.ceil(rows.extent / tile[0]);
  const together = Math.min(group, tall);
  const down = together * Math.ceil(tall / together);
  return batch.extent * down * Math.ceil(columns.extent / tile[1]);
}

/** Of so many tiles, those of the last round that do not give every block one. */
export function sharedTiles({ blocks }: Pick<MultiplyDirective, "blocks">, tiles: number): number {
  return tiles % blocks;
}

/** Bytes of shared memory into which the other blocks of a cluster send a block sums of its tile. */
export function exchangedBytes({ tile, parts }: Pick<MultiplyDirective, "tile" | "parts">): number {
  return (4 * tile[0] * tile[1] * (parts - 1)) / parts;
}

/** Sums of a thread beside the places of a part of a tensor and of the other blocks' sums: 128 were spilled. */
const mostSumsOfPart = 96;

/** Why the blocks of a cluster cannot each take a part of the depth. */
export function partsFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const { by, tile, blocks, results, parts, teams } = d;
  if (parts === 1) return undefined;
  if (by !== "wgmma" || form.sum !== "f32") {
    const why = "only warpgroups exchange sums of parts of the depth, of f32";
    return unfit(why, "leave `parts` out");
  }
  if (blocks === 0 && results > 0) {
    const why = "blocks that exchange sums of their one tile store it";
    return unfit(why, "leave `results` out");
  }
  if (parts > mostBlocks)
    return unfit(`${parts} parts, of at most ${mostBlocks}`, `say at most ${mostBlocks} parts`);
  if (teams > 1)
    return unfit("warpgroups that take turns with tiles do not share one", "say teams 1");
  const shared = blocks > 0 ? sharingFault(d, productTiles(d, form)) : undefined;
  if (shared) return shared;
  const steps = Math.ceil(form.depth.extent / tile[2]);
  if (steps % parts !== 0) {
    const why = `${steps} steps of the depth in ${parts} parts`;
    return unfit(why, `choose parts that divide ${steps}`);
  }
  const sums = (tile[0] * tile[1]) / (32 * d.warps[0] * d.warps[1]);
  if (form.isPart && sums > mostSumsOfPart) {
    const why = "registers do not hold so many sums beside places in a part of the results";
    return unfit(why, `choose a tile of at most ${mostSumsOfPart} sums a thread, or more warps`);
  }
  const unit = instructionColumns * parts;
  return tile[1] % unit === 0
    ? undefined
    : unfit(
        `${tile[1]} columns, not a multiple of ${unit}`,
        `choose a multiple of ${unit} columns`,
      );
}

/** Why the tiles of the last round are none that clusters can share, one each at most. */
function sharingFault(
  { blocks, parts }: Pick<MultiplyDirective, "blocks" | "parts">,
  tiles: number,
): TileFault | undefined {
  if (blocks % parts !== 0) {
    const why = `${blocks} blocks in clusters of ${parts}`;
    return unfit(why, `say a multiple of ${parts} blocks`);
  }
  const shared = sharedTiles({ blocks }, tiles);
  if (shared === 0) {
    const why = `${tiles} tiles fill whole rounds of ${blocks} blocks: none is shared`;
    return unfit(why, "leave `parts` out");
  }
  const clusters = blocks / parts;
  return shared > clusters
    ? unfit(
        `${shared} tiles of the last round for ${clusters} clusters of ${parts} blocks`,
        "choose fewer parts, other blocks, or another tile",
      )
    : undefined;
}

/** Rows that a swizzle exchanges together. */
const swizzledRows = 8;

/** Which tile the neighbours of a cluster share: those below each other the columns', others the rows'. */
export function sharedSide(
  { tile, group }: Pick<MultiplyDirective, "tile" | "group">,
  { rows }: Pick<ProductForm, "rows">,
): "left" | "right" {
  return Math.min(group, Math.ceil(rows.extent / tile[0])) > 1 ? "right" : "left";
}

/** Why neighbouring blocks cannot bring a tile together. */
export function clusterFault(d: MultiplyDirective, form: ProductForm): TileFault | undefined {
  const { by, tile, group, blocks, teams, parts, cluster } = d;
  if (cluster === 1) return undefined;
  if (by !== "wgmma" || teams > 1 || parts > 1) {
    const why = "only warpgroups without teams and parts bring tiles together";
    return unfit(why, "leave `cluster` out");
  }
  if (cluster > mostBlocks) {
    const why = `${cluster} blocks together, more than ${mostBlocks}`;
    return unfit(why, `say at most cluster ${mostBlocks}`);
  }
  const [rows, columns] = tile;
  const isBelow = sharedSide(d, form) === "right";
  const tall = Math.min(group, Math.ceil(form.rows.extent / rows));
  const neighbours = isBelow ? tall : Math.ceil(form.columns.extent / columns);
  if (neighbours % cluster !== 0) {
    const why = `${neighbours} neighbours in clusters of ${cluster}`;
    return unfit(why, `choose a cluster that divides ${neighbours}, or another group`);
  }
  const [shared, side] = isBelow ? [columns, form.columns] : [rows, form.rows];
  // Neighbouring rows are brought in whole panels.
  const unit = side.line.along === "depth" ? swizzledRows : streamedPanel(shared);
  if (shared % (unit * cluster) !== 0) {
    const why = `${cluster} parts of a tile that are no multiple of ${unit} rows`;
    return unfit(
      why,
      `choose ${isBelow ? "columns" : "rows"} that are a multiple of ${unit * cluster}`,
    );
  }
  const isUneven = blocks % cluster !== 0 || (blocks > 0 && productTiles(d, form) % cluster !== 0);
  return isUneven
    ? unfit(
        `blocks or tiles that are no multiple of ${cluster}`,
        "choose other blocks, or leave `blocks` out",
      )
    : undefined;
}
