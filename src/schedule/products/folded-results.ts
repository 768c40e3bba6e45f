/**
 * Products of which only a fold is wanted (the largest score of each query, the sum of all results): their kernel
 * folds the columns of each tile before they leave the registers, and what is left, one partial result for each
 * tile and row, a second region folds and finishes. In: regions in order, prices (injected). Out: the regions, some
 * products with what folds them, with a tensor of partial results between them, where that costs less than a
 * product that is stored and read back. Where a tile covers the row nothing is left for a second region.
 */
import { analyseProgram } from "../../region/form-region.ts";
import type {
  Access,
  Loop,
  NestProgram,
  NestTensor,
  Region,
  Statement,
  TensorRole,
} from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { substituteAccess, substituteScalar } from "../../region/statement.ts";
import { tensorsRead } from "../../region/uses.ts";
import { zeroOf } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import { argument } from "../../semantics/scalar-expr.ts";
import { productForm } from "./product-form.ts";
import { ProductReaders } from "./product-readers.ts";

/** Columns of tiles that are tried, those that divide the row. */
const tileColumns = [256, 192, 160, 128, 96, 64, 48, 32, 16] as const;
/** How many of them, the widest first. */
const mostWidths = 4;

/**
 * @param priceOf nanoseconds of a region by its cheapest schedule
 * @param apart lays out the folds that are regions of their own
 */
export function foldedResults(priceOf: (region: Region) => number, apart: LayOut): LayOut {
  return (regions, nests) => {
    const readers = new ProductReaders(regions, analyseProgram(nests));
    const foldedAt = new Map<number, readonly Region[]>();
    const gone = new Set<number>();
    const cost = (all: readonly Region[]): number => all.reduce((ns, r) => ns + priceOf(r), 0);
    const laidOut = (fold: Region): readonly Region[] => apart([fold], nests).regions;
    for (const [at, product] of regions.entries()) {
      const [reader] = readers.of(at, (s) => s.reduction !== undefined);
      if (reader === undefined || foldedAt.has(reader)) continue;
      const ways = foldedProducts(product, regions[reader]!).map(({ folded, rest }) => {
        const price = priceOf(folded) + (rest ? cost(laidOut(rest)) : 0);
        return { all: rest ? [folded, rest] : [folded], price };
      });
      const [best] = ways.sort((a, b) => a.price - b.price);
      if (!best || best.price >= priceOf(product) + cost(laidOut(regions[reader]!))) continue;
      gone.add(at);
      foldedAt.set(reader, best.all);
    }
    const made = regions.flatMap((region, at) => {
      return foldedAt.get(at) ?? (gone.has(at) ? [] : [region]);
    });
    return { regions: made, tensors: newTensors([...foldedAt.values()], nests.tensors) };
  };
}

/** Tensors that the regions of a program bring with them. */
function newTensors(
  pairs: readonly (readonly Region[])[],
  known: NestProgram["tensors"],
): ReadonlyMap<string, NestTensor & { readonly role: TensorRole }> {
  const found = pairs.flat().flatMap(({ tensors }) => [...tensors.values()]);
  return new Map(
    found.flatMap((t) => {
      return known.has(t.name) ? [] : [[t.name, { ...t, role: "intermediate" as const }]];
    }),
  );
}

export interface FoldedProduct {
  /** The product, and the fold of a tile's columns. */
  readonly folded: Region;
  /** The fold of what all tiles left; absent where a tile has whole rows. */
  readonly rest: Region | undefined;
}

/** The product with the fold, for each width of tiles that divides its rows. */
export function foldedProducts(product: Region, fold: Region): readonly FoldedProduct[] {
  const turned = turnedProduct(product, fold);
  const [{ guard, indirects, reduction }] = fold.statements as readonly [Statement];
  if (!turned || guard.length > 0 || indirects.length > 0) return [];
  if (reduction!.numericClass === "approximates") return [];
  const extent = constantValue(turned.column.extent)!;
  const widths = tileColumns.filter((n) => extent % n === 0).slice(0, mostWidths);
  return widths.flatMap((columns) => {
    const made = foldedTiles(fold, turned, { columns, tiles: extent / columns });
    const form = productForm(made.folded, made.folded.statements[0]!);
    return typeof form === "string" || !form.fold ? [] : [made];
  });
}

/** A product whose result is nowhere in memory, with the loop that is folded on its last axis. */
interface TurnedProduct {
  readonly region: Region;
  readonly statement: Statement;
  readonly result: NestTensor;
  /** Where the fold reads it. */
  readonly read: Access;
  /** Loops of the fold on the axes before the last one, and on that. */
  readonly outer: readonly Loop[];
  readonly column: Loop;
}

/** The axes of a result that nobody stores may stand in any order: the last one that is folded comes last. */
function turnedProduct(region: Region, fold: Region): TurnedProduct | undefined {
  const [statement] = region.statements as readonly [Statement];
  const [{ loops, reads }] = fold.statements as readonly [Statement];
  const [write] = statement.writes;
  const [read, ...others] = reads.filter((r) => r.tensor === write!.tensor);
  if (!write || !read || others.length > 0 || read.guard.length > 0) return undefined;
  const tensor = region.tensors.get(write.tensor)!;
  const onAxis = read.index.map((e, axis): Loop | undefined => {
    const loop = loops.find((l) => l.name === e.key);
    const made = statement.loops.find((l) => l.name === write.index[axis]!.key);
    const extent = tensor.shape[axis]!.key;
    return loop?.extent.key === extent && made?.extent.key === extent ? loop : undefined;
  });
  const isUnit = (axis: number): boolean =>
    constantValue(tensor.shape[axis]!) === 1 &&
    [read, write].every(({ index }) => constantValue(index[axis]!) === 0);
  if (!onAxis.every((l, axis) => l !== undefined || isUnit(axis))) return undefined;
  if (!loops.every((l) => onAxis.filter((o) => o === l).length === 1)) return undefined;
  const last = onAxis.findLastIndex((l) => l?.kind === "reduce");
  const column = onAxis[last];
  if (!column || constantValue(column.extent) === undefined) return undefined;
  const turn = <T>(axes: readonly T[]): readonly T[] => [...axes.toSpliced(last, 1), axes[last]!];
  const name = last === onAxis.length - 1 ? tensor.name : `${tensor.name}.turned`;
  const { stored: _, ...plain } = tensor;
  return {
    region,
    statement: { ...statement, writes: [{ ...write, tensor: name, index: turn(write.index) }] },
    result: { name, dtype: plain.dtype, shape: turn(plain.shape) },
    read: { ...read, tensor: name, index: turn(read.index) },
    outer: onAxis.flatMap((l) => (l && l !== column ? [l] : [])),
    column,
  };
}

interface Tiling {
  /** Of a tile, and how many of them a row has. */
  readonly columns: number;
  readonly tiles: number;
}

function foldedTiles(fold: Region, made: TurnedProduct, tiling: Tiling): FoldedProduct {
  const [statement] = fold.statements as readonly [Statement];
  const { outer, column, read } = made;
  const { tensor } = made.region.statements[0]!.writes[0]!;
  const reads = statement.reads.map((r) => (r.tensor === tensor ? read : r));
  const isWhole = tiling.tiles === 1 && outer.every((l) => l.kind === "space");
  if (isWhole) {
    const whole = { ...statement, loops: [...outer, column], reads };
    return { folded: regionOf(made, fold, whole, []), rest: undefined };
  }
  const { components } = statement.reduction!.monoid;
  const tile: Loop = {
    name: `${column.name}_tile`,
    extent: constant(tiling.tiles),
    kind: "space",
  };
  const place = add(mul(tiling.columns, variable(tile.name)), variable(column.name));
  const inTile = new Map([[column.name, place]]);
  const index: readonly IndexExpr[] = [tile, ...outer].map((l) => variable(l.name));
  const shape = [tile, ...outer].map((l) => l.extent);
  const parts = components.map(({ dtype }, i): NestTensor => {
    return { name: `${fold.name}.parts${i === 0 ? "" : i}`, dtype, shape };
  });
  const { finish: _, ...rest } = statement;
  const part: Statement = {
    ...rest,
    loops: [
      ...outer.map((l): Loop => ({ ...l, kind: "space" })),
      tile,
      { ...column, extent: constant(tiling.columns) },
    ],
    reads: reads.map((access) => substituteAccess(access, inTile)),
    body: statement.body.map((e) => substituteScalar(e, inTile)),
    finishReads: [],
    writes: parts.map(({ name }) => ({ tensor: name, index, combine: "overwrite" })),
  };
  const sum: Statement = {
    ...statement,
    name: `${statement.name}.sum`,
    loops: [
      ...outer.filter((l) => l.kind === "space"),
      { ...tile, kind: "reduce" },
      ...outer.filter((l) => l.kind === "reduce"),
    ],
    reads: parts.map(({ name, dtype }) => {
      return { tensor: name, index, guard: [], fill: zeroOf(dtype) };
    }),
    body: components.map(({ dtype }, i) => argument(i, dtype)),
  };
  return {
    folded: regionOf(made, fold, part, parts),
    rest: lone(sum, `${fold.name}.sum`, withParts(fold, parts)),
  };
}

function withParts(region: Region, parts: readonly NestTensor[]): Region {
  const all = parts.map((t) => [t.name, { ...t, role: "intermediate" as const }] as const);
  return { ...region, tensors: new Map([...region.tensors, ...all]) };
}

/** A statement of a region as one of its own, with the tensors that it touches. */
function lone(statement: Statement, name: string, region: Region): Region {
  const touched = new Set([...tensorsRead(statement), ...statement.writes.map((w) => w.tensor)]);
  return {
    ...region,
    name,
    group: { ...region.group, name },
    statements: [statement],
    tensors: new Map([...region.tensors].filter(([tensor]) => touched.has(tensor))),
  };
}

/** The product and the fold of its tiles as one region. */
function regionOf(
  { region, statement, result }: TurnedProduct,
  fold: Region,
  part: Statement,
  parts: readonly NestTensor[],
): Region {
  const { inlined, anchor, epilogue } = region.group;
  const members = [...inlined, anchor, ...epilogue, ...fold.group.inlined];
  const own = { ...result, role: "local" as const };
  const { tensors } = withParts(fold, parts);
  const all: Region["tensors"] = new Map([...region.tensors, ...tensors, [result.name, own]]);
  const both = [statement, part];
  const touched = new Set(
    both.flatMap((s) => [...tensorsRead(s), ...s.writes.map((w) => w.tensor)]),
  );
  return {
    ...fold,
    group: { ...fold.group, inlined: [...new Set(members)] },
    statements: both,
    tensors: new Map([...all].filter(([tensor]) => touched.has(tensor))),
  };
}
