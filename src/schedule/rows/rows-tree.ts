/**
 * The order that `rows` means, as a tree over the loops of all statements of its region: rows on blocks and
 * groups of threads, within a row one statement after another, and the elements of a map on threads. Goes in:
 * a region with rows; comes out: the tree with affine/'s verdict, which legality, `inspect` and the place of
 * an iteration go by. That every thread has what a fold made before a later statement runs is the lowering's
 * exchange, which the validator proves.
 */
import * as affine from "../../affine/index.ts";
import type { Region } from "../../region/nest.ts";
import type { RowsDirective } from "../directive.ts";
import type { ScheduledRegion, ScheduledRows } from "../scheduled-region.ts";
import { regionNest, type TreeSchedule } from "../tree/tree-schedule.ts";
import { elementLanes, type RowStatement, rowLoop } from "./rows-form.ts";

export function rowsSchedule({ region }: ScheduledRegion, rows: ScheduledRows): TreeSchedule {
  return judgedTree(region, treeOfRows(rows));
}

/** The tree below the region's domain with affine/'s verdict. */
export function judgedTree(region: Region, own: affine.ScheduleTree): TreeSchedule {
  const { nest, approximated } = regionNest(region);
  const tree = replaceLoops(nest.tree, innermost(nest.tree), own);
  return { nest, approximated, verdict: affine.judgePlan({ nest, tree }, 0) };
}

/** The part below the domain and its context. */
function innermost(tree: affine.ScheduleTree): affine.ScheduleTree {
  const isAbove = tree.kind === "domain" || tree.kind === "context";
  return isAbove ? innermost(tree.child) : tree;
}

function replaceLoops(
  tree: affine.ScheduleTree,
  from: affine.ScheduleTree,
  to: affine.ScheduleTree,
): affine.ScheduleTree {
  if (tree === from) return to;
  if (tree.kind !== "domain" && tree.kind !== "context") return tree;
  return { ...tree, child: replaceLoops(tree.child, from, to) };
}

function treeOfRows({ form, directive }: ScheduledRows): affine.ScheduleTree {
  const { statements, rows } = form;
  const children = statements.map((s) => ({
    kind: "filter" as const,
    statements: [s.statement.name],
    child: elements(s, directive),
  }));
  const together: affine.ScheduleTree =
    children.length === 1 ? children[0]!.child : { kind: "sequence", children };
  const last = rows.length - 1;
  const valuesOf = (n: number, value: (loop: string) => affine.Affine) =>
    new Map(statements.map((s) => [s.statement.name, value(s.loops[n]!)]));
  let tree = together;
  // Across rows those of a vector run one after another, innermost.
  const own = directive.across ? directive.lanes : 1;
  if (directive.rows > 1) {
    const values = valuesOf(last, (l) =>
      affine.remainder(affine.floorDivide(affine.affine(l), own), directive.rows),
    );
    tree = spread("together", values, "groups", tree);
  }
  for (let n = last; n >= 0; n--) {
    const together = n === last ? own * directive.rows : 1;
    const values = valuesOf(n, (l) => affine.floorDivide(affine.affine(l), together));
    tree = spread(rowLoop(n).slice(1), values, "blocks", tree);
  }
  return tree;
}

/**
 * Elements of a map in vectors dealt out to the threads of the row, of all parts; a fold and a scan are in their own
 * order.
 */
function elements(
  { statement, work, loops }: RowStatement,
  directive: RowsDirective,
): affine.ScheduleTree {
  const leaf: affine.ScheduleTree = { kind: "leaf" };
  const one = (value: affine.Affine) => new Map([[statement.name, value]]);
  const { across, lanes, parts } = directive;
  const beside = work === "once" ? loops.at(-1) : loops.at(-2);
  const isAcross = across && lanes > 1 && beside !== undefined;
  const inner = isAcross
    ? band("beside", one(affine.remainder(affine.affine(beside), lanes)), leaf)
    : leaf;
  if (work === "once") return inner;
  const loop = affine.affine(loops.at(-1)!);
  const all = band("element", one(loop), inner);
  if (work === "fold" || work === "scan") return all;
  const threads = directive.threads * parts;
  const vector = affine.floorDivide(loop, elementLanes(directive));
  const inThread = band("vector", one(affine.floorDivide(vector, threads)), all);
  return spread("thread", one(affine.remainder(vector, threads)), "threads", inThread);
}

type Values = ReadonlyMap<string, affine.Affine>;

function band(loop: string, values: Values, child: affine.ScheduleTree): affine.ScheduleTree {
  const members = [{ loop, values: new Map(values), coincident: false }];
  return { kind: "band", members, permutable: false, child };
}

/** A band whose iterations run on a level of the grid. */
export function spread(
  loop: string,
  values: Values,
  mark: "blocks" | "groups" | "threads",
  child: affine.ScheduleTree,
): affine.ScheduleTree {
  return { kind: "mark", mark: { kind: mark }, child: band(loop, values, child) };
}
