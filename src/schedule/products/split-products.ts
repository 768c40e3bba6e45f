/**
 * Products and other folds whose results are too few to fill a machine of blocks: their depth is dealt out to
 * several, whose partial results a second region folds and finishes (split K; Osama et al., "Stream-K", 2023,
 * say when that pays). In: regions in order, prices (injected). Out: the regions, some as two, with a tensor of
 * partial results between them. A region is split where its cheapest schedule costs more than those of the two.
 */
import { coalesceRegion, mapIndices } from "../../region/coalesce.ts";
import type { Access, Loop, Region, RegionTensor, Statement, View } from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { substituteIndirect, substituteScalar } from "../../region/statement.ts";
import { type Condition, less } from "../../semantics/condition.ts";
import { zeroOf } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  substitute,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { simplify } from "../../semantics/index-range.ts";
import { argument } from "../../semantics/scalar-expr.ts";
import type { BlockLimits } from "../../target/target.ts";
import { hasPrologue, isOpen, type ProductForm, productForm } from "./product-form.ts";

/** Into how many parts a depth is split, at most. */
const partCounts = [2, 4, 8, 16] as const;
/** The same of folds, whose parts cost no more than their results. */
const foldParts = [8, 16, 32, 64, 128] as const;
/** And of folds of all elements, whose parts alone fill the machine: a warp each. */
const loneParts = [64, 256, 1024, 2048, 4096, 8192] as const;
/** What the length of a part that does not divide is rounded up to: whole vectors of a warp. */
const wholeVectors = 256;
/** The least trips of a part of a loop around others that does not divide. */
const leastTrips = 2;
/** And of a part of a product, which ends early too: steps of its tiles. */
const wholeSteps = 64;
/** The least depth of a part, of a product and of another fold. */
const leastDepth = 128;
const leastFold = 32;
/** Results that a thread takes at once of a fold that is not split. */
const resultsOfThread = 8;
/** Of the price of a fold, what its parts may cost: by less, prices do not tell one kernel from two. */
const foldShare = 0.95;
/** Results of a block's usual tile; splitting is tried where fewer tiles than cores, or little more, are there. */
const usualTile = 64 * 64;
const mostTiles = 2;

/** A region as two, and the views that they see tensors through, each behind those it is a view of. */
interface Split {
  readonly regions: readonly [Region, Region];
  readonly views: readonly View[];
  readonly seen: Region["tensors"];
}

const noViews = { views: [], seen: new Map() } as const;

/** @param priceOf nanoseconds of a region by its cheapest schedule */
export function splitsFor(priceOf: (region: Region) => number, blocks: BlockLimits): LayOut {
  return (regions) => {
    const views: View[] = [];
    const seen = new Map<string, RegionTensor>();
    const made = regions.map((region): readonly Region[] => {
      const products = partCounts.flatMap((parts) => splitProduct(region, parts, blocks.cores));
      const splits = [
        ...products.map((pair): Split => ({ regions: pair, ...noViews })),
        ...foldSplits(region, blocks),
      ];
      if (splits.length === 0) return [region];
      const prices = splits.map((s) => s.regions.reduce((sum, r) => sum + priceOf(r), 0));
      const least = Math.min(...prices);
      const share = products.length > 0 ? 1 : foldShare;
      if (least >= share * priceOf(region)) return [region];
      const best = splits[prices.indexOf(least)]!;
      views.push(...best.views);
      for (const [name, tensor] of best.seen) seen.set(name, tensor);
      return best.regions;
    });
    const tensors = made.flatMap((parts, at) =>
      parts.flatMap((r) => [...r.tensors].filter(([name]) => isBetween(r, regions[at]!, name))),
    );
    const between = [...seen, ...tensors].map(
      ([name, t]) => [name, { ...t, role: "intermediate" as const }] as const,
    );
    return { regions: made.flat(), tensors: new Map(between), views };
  };
}

/** The region as folds of parts and their fold, by each number of parts: where none divides, as one flat axis too. */
function foldSplits(region: Region, blocks: BlockLimits): readonly Split[] {
  if (!region.statements[0]?.reduction || region.statements.length > 1) return [];
  const flat = coalesceRegion(region, true);
  const { views } = flat;
  const seen = new Map(views.map((v) => [v.tensor, flat.region.tensors.get(v.tensor)!]));
  return (isLone(region) ? loneParts : foldParts).flatMap((parts): Split[] => {
    const found = splitFold(region, parts, blocks).map((pair) => ({ regions: pair, ...noViews }));
    if (views.length === 0 || divides(region, parts)) return found;
    const joined = splitFold(flat.region, parts, blocks);
    return [...found, ...joined.map((pair) => ({ regions: pair, views, seen }))];
  });
}

/** Whether a loop of a fold is a multiple of a number of parts. */
function divides({ statements: [statement] }: Region, parts: number): boolean {
  const reduces = statement!.loops.filter((l) => l.kind === "reduce");
  return reduces.some((l) => constantValue(l.extent)! % parts === 0);
}

/** Whether a tensor leaves a part of a region for the next one. */
function isBetween(part: Region, whole: Region, tensor: string): boolean {
  return !whole.tensors.has(tensor) && part.tensors.get(tensor)!.role !== "local";
}

/** Partial results of a component of a fold. */
const partialResults = (region: string, component: number): string =>
  component === 0 ? `${region}.parts` : `${region}.parts${component}`;

/** The region as products of parts of the depth and their sum; none where that is not worth a price. */
export function splitProduct(
  region: Region,
  parts: number,
  cores: number,
): readonly (readonly [Region, Region])[] {
  const [statement, ...others] = region.statements;
  if (!statement || others.length > 0) return [];
  const form = productForm(region, statement);
  if (typeof form === "string" || form.rows.extent < 2 || form.columns.extent < 2) return [];
  if (form.picks.length > 0) return [];
  const tiles = (form.rows.extent * form.columns.extent * form.batch.extent) / usualTile;
  if (tiles > mostTiles * cores || form.depth.extent < parts * leastDepth) return [];
  // Of a window, its channels.
  const deep = loopOfParts(form, parts);
  if (!deep) return [];
  const extent = constantValue(deep.extent)!;
  const isEven = extent % parts === 0;
  const length = isEven ? extent / parts : wholeSteps * Math.ceil(extent / parts / wholeSteps);
  const [product, sum] = splitAt(region, statement, deep, { parts, length, fills: true });
  const [column] = form.columns.loops;
  return [[product, form.run === undefined ? sum : inHeads(sum, column!, form.run)]];
}

/** The loop of a depth that parts divide, else one that is long enough for the last of them to end early. */
function loopOfParts(form: ProductForm, parts: number): Loop | undefined {
  const { loops } = form.depth;
  const even = loops.find((l) => constantValue(l.extent)! % parts === 0);
  if (even) return even;
  // Only elements as they are can be zeros beyond the end: of what is made of others, some reads go on.
  if (isOpen(form.depth) || hasPrologue(form)) return undefined;
  const longest = longestOf(loops);
  return constantValue(longest.extent)! >= parts * leastDepth ? longest : undefined;
}

/** The sum with a loop over heads and one over each, whose places are then those of no division. */
function inHeads(sum: Region, { name }: Loop, width: number): Region {
  const [statement] = sum.statements as readonly [Statement];
  const [heads, column] = ["head", "column"].map((stem) => `${name}_${stem}`);
  const place = add(mul(width, variable(heads!)), variable(column!));
  const ranges = new Map([[column!, { min: 0, max: width - 1 }]]);
  const split = mapIndices(statement, (e) =>
    simplify(substitute(e, new Map([[name, place]])), ranges),
  );
  const loops = statement.loops.flatMap((l): Loop[] => {
    if (l.name !== name) return [l];
    const count = constantValue(l.extent)! / width;
    return [
      { ...l, name: heads!, extent: constant(count) },
      { ...l, name: column!, extent: constant(width) },
    ];
  });
  return { ...sum, statements: [{ ...split, loops }] };
}

/** The same of a fold that is no product, or one of a single row or column, where threads would be too few. */
export function splitFold(
  region: Region,
  parts: number,
  { cores, threadsPerCore }: BlockLimits,
): readonly (readonly [Region, Region])[] {
  const [statement, ...others] = region.statements;
  const { reduction, indirects, guard, loops = [] } = statement ?? {};
  if (!statement || !reduction || others.length > 0) return [];
  if (reduction.numericClass === "approximates") return [];
  if (guard!.length > 0 || loops.some((l) => l.kind === "scan")) return [];
  // Places that data name are read with the elements: results have none.
  const ends = [...statement.writes, ...statement.finishReads].flatMap((a) => a.index);
  if (indirects!.some(({ name }) => variablesOf(...ends).has(name))) return [];
  const form = productForm(region, statement);
  if (typeof form !== "string" && form.rows.extent > 1 && form.columns.extent > 1) return [];
  const extents = (kind: Loop["kind"]) =>
    loops.filter((l) => l.kind === kind).map((l) => constantValue(l.extent));
  const [results, depths] = [extents("space"), extents("reduce")];
  if (depths.length === 0 || [...results, ...depths].includes(undefined)) return [];
  const count = results.reduce<number>((n, e) => n * e!, 1);
  if (count > resultsOfThread * cores * threadsPerCore) return [];
  const reduces = loops.filter((l) => l.kind === "reduce");
  const depth = depths.reduce<number>((n, e) => n * e!, 1);
  if (depth < parts * leastFold) return [];
  const even = reduces.find((_, i) => depths[i]! % parts === 0);
  if (even) {
    const length = constantValue(even.extent)! / parts;
    return [splitAt(region, statement, even, { parts, length })];
  }
  const longest = longestOf(reduces);
  const extent = constantValue(longest.extent)!;
  // Around other loops the parts of one need be no whole vectors.
  const isAround = longest !== reduces.at(-1) && extent >= leastTrips * parts;
  const isLong = extent >= parts * wholeVectors;
  const unit = isLong ? wholeVectors : 1;
  const length = unit * Math.ceil(extent / parts / unit);
  return isAround || isLong ? [splitAt(region, statement, longest, { parts, length })] : [];
}

/** The first of the longest loops of known extents. */
function longestOf(loops: readonly Loop[]): Loop {
  const extents = loops.map((l) => constantValue(l.extent)!);
  return loops[extents.indexOf(Math.max(...extents))]!;
}

/** Whether a fold has one result. */
function isLone({ statements: [statement] }: Region): boolean {
  return statement?.reduction !== undefined && statement.loops.every((l) => l.kind === "reduce");
}

interface Parts {
  readonly parts: number;
  /** Of each; the last parts end with the loop where all are longer together. */
  readonly length: number;
  /** Whether what is read beyond the end is zero, where the statement may have no guard. Default: no. */
  readonly fills?: boolean;
}

function splitAt(
  region: Region,
  statement: Statement,
  deep: Loop,
  { parts, length, fills = false }: Parts,
): readonly [Region, Region] {
  const { components } = statement.reduction!.monoid;
  const names = components.map((_, i) => partialResults(region.name, i));
  const space = statement.loops.filter((l) => l.kind === "space");
  const at = space.map((l) => variable(l.name));
  const part: Loop = { name: `${deep.name}_part`, extent: constant(parts), kind: "space" };
  const extent = constantValue(deep.extent)!;
  const whole = new Map([[deep.name, add(mul(length, variable(part.name)), variable(deep.name))]]);
  const own = (e: IndexExpr): IndexExpr => substitute(e, whole);
  const ends = parts * length === extent ? [] : [less(own(variable(deep.name)), extent)];
  const endsRead = ({ index }: Access): readonly Condition[] =>
    fills && variablesOf(...index).has(deep.name) ? ends : [];
  const within = (access: Access): Access => ({
    ...access,
    index: access.index.map(own),
    guard: [...access.guard.map((c) => ({ ...c, expr: own(c.expr) })), ...endsRead(access)],
  });
  const { finish: _, ...rest } = statement;
  const index = [variable(part.name), ...at];
  const product: Statement = {
    ...rest,
    loops: [
      part,
      ...statement.loops.map((l) => (l === deep ? { ...l, extent: constant(length) } : l)),
    ],
    guard: fills ? statement.guard : [...statement.guard, ...ends],
    indirects: statement.indirects.map((i) => substituteIndirect(i, whole)),
    reads: statement.reads.map(within),
    body: statement.body.map((e) => substituteScalar(e, whole)),
    finishReads: [],
    writes: names.map((tensor) => ({ tensor, index, combine: "overwrite" })),
  };
  const sum: Statement = {
    ...statement,
    name: `${statement.name}.sum`,
    loops: [...space, { ...part, kind: "reduce" }],
    indirects: [],
    reads: components.map(({ dtype }, i) => {
      return { tensor: names[i]!, index, guard: [], fill: zeroOf(dtype) };
    }),
    body: components.map(({ dtype }, i) => argument(i, dtype)),
  };
  const shape = [part, ...space].map((l) => l.extent);
  const sums = components.map(({ dtype }, i) => {
    const name = names[i]!;
    return [name, { name, dtype, shape, role: "intermediate" }] as const;
  });
  const tensors: Region["tensors"] = new Map<string, RegionTensor>([...region.tensors, ...sums]);
  const used = (s: Statement): Region["tensors"] => {
    const named = s.indirects.map((i) => i.access);
    const touched = [...s.reads, ...named, ...s.finishReads, ...s.writes].map((a) => a.tensor);
    return new Map([...tensors].filter(([tensor]) => touched.includes(tensor)));
  };
  const lone = (s: Statement, of: string): Region => ({
    ...{ ...region, name: of, group: { ...region.group, name: of } },
    statements: [s],
    tensors: used(s),
  });
  return [lone(product, region.name), lone(sum, `${region.name}.sum`)];
}
