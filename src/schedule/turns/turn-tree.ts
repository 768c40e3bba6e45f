/**
 * The order that `turn` means, as a tree over the loops of its statement: tiles on blocks, vectors of results on
 * threads, those of a thread one after another. Goes in: a region whose map turns what it reads; comes out: the tree
 * with affine/'s verdict. That what a block brings is in shared memory before a thread reads it is the lowering's
 * barrier, which the validator proves.
 */
import * as affine from "../../affine/index.ts";
import { judgedTree, spread } from "../rows/rows-tree.ts";
import type { ScheduledRegion, ScheduledTurn } from "../scheduled-region.ts";
import type { TreeSchedule } from "../tree/tree-schedule.ts";

export function turnSchedule({ region }: ScheduledRegion, turn: ScheduledTurn): TreeSchedule {
  return judgedTree(region, treeOfTurn(turn));
}

function treeOfTurn({ form, directive }: ScheduledTurn): affine.ScheduleTree {
  const { statement, read, written, others } = form;
  const { tile, threads, lanes } = directive;
  const one = (value: affine.Affine) => new Map([[statement.name, value]]);
  const [across, down] = [affine.affine(read.name), affine.affine(written.name)];
  const perRow = tile[1] / lanes[1];
  const vector = affine.add(
    affine.scale(perRow, affine.remainder(across, tile[0])),
    affine.floorDivide(affine.remainder(down, tile[1]), lanes[1]),
  );
  const members = [
    { loop: "vector", values: one(affine.floorDivide(vector, threads)), coincident: false },
    { loop: "element", values: one(down), coincident: false },
  ];
  const inThread: affine.ScheduleTree = {
    kind: "band",
    members,
    permutable: false,
    child: { kind: "leaf" },
  };
  const onThreads = spread("thread", one(affine.remainder(vector, threads)), "threads", inThread);
  const tiles = [
    ...others.map((l) => [l.name, affine.affine(l.name)] as const),
    [`${written.name}.tile`, affine.floorDivide(down, tile[1])] as const,
    [`${read.name}.tile`, affine.floorDivide(across, tile[0])] as const,
  ];
  return tiles.reduceRight<affine.ScheduleTree>(
    (child, [loop, value]) => spread(loop, one(value), "blocks", child),
    onThreads,
  );
}
