/** The loops that a scheduled region's tree becomes, for people: affine/tree/generate-loops.ts makes them. */
import { generateLoops, type LoopNode } from "../../affine/index.ts";
import { attempt, fail, ok, type Result } from "../../support/diagnostic.ts";
import { treeOf } from "../products/product-tree.ts";
import { refuseUnproved } from "../refusal.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { scheduleTree } from "./tree.ts";
import { regionNest } from "./tree-schedule.ts";

export function scheduleLoops(region: ScheduledRegion): Result<LoopNode> {
  const tree = scheduleTree(region);
  if (!tree.ok) return fail(...tree.diagnostics);
  const verdict = treeOf(region)?.verdict;
  const nest = verdict?.kind === "legal" ? verdict.plan.nest : regionNest(region.region).nest;
  const { statements, context } = nest;
  const made = generateLoops({ statements, tree: tree.value, ...(context && { context }) });
  if (made.kind === "known") return ok(made.value);
  return attempt(() => refuseUnproved(region, "the bounds of the loops", made.reason));
}
