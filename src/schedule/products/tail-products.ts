/**
 * Products whose tiles leave most multiprocessors idle in their last round: the rows of as many tiles as fill
 * whole rounds stay one region, and those that are left become another, whose tiles are its own: smaller
 * ones, or tiles whose depth is dealt out to the blocks of clusters, which add their sums in a fixed order
 * (`parts`), or to products of its parts (split-products.ts). What streams of steps do that run on from tile to
 * tile (Osama et al. 2023, "Stream-K") is so done by whole tiles: no partial sum of a round that is full leaves its
 * block. In: regions in order, prices (injected). Out: the regions, some as two that write rows of one tensor.
 */
import { mapIndices } from "../../region/coalesce.ts";
import type { Region, Statement } from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { add, constant, substitute, variable } from "../../semantics/index-expr.ts";
import type { BlockLimits } from "../../target/target.ts";
import { isOpen, type ProductForm, productForm } from "./product-form.ts";

/** Rows and columns of the tiles that whole rounds are counted in. */
const [tileRows, tileColumns] = [
  [128, 256],
  [256, 192, 160, 128, 96],
] as const;
const largestTile = 128 * 256;
/** Rounds up to which the last one counts, and multiply-adds below which a second launch is not worth a price. */
const mostRounds = 6;
const leastWork = 2 ** 32;
/** Cuts that are priced, the best filled rounds first; and the part of the price up to which one is taken. */
const mostCuts = 3;
const worthwhile = 0.97;
/** Part of the rounds of large tiles that are results, from which on nothing is cut. */
const wellFilled = 0.93;

/** @param priceOf nanoseconds of a region by its cheapest schedule */
export function tailsFor(
  priceOf: (region: Region) => number,
  { cores }: Pick<BlockLimits, "cores">,
): LayOut {
  return (regions) => {
    const made = regions.map((region) => {
      const pairs = cutsOf(region, cores).map((rows) => cutRows(region, rows));
      if (pairs.length === 0) return [region];
      const prices = pairs.map(([head, tail]) => priceOf(head) + priceOf(tail));
      const least = Math.min(...prices);
      return least < worthwhile * priceOf(region) ? pairs[prices.indexOf(least)]! : [region];
    });
    return { regions: made.flat(), tensors: new Map() };
  };
}

/** Numbers of rows of whole rounds. */
export function cutsOf(region: Region, cores: number): readonly number[] {
  const form = cuttable(region);
  if (!form) return [];
  const [height, width] = [form.rows.extent, form.columns.extent];
  if (isFilled(height * width, [height, width], cores)) return [];
  const filled = new Map<number, number>();
  for (const rows of tileRows) {
    for (const columns of tileColumns.filter((n) => n * rows <= largestTile)) {
      const wide = Math.ceil(width / columns);
      const rounds = Math.floor((Math.floor(height / rows) * wide) / cores);
      const down = Math.floor((rounds * cores) / wide);
      const cut = down * rows;
      if (rounds < 1 || rounds > mostRounds || cut === 0 || cut >= height) continue;
      const share = (down * width) / columns / (rounds * cores);
      filled.set(cut, Math.max(share, filled.get(cut) ?? 0));
    }
  }
  const best = [...filled].sort(([a, x], [b, y]) => y - x || b - a);
  return best.slice(0, mostCuts).map(([cut]) => cut);
}

/** Whether large tiles of all rows leave few multiprocessors idle. */
function isFilled(
  results: number,
  [height, width]: readonly [number, number],
  cores: number,
): boolean {
  return tileRows.some((rows) =>
    tileColumns.some((columns) => {
      const tiles = Math.ceil(height / rows) * Math.ceil(width / columns);
      const round = Math.ceil(tiles / cores) * cores * rows * columns;
      const isLarge = rows * columns <= largestTile && 2 * rows * columns > largestTile;
      return isLarge && results >= wellFilled * round;
    }),
  );
}

/** The form of a lone product of matrices that is worth two launches. */
function cuttable({ statements, ...region }: Region): ProductForm | undefined {
  const [statement, ...others] = statements;
  if (!statement || others.length > 0) return undefined;
  const form = productForm({ statements, ...region }, statement);
  if (typeof form === "string" || form.isPart || form.isSwapped) return undefined;
  const { rows, columns, batch, depth } = form;
  if (
    rows.loops.length !== 1 ||
    isOpen(rows) ||
    isOpen(columns) ||
    batch.extent > 1 ||
    form.picks.length > 0
  )
    return undefined;
  return rows.extent * columns.extent * depth.extent >= leastWork ? form : undefined;
}

/** The region's first rows, and the others. */
export function cutRows(region: Region, rows: number): readonly [Region, Region] {
  const [statement] = region.statements as readonly [Statement];
  const { rows: side } = productForm(region, statement) as ProductForm;
  const { name } = side.loops[0]!;
  const ofRows = (s: Statement, count: number): Statement => ({
    ...s,
    loops: s.loops.map((l) => (l.name === name ? { ...l, extent: constant(count) } : l)),
  });
  const moved = new Map([[name, add(variable(name), rows)]]);
  const rest = mapIndices(statement, (e) => substitute(e, moved));
  const tail = { ...ofRows(rest, side.extent - rows), name: `${statement.name}.rest` };
  const lone = (s: Statement, of: string): Region => ({
    ...{ ...region, name: of, group: { ...region.group, name: of } },
    statements: [s],
  });
  return [lone(ofRows(statement, rows), region.name), lone(tail, `${region.name}.rest`)];
}
