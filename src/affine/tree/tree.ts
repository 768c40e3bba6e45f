/**
 * Schedule trees: when the instances of statements run (S. Verdoolaege et al., "Schedule trees",
 * IMPACT 2014). Eight kinds of node above the leaves: the domain, conditions on parameters
 * (context), bands of loops, filters, sequences and sets of filters, marks, and extensions, which add
 * instances inside loops (copies). A tree is a value: transform/ makes others of it, flatten.ts gives
 * the time of every instance, run.ts runs it, tree-text.ts prints it.
 *
 * Loops are named: within the path from the root to a leaf each name stands once.
 */
import type { Affine } from "../expression.ts";

export interface BandMember {
  /** The loop's name. */
  readonly loop: string;
  /** Its value in each statement, over that statement's own dimensions. */
  readonly values: ReadonlyMap<string, Affine>;
  /** No dependence that is not ordered outside the band is carried by the loop: proved. */
  readonly coincident: boolean;
}

/**
 * `parallel`, `groups` and `threads` iterations run in any order and meet when the loop ends. Those of
 * `grid`, `device` and `blocks` meet only when the kernel ends. `vector` iterations run at once.
 */
export type LoopMark =
  | "parallel"
  | "grid"
  | "device"
  | "blocks"
  | "groups"
  | "threads"
  | "vector"
  | "unroll";

export const loopMarks: readonly LoopMark[] = [
  "parallel",
  "grid",
  "device",
  "blocks",
  "groups",
  "threads",
  "vector",
  "unroll",
];

/** A mark on the band below it, or on everything below it. */
export type TreeMark =
  | { readonly kind: LoopMark }
  | { readonly kind: "placed" | "staged"; readonly tensor: string; readonly scope: string }
  /** What is below runs on threads of its own, beside the other roles of a set. */
  | { readonly kind: "role"; readonly role: string };

export interface FilterNode {
  readonly kind: "filter";
  readonly statements: readonly string[];
  readonly child: ScheduleTree;
}

export interface BandNode {
  readonly kind: "band";
  readonly members: readonly BandMember[];
  /** The members may be exchanged and tiled: proved. */
  readonly permutable: boolean;
  readonly child: ScheduleTree;
}

export type ScheduleTree =
  /** The instances, a set in isl's notation. */
  | { readonly kind: "domain"; readonly text: string; readonly child: ScheduleTree }
  /** What holds for the parameters, a set without dimensions in isl's notation. */
  | { readonly kind: "context"; readonly text: string; readonly child: ScheduleTree }
  /** Children one after another; in a set in any order, also at once. */
  | { readonly kind: "sequence" | "set"; readonly children: readonly FilterNode[] }
  | FilterNode
  | BandNode
  | { readonly kind: "mark"; readonly mark: TreeMark; readonly child: ScheduleTree }
  /**
   * More instances: a map from the loops outside, in their order, to instances of one statement whose
   * first dimensions are those loops.
   */
  | {
      readonly kind: "extension";
      readonly statement: string;
      readonly text: string;
      readonly child: ScheduleTree;
    }
  | { readonly kind: "leaf" };

export const leaf: ScheduleTree = { kind: "leaf" };

export function childrenOf(tree: ScheduleTree): readonly ScheduleTree[] {
  if (tree.kind === "leaf") return [];
  return "children" in tree ? tree.children : [tree.child];
}

export function withChild<T extends ScheduleTree & { readonly child: ScheduleTree }>(
  tree: T,
  child: ScheduleTree,
): T {
  return { ...tree, child };
}

/** The tree with every child changed. */
export function mapChildren(
  tree: ScheduleTree,
  change: (child: ScheduleTree) => ScheduleTree,
): ScheduleTree {
  if (tree.kind === "leaf") return tree;
  if (!("children" in tree)) return { ...tree, child: change(tree.child) };
  const children = tree.children.map((c): FilterNode => ({ ...c, child: change(c.child) }));
  return { ...tree, children };
}

/** Whether marked loops run in no order: everything but `unroll`. */
export function isUnordered(mark: TreeMark | undefined): boolean {
  if (mark === undefined) return false;
  return loopMarks.some((m) => m === mark.kind && m !== "unroll");
}

/** Whether iterations of a loop so marked meet only when the kernel ends. */
export function meetsAtEnd(mark: TreeMark): boolean {
  return mark.kind === "grid" || mark.kind === "device" || mark.kind === "blocks";
}
