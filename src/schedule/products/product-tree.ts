/**
 * The order that `multiply` means, as a tree over the loops of its statement: tiles of rows and columns on
 * blocks (one, or one after another), warps within them, steps of the depth, and what a warp's step holds. Goes in: a region with
 * products; comes out: the tree with affine/'s verdict, which is what legality, `inspect` and the place of an
 * iteration go by. Which thread of a warp holds a sum, the instruction decides (lower/product/place.ts).
 */
import * as affine from "../../affine/index.ts";
import type { Statement } from "../../region/nest.ts";
import { constantValue, variablesOf } from "../../semantics/index-expr.ts";
import { attentionSchedule } from "../attention/attention-tree.ts";
import { judgedTree, rowsSchedule } from "../rows/rows-tree.ts";
import type { ScheduledProduct, ScheduledRegion } from "../scheduled-region.ts";
import { regionNest, type TreeSchedule } from "../tree/tree-schedule.ts";
import { turnSchedule } from "../turns/turn-tree.ts";
import type { ProductPart } from "./product-form.ts";
import type { ResultFold } from "./result-folds.ts";

const known = new WeakMap<ScheduledRegion, TreeSchedule>();

/** The tree of a region whose order only a tree can say. */
export function treeOf(region: ScheduledRegion): TreeSchedule | undefined {
  const { rows, products, attention, turn } = region;
  if (region.tree || (products.length === 0 && !rows && !attention && !turn)) return region.tree;
  const make = (): TreeSchedule => {
    if (attention) return attentionSchedule(region, attention);
    if (turn) return turnSchedule(region, turn);
    return rows ? rowsSchedule(region, rows) : productSchedule(region);
  };
  const made = known.get(region) ?? make();
  known.set(region, made);
  return made;
}

function productSchedule(scheduled: ScheduledRegion): TreeSchedule {
  const { region, products } = scheduled;
  const [only] = products;
  if (only?.form.fold) return judgedTree(region, foldedTree(scheduled, only, only.form.fold));
  const { nest, approximated } = regionNest(region);
  const tree = products.reduce((t, p) => withProduct(t, p), nest.tree);
  return { nest, approximated, verdict: affine.judgePlan({ nest, tree }, 0) };
}

/** The tree with the band of the product's statement in blocks, warps and steps. */
function withProduct(tree: affine.ScheduleTree, product: ScheduledProduct): affine.ScheduleTree {
  if (tree.kind === "leaf") return tree;
  if ("children" in tree) {
    const children = tree.children.map((c) => ({ ...c, child: withProduct(c.child, product) }));
    return { ...tree, children };
  }
  const { statement } = product.directive;
  if (tree.kind !== "band" || !tree.members.some((m) => m.values.has(statement))) {
    return { ...tree, child: withProduct(tree.child, product) };
  }
  const taken = new Set(tree.members.map((m) => m.loop));
  return outerLoops(product).reduceRight<affine.ScheduleTree>((child, { loop, value, mark }) => {
    let name = loop;
    while (taken.has(name)) name = `${name}_`;
    const values = new Map([[statement, value]]);
    const members = [{ loop: name, values, coincident: false }];
    const band: affine.ScheduleTree = { kind: "band", members, permutable: false, child };
    return mark ? { kind: "mark", mark: { kind: mark }, child: band } : band;
  }, tree);
}

/** Tiles and warps of both statements together; in a warp the product, then the fold of what it made. */
function foldedTree(
  { region }: ScheduledRegion,
  product: ScheduledProduct,
  fold: ResultFold,
): affine.ScheduleTree {
  const [made] = region.statements as readonly [Statement];
  const outer = outerLoops(product);
  const step = outer.at(-1)!;
  const leaf: affine.ScheduleTree = { kind: "leaf" };
  const children = [made, fold.statement].map(({ name, loops }) => {
    const own = loops.map((l) => ({ loop: `${name}.${l.name}`, value: affine.affine(l.name) }));
    const all = name === made.name ? [step, ...own] : own;
    const child = all.reduceRight<affine.ScheduleTree>((below, { loop, value }) => {
      const members = [{ loop, values: new Map([[name, value]]), coincident: false }];
      return { kind: "band", members, permutable: false, child: below };
    }, leaf);
    return { kind: "filter" as const, statements: [name], child };
  });
  const together: affine.ScheduleTree = { kind: "sequence", children };
  const ofFold = outerLoops(product, placesOf(fold));
  return outer.slice(0, -1).reduceRight<affine.ScheduleTree>((child, { loop, value, mark }, i) => {
    const values = new Map([
      [made.name, value],
      [fold.statement.name, ofFold[i]!.value],
    ]);
    const members = [{ loop, values, coincident: false }];
    const band: affine.ScheduleTree = { kind: "band", members, permutable: false, child };
    return mark ? { kind: "mark", mark: { kind: mark }, child: band } : band;
  }, together);
}

/** The product's loops over those of the fold. */
function placesOf({ loops, columns }: ResultFold): PlaceOf {
  const places = new Map<string, affine.Affine>();
  for (const [own, place] of loops) {
    const [made] = variablesOf(place);
    if (made === undefined) continue;
    const isTile = place.terms[0]!.atoms[0]!.kind === "floorDiv";
    const part = affine.scale(isTile ? columns : 1, affine.affine(own));
    places.set(made, affine.add(places.get(made) ?? affine.affine(0), part));
  }
  return (loop) => places.get(loop) ?? affine.affine(0);
}

type PlaceOf = (loop: string) => affine.Affine;

interface OuterLoop {
  readonly loop: string;
  readonly value: affine.Affine;
  readonly mark?: "blocks" | "groups";
}

/** Rows of one instruction of four warps, and of each of them. */
const [groupRows, warpRows] = [64, 16];

function outerLoops(
  { form, directive }: ScheduledProduct,
  placeOf: PlaceOf = (loop) => affine.affine(loop),
): readonly OuterLoop[] {
  const [rows, columns, depth] = directive.tile;
  const wholeOf = (part: ProductPart): affine.Affine => numberOf(part, placeOf);
  const [row, column] = [wholeOf(form.rows), wholeOf(form.columns)];
  const tall = Math.ceil(form.rows.extent / rows);
  const group = Math.min(directive.group, tall);
  const below = affine.remainder(affine.floorDivide(row, rows), group);
  const grid: readonly (OuterLoop & { readonly extent: number })[] = [
    { loop: "batch", value: wholeOf(form.batch), extent: form.batch.extent },
    { loop: "down", value: affine.floorDivide(row, rows * group), extent: Math.ceil(tall / group) },
    {
      loop: "across",
      value: affine.floorDivide(column, columns),
      extent: Math.ceil(form.columns.extent / columns),
    },
    { loop: "below", value: below, extent: group },
  ];
  const { blocks } = directive;
  const number = grid.reduce(
    (at, l) => affine.add(affine.scale(l.extent, at), l.value),
    affine.affine(0),
  );
  const tiles: readonly OuterLoop[] =
    blocks === 0
      ? grid.filter((l) => l.extent > 1).map((l) => ({ ...l, mark: "blocks" as const }))
      : [
          { loop: "block", value: affine.remainder(number, blocks), mark: "blocks" },
          { loop: "turn", value: affine.floorDivide(number, blocks) },
        ];
  return [
    ...tiles,
    { loop: "warp", value: warpOf(directive, row, column), mark: "groups" as const },
    { loop: "step", value: affine.floorDivide(wholeOf(form.depth), depth) },
  ];
}

/** The number of the warp in its block, of those that multiply. */
function warpOf(
  { by, tile, warps }: ScheduledProduct["directive"],
  row: affine.Affine,
  column: affine.Affine,
): affine.Affine {
  const [rows, columns] = tile;
  const [down, across] = warps;
  const inRow = affine.remainder(row, rows);
  if (by === "wgmma") {
    const group = affine.floorDivide(inRow, rows / (down / 4));
    const inGroup = affine.floorDivide(affine.remainder(inRow, groupRows), warpRows);
    return affine.add(affine.scale(4, group), inGroup);
  }
  const tall = affine.floorDivide(inRow, rows / down);
  const wide = affine.floorDivide(affine.remainder(column, columns), columns / across);
  return affine.add(affine.scale(across, tall), wide);
}

/** All loops of a part as one index, row-major. */
function numberOf({ loops }: ProductPart, placeOf: PlaceOf): affine.Affine {
  const [first, ...inner] = loops;
  return inner.reduce(
    (at, l) => affine.add(affine.scale(constantValue(l.extent)!, at), placeOf(l.name)),
    first ? placeOf(first.name) : affine.affine(0),
  );
}
