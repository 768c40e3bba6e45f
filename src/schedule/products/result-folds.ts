/**
 * Folds that the kernel of a product computes of its results before they leave the registers: a region of two
 * statements, the product and a fold of neighbouring columns of each row, which alone reads what the product makes.
 * In: a region. Out: the fold over the loops of the product, or undefined.
 */
import type { Loop, Region, Statement } from "../../region/nest.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  indexEquals,
  mod,
  mul,
  sub,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { MultiplyDirective } from "../directive.ts";
import { isExchanged } from "../exchanged-types.ts";
import type { ProductForm } from "./product-form.ts";
import { type TileFault, unfit } from "./tile-fault.ts";

export interface ResultFold {
  readonly statement: Statement;
  /** Place among its reads of the product's result. */
  readonly read: number;
  /** Its loops in terms of those of the product. */
  readonly loops: ReadonlyMap<string, IndexExpr>;
  /** Neighbouring columns that one of its results is folded from. */
  readonly columns: number;
}

/** What a region folds of what its first statement makes, if that is all that becomes of it; else undefined. */
export function resultFold(
  { statements, tensors }: Region,
  product: Statement,
): ResultFold | undefined {
  const [first, statement, ...others] = statements;
  if (first !== product || !statement || others.length > 0) return undefined;
  const { reduction, guard, indirects, reads, finishReads, writes, loops } = statement;
  const [made, ...more] = product.writes;
  const isOwn = made && more.length === 0 && tensors.get(made.tensor)!.role === "local";
  if (!isOwn || !reduction || reduction.numericClass === "approximates") return undefined;
  const isPlain = guard.length === 0 && indirects.length === 0;
  if (!isPlain || writes.some((w) => w.combine !== "overwrite")) return undefined;
  if (!reduction.monoid.components.every(isExchanged)) return undefined;
  const taken = reads.flatMap((r, i) => (r.tensor === made.tensor ? [i] : []));
  const [read] = taken;
  const isLate = finishReads.some((r) => r.tensor === made.tensor);
  if (read === undefined || taken.length > 1 || isLate || reads[read]!.guard.length > 0)
    return undefined;
  const [column, ...further] = loops.filter((l) => l.kind === "reduce");
  const columns = column && constantValue(column.extent);
  if (columns === undefined || further.length > 0) return undefined;
  const { shape } = tensors.get(made.tensor)!;
  const places = { made: made.index, read: reads[read]!.index, shape };
  const over = loopsOver(places, loops, column!);
  if (!over || loops.some((l) => !over.has(l.name))) return undefined;
  return { statement, read, loops: over, columns };
}

interface Place {
  /** Where the product writes its result, and where the fold reads it. */
  readonly made: readonly IndexExpr[];
  readonly read: readonly IndexExpr[];
  readonly shape: readonly IndexExpr[];
}

/** The fold's loops over the product's, of which each stands on a whole axis of the result, the last one in tiles. */
function loopsOver(
  { made, read, shape }: Place,
  loops: readonly Loop[],
  column: Loop,
): ReadonlyMap<string, IndexExpr> | undefined {
  const over = new Map<string, IndexExpr>();
  const extentOf = (name: string) => loops.find((l) => l.name === name)?.extent ?? constant(0);
  const columns = constantValue(column.extent)!;
  for (const [axis, at] of read.entries()) {
    const own = made[axis]!;
    const extent = shape[axis]!;
    if (constantValue(at) === 0 && constantValue(extent) === 1) continue;
    const isLast = axis === read.length - 1;
    if (indexEquals(extentOf(at.key), extent)) {
      if (over.has(at.key) || isLast !== (at.key === column.name)) return undefined;
      over.set(at.key, own);
      continue;
    }
    const [tile] = isLast ? sub(at, variable(column.name)).terms : [];
    const place = tile && add(mul(columns, variable(tile.key)), variable(column.name));
    if (!place || !indexEquals(place, at)) return undefined;
    if (!indexEquals(mul(columns, extentOf(tile.key)), extent)) return undefined;
    over.set(tile.key, floorDiv(own, columns)).set(column.name, mod(own, columns));
  }
  return over.has(column.name) ? over : undefined;
}

/** What to do where the kernel cannot fold its tiles. */
const notFolded = "bind the loops of product and fold to blocks, groups and threads";

/** Why threads of such a tile cannot fold its rows among each other; undefined where nothing is folded. */
export function foldFault(
  { tile, warps, parts, swapped }: MultiplyDirective,
  { fold, rows, columns }: Pick<ProductForm, "fold" | "rows" | "columns">,
): TileFault | undefined {
  if (!fold) return undefined;
  if (rows.loops.length !== 1 || columns.loops.length !== 1)
    return unfit("what is folded is no plain matrix", notFolded);
  const [made] = columns.loops;
  if (!variablesOf(...fold.loops.values()).has(made!.name) || swapped)
    return unfit("what is folded are no columns", swapped ? "leave `swapped` out" : notFolded);
  if (tile[1] !== fold.columns)
    return unfit(
      `${fold.columns} columns are folded together, not ${tile[1]}`,
      `choose a tile of ${fold.columns} columns`,
    );
  if (warps[1] !== 1) {
    const why = "warps beside each other have a part of each row";
    return unfit(why, `say warps (${warps[0]! * warps[1]!}, 1)`);
  }
  return parts > 1
    ? unfit("blocks of a cluster have a part of the sums", "leave `parts` out")
    : undefined;
}
