/**
 * The order that `attend` means, as a tree over the loops of all statements of its region: problems and tiles
 * of rows on blocks, rows of a tile on groups of threads, within a row one statement after another. Goes in:
 * a region with attention; comes out: the tree with affine/'s verdict, which legality, `inspect` and the place
 * of an iteration go by: whatever a row reads of the region, the same row made. That the columns of a row are
 * met once, with sums scaled by the way, is no order of these statements but another way to fold them,
 * which their numeric class allows or the form refuses.
 */
import * as affine from "../../affine/index.ts";
import {
  constantValue,
  type IndexExpr,
  splitLinear,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { judgedTree, spread } from "../rows/rows-tree.ts";
import type { ScheduledAttention, ScheduledRegion } from "../scheduled-region.ts";
import type { TreeSchedule } from "../tree/tree-schedule.ts";
import { type AttentionForm, rowName } from "./attention-form.ts";

export function attentionSchedule(
  { region }: ScheduledRegion,
  { form, directive }: ScheduledAttention,
): TreeSchedule {
  const children = region.statements.map(({ name, loops }) => {
    const outer = new Set(outerLoops(form, name));
    const inner = loops.filter((l) => !outer.has(l.name));
    const leaf: affine.ScheduleTree = { kind: "leaf" };
    const child = inner.reduceRight<affine.ScheduleTree>((below, l) => {
      const values = new Map([[name, affine.affine(l.name)]]);
      const members = [{ loop: `${name}.${l.name}`, values, coincident: false }];
      return { kind: "band", members, permutable: false, child: below };
    }, leaf);
    return { kind: "filter" as const, statements: [name], child };
  });
  const [rows] = directive.tile;
  const valuesOf = (loop: string, change: (e: affine.Affine) => affine.Affine) =>
    new Map(region.statements.map((s) => [s.name, change(valueIn(form, s.name, loop))]));
  let tree: affine.ScheduleTree = { kind: "sequence", children };
  if (form.rows > 1) {
    const own = valuesOf(rowName!, (e) => affine.remainder(e, rows));
    tree = spread("row", own, "groups", tree);
    tree = spread(
      "tile",
      valuesOf(rowName!, (e) => affine.floorDivide(e, rows)),
      "blocks",
      tree,
    );
  }
  for (const { name } of form.batch.toReversed()) {
    tree = spread(
      name.slice(1),
      valuesOf(name, (e) => e),
      "blocks",
      tree,
    );
  }
  return judgedTree(region, tree);
}

/** Loops of a statement that are fixed by problem and row. */
function outerLoops(form: AttentionForm, statement: string): readonly string[] {
  const outer = new Set([rowName!, ...form.batch.map((l) => l.name)]);
  return [...form.names.get(statement)!].flatMap(([loop, e]) =>
    [...variablesOf(e)].some((name) => outer.has(name)) ? [loop] : [],
  );
}

/** A loop of the form over the loops of a statement: the digit of the loop that it is part of. */
function valueIn(form: AttentionForm, statement: string, wanted: string): affine.Affine {
  const extent =
    wanted === rowName
      ? form.rows
      : constantValue(form.batch.find((l) => l.name === wanted)!.extent)!;
  for (const [loop, e] of form.names.get(statement)!) {
    const own: IndexExpr = e;
    const coefficient = splitLinear(own, wanted)?.coefficient;
    if (!coefficient) continue;
    const value = affine.affine(loop);
    if (own.key === wanted) return value;
    return affine.remainder(affine.floorDivide(value, coefficient), extent);
  }
  return affine.affine(0);
}
