/**
 * Products whose results a kernel of its own only puts elsewhere: a projection whose columns are split into heads
 * that stand before the tokens ([tokens, heads * width] to [heads, tokens, width]). Their epilogue writes results
 * where that kernel would have put them. Where several kernels take parts of the columns (queries, keys and values
 * of one product), each part becomes a product of its own. In: regions in order, prices (injected). Out: the
 * regions, some products behind what they were moved by, where that costs less than the kernels apart.
 */
import { mapIndices } from "../../region/coalesce.ts";
import { composeEpilogue, digitsOf, dropWrites } from "../../region/compose-epilogue.ts";
import { analyseProgram } from "../../region/form-region.ts";
import type { Loop, Region, Statement } from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { tensorsRead } from "../../region/uses.ts";
import {
  add,
  constant,
  type IndexExpr,
  sub,
  substitute,
  variable,
} from "../../semantics/index-expr.ts";
import type { Target } from "../../target/target.ts";
import { enumerateProducts } from "./product-candidates.ts";
import { productForm } from "./product-form.ts";
import { ProductReaders } from "./product-readers.ts";

/** Kernels that take parts of one product's columns, at most: each part is a product and a launch. */
const mostParts = 4;

/**
 * @param priceOf nanoseconds of a region by its cheapest schedule
 * @param splits lays out products of few results
 */
export function placedResults(
  priceOf: (region: Region) => number,
  target: Target,
  splits: LayOut,
): LayOut {
  return (regions, nests) => {
    const readers = new ProductReaders(regions, analyseProgram(nests));
    const placedAt = new Map<number, Region>();
    const gone = new Set<number>();
    for (const [at, product] of regions.entries()) {
      const moves = readers.of(at, (s) => !s.reduction);
      if (moves.length > mostParts || moves.some((m) => placedAt.has(m) || gone.has(m))) continue;
      const moved = moves.map((m) => regions[m]!);
      const placed = placedProducts(product, moved);
      // Loops would have to show that the places of columns, taken apart, are.
      if (placed.length === 0 || placed.some((r) => enumerateProducts(r, target).length === 0))
        continue;
      const cost = (all: readonly Region[]): number =>
        splits(all, nests).regions.reduce((ns, r) => ns + priceOf(r), 0);
      if (cost(placed) >= cost([product, ...moved])) continue;
      gone.add(at);
      moves.forEach((m, i) => {
        placedAt.set(m, placed[i]!);
      });
    }
    const laidOut = regions.flatMap((region, at) => {
      const placed = placedAt.get(at);
      if (placed) return [placed];
      return gone.has(at) ? [] : [region];
    });
    return { regions: laidOut, tensors: new Map() };
  };
}

/** The product's parts, each with what a map makes of it, in the order of the maps; none where that cannot be. */
export function placedProducts(product: Region, moves: readonly Region[]): readonly Region[] {
  const [move] = moves;
  if (!move) return [];
  const placed =
    moves.length === 1
      ? [placedProduct(product, move)]
      : partsOf(product, moves).map(([part, own]) => placedProduct(part, own));
  return placed.every((r) => r !== undefined) ? placed : [];
}

/** The product with the map on each of its results, which stand where the map puts them. */
function placedProduct(product: Region, move: Region): Region | undefined {
  const [statement] = product.statements as readonly [Statement];
  const { tensor } = statement.writes[0]!;
  const all: Region["tensors"] = new Map([...product.tensors, ...move.tensors]);
  const [map] = move.statements as readonly [Statement];
  const composed = composeEpilogue({ tensors: all as never }, statement, map, true);
  if (composed.kind === "refused") return undefined;
  const { name, origin } = map;
  const made = dropWrites({ ...composed.statement, name }, new Set([tensor]));
  const used = new Set([...tensorsRead(made), ...made.writes.map((w) => w.tensor)]);
  const { anchor, inlined, epilogue } = product.group;
  const members = [...inlined, anchor, ...epilogue, ...move.group.inlined];
  const region: Region = {
    ...move,
    group: { ...move.group, inlined: [...new Set(members)] },
    statements: [{ ...made, origin: `${statement.origin} + ${origin}` }],
    tensors: new Map([...all].filter(([name]) => used.has(name))),
  };
  return typeof productForm(region, region.statements[0]!) === "string" ? undefined : region;
}

/** The product cut along its columns into what each of the maps reads, with the map; none where they overlap. */
function partsOf(
  product: Region,
  moves: readonly Region[],
): readonly (readonly [Region, Region])[] {
  const [statement] = product.statements as readonly [Statement];
  const { tensor, index } = statement.writes[0]!;
  const column = statement.loops.find((l) => l.name === index.at(-1)!.key && l.kind === "space");
  const tiles = moves.map((move) => columnsOf(move, tensor));
  if (!column || tiles.some((t) => t === undefined)) return [];
  const sorted = (tiles as Columns[]).toSorted((a, b) => a.first - b.first);
  const areApart = sorted.every(
    (t, i) => i === 0 || sorted[i - 1]!.first + sorted[i - 1]!.count <= t.first,
  );
  if (!areApart) return [];
  return moves.map((move, i) => cutColumns({ product, column, move }, tiles[i]!));
}

/** Neighbouring columns. */
interface Columns {
  readonly first: number;
  readonly count: number;
}

/** The columns of a tensor that a map reads, all of them and each once. */
function columnsOf({ statements: [map] }: Region, tensor: string): Columns | undefined {
  const [read, ...others] = map!.reads.filter((r) => r.tensor === tensor);
  if (!read || others.length > 0) return undefined;
  const at = read.index.at(-1)!;
  const extents = new Map(map!.loops.map((l) => [l.name, l.extent]));
  const [outermost] = digitsOf(sub(at, at.constant), extents) ?? [];
  return outermost && { first: at.constant, count: outermost.step * outermost.extent };
}

function cutColumns(
  {
    product,
    column,
    move,
  }: { readonly product: Region; readonly column: Loop; readonly move: Region },
  { first, count }: Columns,
): readonly [Region, Region] {
  const [statement] = product.statements as readonly [Statement];
  const { tensor } = statement.writes[0]!;
  const whole = product.tensors.get(tensor)!;
  const name = `${tensor}.from${first}`;
  const own = { ...whole, name, shape: [...whole.shape.slice(0, -1), constant(count)] };
  const moved = new Map([[column.name, add(variable(column.name), first)]]);
  const cut: Statement = {
    ...mapIndices(statement, (e) => substitute(e, moved)),
    loops: statement.loops.map((l) => (l === column ? { ...l, extent: constant(count) } : l)),
    writes: statement.writes.map((w) => ({ ...w, tensor: name })),
  };
  const [map] = move.statements as readonly [Statement];
  const near = (index: readonly IndexExpr[]): readonly IndexExpr[] => [
    ...index.slice(0, -1),
    sub(index.at(-1)!, first),
  ];
  const reads = map.reads.map((r) =>
    r.tensor === tensor ? { ...r, tensor: name, index: near(r.index) } : r,
  );
  return [
    { ...product, statements: [cut], tensors: new Map(product.tensors).set(name, own) },
    { ...move, statements: [{ ...map, reads }], tensors: new Map(move.tensors).set(name, own) },
  ];
}
