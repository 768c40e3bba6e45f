/**
 * Directives on what runs side by side: fusion (a shift is in loop-directives.ts), fission, software pipelines and
 * roles. Changes of the tree alone, checked for form; legality.ts judges the order they give.
 */
import { reject } from "../../support/diagnostic.ts";
import { add } from "../expression.ts";
import {
  type Chain,
  type ChainLoop,
  changeChain,
  type LoopName,
  rechain,
  simplifyTree,
  unchain,
} from "./chain.ts";
import { admits } from "./flatten.ts";
import { checkFactor } from "./loop-directives.ts";
import { type FilterNode, mapChildren, type ScheduleTree } from "./tree.ts";

export interface FuseRequest {
  readonly statement: string;
  readonly into: string;
  /** The innermost loop of `into` to share. */
  readonly at: string;
}

/** Runs `statement` inside the loops of `into` down to `at`, beside what is there, in the old order. */
export function fuseLoops(tree: ScheduleTree, request: FuseRequest): ScheduleTree {
  const { statement, into } = request;
  if (statement === into) {
    reject("SCH010", `${statement} cannot be fused into itself`, { at: statement });
  }
  let found = false;
  const visit = (node: ScheduleTree): ScheduleTree => {
    if (node.kind !== "sequence" && node.kind !== "set") return mapChildren(node, visit);
    const guest = node.children.findIndex((c) => admits(c, statement));
    const host = node.children.findIndex((c) => admits(c, into));
    if (guest < 0 || host < 0 || guest === host) return mapChildren(node, visit);
    found = true;
    const merged = mergeChildren(node.children[guest]!, node.children[host]!, {
      ...request,
      guestFirst: guest < host,
    });
    const children = node.children.with(host, merged).filter((_, i) => i !== guest);
    return { ...node, children };
  };
  const fused = visit(tree);
  if (!found) {
    reject("SCH010", `${statement} and ${into} do not stand side by side`, {
      at: `fuse ${statement} into ${into}`,
      help: "both must be statements of the schedule that do not share all of their loops",
    });
  }
  return simplifyTree(fused);
}

interface Merge extends FuseRequest {
  readonly guestFirst: boolean;
}

function mergeChildren(guest: FilterNode, host: FilterNode, merge: Merge): FilterNode {
  const { statement, into, at } = merge;
  const [own, its] = [unchain(guest.child), unchain(host.child)];
  const depth = its.loops.findIndex((l) => l.member.loop === at) + 1;
  const deeper = depth === 0 ? besideOthers(its, into) : undefined;
  if (depth === 0 && !deeper) {
    reject("SCH002", `statement ${into} has no loop ${at} directly there`, {
      at: `fuse ${statement} into ${into}`,
      help: `its loops are ${its.loops.map((l) => l.member.loop).join(" ")}`,
    });
  }
  const count = deeper ? its.loops.length : depth;
  const shared = its.loops.slice(0, count).map((l, i) => shareLoop(own.loops[i], l, statement));
  const rest = (chain: Chain): ScheduleTree =>
    rechain({ loops: chain.loops.slice(count), rest: chain.rest });
  const inner = { ...guest, child: rest(own) };
  const children = deeper
    ? deeper.children.with(deeper.at, mergeChildren(inner, deeper.children[deeper.at]!, merge))
    : sideBySide(inner, { ...host, child: rest(its) }, merge);
  const child = rechain({ loops: shared, rest: { kind: "sequence", children } });
  return { kind: "filter", statements: children.flatMap((c) => c.statements), child };
}

/** What runs inside a chain's loops one after another, and where a statement is among it. */
function besideOthers(
  { rest }: Pick<Chain, "rest">,
  statement: string,
): { readonly children: readonly FilterNode[]; readonly at: number } | undefined {
  if (rest.kind !== "sequence") return undefined;
  return { children: rest.children, at: rest.children.findIndex((c) => admits(c, statement)) };
}

/** The guest directly before its host, or behind all that is there: guests stand as they were fused. */
function sideBySide(
  guest: FilterNode,
  host: FilterNode,
  { into, guestFirst }: Merge,
): readonly FilterNode[] {
  const others = besideOthers({ rest: host.child }, into);
  if (!others) return guestFirst ? [guest, host] : [host, guest];
  const { children, at } = others;
  return children.toSpliced(guestFirst ? at : children.length, 0, guest);
}

function shareLoop(own: ChainLoop | undefined, its: ChainLoop, statement: string): ChainLoop {
  const marks = (l: ChainLoop): string => l.marks.map((m) => m.kind).join();
  if (!own || marks(own) !== marks(its)) {
    const found = own ? `${own.member.loop} (${marks(own) || "serial"})` : "none";
    const wanted = `${its.member.loop} (${marks(its) || "serial"})`;
    return reject("SCH012", `the loop of ${statement} for ${wanted} is ${found}`, {
      at: its.member.loop,
      help: "split, reorder and mark both statements alike",
    });
  }
  const values = new Map([...its.member.values, ...own.member.values]);
  return { ...its, member: { ...its.member, values } };
}

/** The loop and all inside it run to their end for what stands up to `statement`, then for the rest. */
export function fissionLoop(tree: ScheduleTree, request: LoopName): ScheduleTree {
  const { statement, loop } = request;
  const split = changeChain(tree, request, (chain, at) => {
    const { rest } = chain;
    const cut =
      rest.kind === "sequence" ? rest.children.findIndex((c) => admits(c, statement)) + 1 : 0;
    if (rest.kind !== "sequence" || cut === 0 || cut === rest.children.length) {
      return reject("SCH010", `nothing runs behind ${statement} in loop ${loop}`, {
        at: `fission ${statement}:${loop}`,
        help: "name a statement with others behind it in the same loop",
      });
    }
    const inner = chain.loops.slice(at);
    const parts = [rest.children.slice(0, cut), rest.children.slice(cut)];
    const children = parts.map((part): FilterNode => {
      const statements = part.flatMap((c) => c.statements);
      const loops = inner.map((l) => only(l, statements));
      const below: ScheduleTree = { kind: "sequence", children: part };
      return { kind: "filter", statements, child: rechain({ loops, rest: below }) };
    });
    return { loops: chain.loops.slice(0, at), rest: { kind: "sequence", children } };
  });
  return simplifyTree(split);
}

function only(loop: ChainLoop, statements: readonly string[]): ChainLoop {
  const values = new Map([...loop.member.values].filter(([s]) => statements.includes(s)));
  return { ...loop, member: { ...loop.member, values } };
}

export interface PipelineRequest {
  readonly loop: string;
  /** Stage of each statement: it works on iteration i while stage s + 1 works on iteration i - 1. */
  readonly stages: ReadonlyMap<string, number>;
}

/**
 * A software pipeline: the stages of different iterations run at once. Stage s of iteration i stands in
 * step i + s; what is in one step is in no order across stages.
 */
export function pipelineLoop(tree: ScheduleTree, request: PipelineRequest): ScheduleTree {
  const { loop, stages } = request;
  const [first] = stages.keys();
  for (const stage of stages.values()) checkFactor(loop, stage + 1);
  return changeChain(tree, { statement: first ?? "", loop }, (chain, at) => {
    const groups = groupChildren(chain, `pipeline ${loop}`, (s) => {
      const stage = stages.get(s);
      return stage === undefined ? noStage(s, loop) : String(stage);
    });
    const old = chain.loops[at]!;
    const values = new Map([...old.member.values].map(([s, v]) => [s, add(v, stages.get(s) ?? 0)]));
    const loops = chain.loops.with(at, { ...old, member: { ...old.member, values } });
    return { loops, rest: { kind: "set", children: groups.map((g) => g.filter) } };
  });
}

function noStage(statement: string, loop: string): never {
  return reject("SCH001", `${statement} has no stage in the pipeline of ${loop}`, {
    at: `pipeline ${loop}`,
    help: "give every statement of the loop a stage",
  });
}

export interface RolesRequest {
  readonly loop: string;
  readonly roles: ReadonlyMap<string, string>;
}

/** Statements of a loop run side by side on threads of their own; they meet at every iteration. */
export function assignRoles(tree: ScheduleTree, request: RolesRequest): ScheduleTree {
  const { loop, roles } = request;
  const [first] = roles.keys();
  return changeChain(tree, { statement: first ?? "", loop }, (chain) => {
    const groups = groupChildren(chain, `roles ${loop}`, (s) => roles.get(s) ?? noRole(s, loop));
    const children = groups.map(({ key, filter }) => {
      const child: ScheduleTree = {
        kind: "mark",
        mark: { kind: "role", role: key },
        child: filter.child,
      };
      return { ...filter, child };
    });
    return { ...chain, rest: { kind: "set", children } };
  });
}

function noRole(statement: string, loop: string): never {
  return reject("SCH001", `${statement} has no role in loop ${loop}`, {
    at: `roles ${loop}`,
    help: "give every statement of the loop a role",
  });
}

/** The children below a chain by key, in the order of their first statement. */
function groupChildren(
  { rest }: Chain,
  at: string,
  keyOf: (statement: string) => string,
): readonly { readonly key: string; readonly filter: FilterNode }[] {
  if (rest.kind !== "sequence") {
    return reject("SCH010", "the loop does not hold several statements one after another", { at });
  }
  const groups = new Map<string, FilterNode[]>();
  for (const child of rest.children) {
    const keys = new Set(child.statements.map(keyOf));
    if (keys.size > 1) {
      reject("SCH010", `${child.statements.join(", ")} share a loop and cannot part`, { at });
    }
    const [key] = keys;
    groups.set(key!, [...(groups.get(key!) ?? []), child]);
  }
  return [...groups].map(([key, children]) => {
    const statements = children.flatMap((c) => c.statements);
    const child: ScheduleTree =
      children.length === 1 ? children[0]!.child : { kind: "sequence", children };
    return { key, filter: { kind: "filter", statements, child } };
  });
}
