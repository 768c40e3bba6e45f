/**
 * Nested bands as a list: directly nested bands and the loop marks between them are one chain of loops
 * with marks, which is what most directives change. Finds the chain that holds a statement's loop and
 * puts a changed one back.
 */
import { reject } from "../../support/diagnostic.ts";
import { admits } from "./flatten.ts";
import {
  type BandMember,
  type BandNode,
  type FilterNode,
  loopMarks,
  mapChildren,
  type ScheduleTree,
  type TreeMark,
} from "./tree.ts";

export interface ChainLoop {
  readonly member: BandMember;
  readonly marks: readonly TreeMark[];
}

export interface Chain {
  readonly loops: readonly ChainLoop[];
  /** What the innermost loop holds. */
  readonly rest: ScheduleTree;
}

/** The chains that trees were made of: one directive's result is the next one's start. */
const knownChains = new WeakMap<ScheduleTree, Chain>();

/** The loops at the top of a tree; none when it starts with something else. */
export function unchain(tree: ScheduleTree): Chain {
  return knownChains.get(tree) ?? readChain(tree);
}

function readChain(tree: ScheduleTree): Chain {
  const loops: ChainLoop[] = [];
  let node = tree;
  for (;;) {
    const marks: TreeMark[] = [];
    let below = node;
    while (below.kind === "mark" && isLoopMark(below.mark)) {
      marks.push(below.mark);
      below = below.child;
    }
    if (below.kind !== "band") return { loops, rest: node };
    loops.push(...below.members.map((member) => ({ member, marks })));
    node = below.child;
  }
}

/** The tree of a chain: neighbours with the same marks share a band. */
export function rechain(chain: Chain): ScheduleTree {
  const loops = chain.loops.map(unproved);
  const { rest } = chain;
  let tree = rest;
  for (let end = loops.length; end > 0; ) {
    let start = end - 1;
    const { marks } = loops[start]!;
    while (start > 0 && marks.length === 0 && loops[start - 1]!.marks.length === 0) start--;
    const members = loops.slice(start, end).map((l) => l.member);
    const band: BandNode = { kind: "band", members, permutable: false, child: tree };
    tree = marks.reduceRight<ScheduleTree>((child, mark) => ({ kind: "mark", mark, child }), band);
    end = start;
  }
  const isWhole = rest.kind !== "band" && rest.kind !== "mark";
  if (loops.length > 0 && isWhole) knownChains.set(tree, { loops, rest });
  return tree;
}

/** What was proved of a loop held for the tree that it comes from. */
function unproved(loop: ChainLoop): ChainLoop {
  return loop.member.coincident ? { ...loop, member: { ...loop.member, coincident: false } } : loop;
}

function isLoopMark(mark: TreeMark): boolean {
  return loopMarks.some((m) => m === mark.kind);
}

/** Whether a chain's loop runs the statement. */
export function runs({ member }: ChainLoop, statement: string): boolean {
  return member.values.has(statement);
}

/** A statement's loop, by the name that it has at this point. */
export interface LoopName {
  readonly statement: string;
  readonly loop: string;
}

/** Changes the chain that holds a loop; `at` is its place there. SCH002 when there is none. */
export function changeChain(
  tree: ScheduleTree,
  { statement, loop }: LoopName,
  change: (chain: Chain, at: number) => Chain | ScheduleTree,
): ScheduleTree {
  const seen: string[] = [];
  const visit = (node: ScheduleTree): ScheduleTree | undefined => {
    const chain = unchain(node);
    if (chain.loops.length > 0) {
      const at = chain.loops.findIndex((l) => runs(l, statement) && l.member.loop === loop);
      if (at >= 0) {
        const changed = change(chain, at);
        return "rest" in changed ? rechain(changed) : changed;
      }
      seen.push(...chain.loops.filter((l) => runs(l, statement)).map((l) => l.member.loop));
      const rest = visit(chain.rest);
      return rest && rechain({ loops: chain.loops, rest });
    }
    return visitChildren(node, statement, visit);
  };
  const changed = visit(tree);
  if (changed) return changed;
  if (seen.length === 0 && !hasLoops(tree, statement)) return noStatement(statement);
  return reject("SCH002", `statement ${statement} has no loop ${loop} at this point`, {
    at: `${statement}:${loop}`,
    help: `its loops are ${seen.join(" ")}`,
  });
}

export function noStatement(statement: string): never {
  return reject("SCH001", `there is no statement ${statement} in the schedule`, { at: statement });
}

function visitChildren(
  node: ScheduleTree,
  statement: string,
  visit: (node: ScheduleTree) => ScheduleTree | undefined,
): ScheduleTree | undefined {
  if (node.kind === "leaf") return undefined;
  if ("children" in node) {
    const at = node.children.findIndex((c) => admits(c, statement));
    const child = at < 0 ? undefined : visit(node.children[at]!.child);
    if (!child) return undefined;
    const filter: FilterNode = { ...node.children[at]!, child };
    return { ...node, children: node.children.with(at, filter) };
  }
  const child = visit(node.child);
  return child && { ...node, child };
}

function hasLoops(tree: ScheduleTree, statement: string): boolean {
  if (tree.kind === "filter") return admits(tree, statement);
  if (tree.kind === "band") return tree.members.some((m) => m.values.has(statement));
  if ("children" in tree) return tree.children.some((c) => hasLoops(c, statement));
  return tree.kind !== "leaf" && hasLoops(tree.child, statement);
}

/** Sequences in sequences become one, and what holds a single child becomes the child. */
export function simplifyTree(tree: ScheduleTree): ScheduleTree {
  const inside = mapChildren(tree, simplifyTree);
  if (inside.kind !== "sequence" && inside.kind !== "set") return inside;
  const children = inside.children.flatMap((c) =>
    inside.kind === "sequence" && c.child.kind === "sequence" ? c.child.children : [c],
  );
  return children.length === 1 ? children[0]!.child : { ...inside, children };
}
