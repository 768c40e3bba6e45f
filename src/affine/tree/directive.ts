/**
 * The directives on trees as values, their application one after another, and the verdict. What each
 * does stands in loop-directives.ts, order-directives.ts, split-directives.ts, storage-directives.ts and
 * overlap.ts.
 *
 * Directives that only move instances are judged together, by the order that they end in: an exchange
 * that breaks a dependence and a skew that mends it are fine. One that changes the program (a split
 * reduction, storage, copies) starts from an order that must be legal by itself; the changed program in
 * that order is what later directives have to keep.
 */
import { attempt, type Diagnostic, diagnostic, reject } from "../../support/diagnostic.ts";
import type { ConflictMemory } from "../known-conflicts.ts";
import type { Legality, Witness } from "../legality.ts";
import { checkDependence, pairOf } from "../legality.ts";
import type { UnknownReason } from "../work.ts";
import type { LoopName } from "./chain.ts";
import { checkTree } from "./check.ts";
import { extendedBelow, timeMapOf, timePaths } from "./flatten.ts";
import {
  type DiamondRequest,
  diamondTile,
  interchangeLoops,
  jamLoop,
  markLoop,
  reorderLoops,
  type SplitRequest,
  shiftLoop,
  skewLoop,
  splitLoop,
  type TileRequest,
  tileLoops,
} from "./loop-directives.ts";
import { type Nest, nestDependences, type Plan } from "./nest-program.ts";
import {
  assignRoles,
  type FuseRequest,
  fissionLoop,
  fuseLoops,
  type PipelineRequest,
  pipelineLoop,
  type RolesRequest,
} from "./order-directives.ts";
import { type OverlapDirective, overlapTiles } from "./overlap.ts";
import { combinedAccess, type SplitDirective, splitPlan } from "./split-directives.ts";
import { checkStorage, type StorageClash } from "./storage.ts";
import { relocated, relocationOf, type StorageDirective } from "./storage-directives.ts";
import { childrenOf, type LoopMark, type ScheduleTree } from "./tree.ts";

export type OrderDirective =
  | ({ readonly kind: "split" } & SplitRequest)
  | ({ readonly kind: "jam" } & SplitRequest)
  | ({ readonly kind: "tile" } & TileRequest)
  | { readonly kind: "reorder"; readonly statement: string; readonly order: readonly string[] }
  | ({ readonly kind: "interchange"; readonly other: string } & LoopName)
  | ({ readonly kind: "skew"; readonly by: string; readonly factor: number } & LoopName)
  | ({ readonly kind: "shift"; readonly by: number } & LoopName)
  | ({ readonly kind: "diamond" } & DiamondRequest)
  | ({ readonly kind: "mark"; readonly mark: LoopMark } & LoopName)
  | ({ readonly kind: "fuse" } & FuseRequest)
  | ({ readonly kind: "fission" } & LoopName)
  | ({ readonly kind: "pipeline" } & PipelineRequest)
  | ({ readonly kind: "roles" } & RolesRequest);

export type TreeDirective = OrderDirective | SplitDirective | StorageDirective | OverlapDirective;

export type Verdict =
  | { readonly kind: "legal"; readonly plan: Plan }
  /** Two instances that would clash; `at` is the directive after which the order was judged. */
  | { readonly kind: "illegal"; readonly at: number; readonly witness: Witness }
  /** A value that would be overwritten while it is needed. */
  | { readonly kind: "clash"; readonly at: number; readonly clash: StorageClash }
  | {
      readonly kind: "unknown";
      readonly at: number;
      readonly reason: UnknownReason | "schedule is not a function";
    }
  /** A directive has no place to apply. */
  | {
      readonly kind: "malformed";
      readonly at: number;
      readonly diagnostics: readonly Diagnostic[];
      /** Where statements of one kernel would have no order: two instances that need one. */
      readonly witness?: Witness;
    };

export function startPlan(nest: Nest): Plan {
  return { nest, tree: nest.tree };
}

/** Applies the directives to a nest in its original order and judges the result. */
export function scheduleNest(nest: Nest, directives: readonly TreeDirective[]): Verdict {
  let plan = startPlan(nest);
  for (const [at, d] of directives.entries()) {
    const next = applyDirective(plan, d, at);
    if (next.kind !== "legal") return next;
    plan = next.plan;
  }
  return judgePlan(plan, directives.length - 1);
}

/**
 * Applies one directive; only those that change the program are judged by themselves, where `memory` of
 * pairs that refused other schedules says no sooner.
 */
export function applyDirective(
  plan: Plan,
  d: TreeDirective,
  at: number,
  memory?: ConflictMemory,
): Verdict {
  const made = attempt((): Verdict => {
    switch (d.kind) {
      case "split-reduction":
      case "split-scan":
        return afterJudging(plan, at, memory, () => splitLegally(plan, d, at));
      case "fold":
      case "overwrite":
      case "buffer":
        return afterJudging(plan, at, memory, () => moveStorage(plan, d, at));
      case "overlap":
        return afterJudging(plan, at, memory, () => overlapTiles(plan, d, at));
      default:
        return { kind: "legal", plan: { ...plan, tree: changeOutside(plan.tree, d) } };
    }
  });
  return made.ok ? made.value : { kind: "malformed", at, diagnostics: made.diagnostics };
}

/** What changes the program starts from an order that is legal by itself. */
function afterJudging(
  plan: Plan,
  at: number,
  memory: ConflictMemory | undefined,
  change: () => Verdict,
): Verdict {
  const judged = judgePlan(plan, at, memory);
  return judged.kind === "legal" ? change() : judged;
}

/** Loops around copies stay as they are: the copies' first dimensions are those loops. */
function changeOutside(tree: ScheduleTree, d: OrderDirective): ScheduleTree {
  const changed = changeTree(tree, d);
  if (extendedBelow(tree).length === 0) return changed;
  const [before, after] = [loopsAroundCopies(tree), loopsAroundCopies(changed)];
  const same = before.length === after.length && before.every((v, i) => v === after[i]);
  if (same) return changed;
  return reject("SCH010", `${d.kind} changes loops that copies in tiles are counted by`, {
    at: d.kind,
    help: "change those loops before overlap, or only mark them",
  });
}

/** The values of the loops outside each extension. */
function loopsAroundCopies(tree: ScheduleTree): readonly unknown[] {
  if (extendedBelow(tree).length === 0) return [];
  const own =
    tree.kind === "band" ? tree.members.map((m) => m.values) : [tree.kind === "extension"];
  return [...own.filter((v) => v !== false), ...childrenOf(tree).flatMap(loopsAroundCopies)];
}

function changeTree(tree: ScheduleTree, d: OrderDirective): ScheduleTree {
  switch (d.kind) {
    case "split":
      return splitLoop(tree, d);
    case "jam":
      return jamLoop(tree, d);
    case "tile":
      return tileLoops(tree, d);
    case "reorder":
      return reorderLoops(tree, d);
    case "interchange":
      return interchangeLoops(tree, d);
    case "skew":
      return skewLoop(tree, d);
    case "shift":
      return shiftLoop(tree, d);
    case "diamond":
      return diamondTile(tree, d);
    case "mark":
      return markLoop(tree, d);
    case "fuse":
      return fuseLoops(tree, d);
    case "fission":
      return fissionLoop(tree, d);
    case "pipeline":
      return pipelineLoop(tree, d);
    case "roles":
      return assignRoles(tree, d);
  }
}

/** Whether the plan's tree keeps the dependences of its nest. */
export function judgePlan(plan: Plan, at: number, memory?: ConflictMemory): Verdict {
  const { nest, tree } = plan;
  const found = nestDependences(nest);
  if (found.kind === "unknown") return { kind: "unknown", at, reason: found.reason };
  const question = { statements: nest.statements, dependences: found.value, tree };
  const answer = checkTree(question, {
    ...(nest.context && { context: nest.context }),
    ...(memory && { known: memory.of(nest) }),
  });
  switch (answer.kind) {
    case "legal":
      return { kind: "legal", plan };
    case "illegal":
      return { kind: "illegal", at, witness: answer.witness };
    case "unknown":
      return { kind: "unknown", at, reason: answer.reason };
    case "malformed":
      return { ...answer, at };
  }
}

function splitLegally(plan: Plan, d: SplitDirective, at: number): Verdict {
  const beside = partialRead(plan, d, at);
  if (beside) return beside;
  const next = splitPlan(plan, d);
  const statement = plan.nest.statements.find((s) => s.name === d.statement)!;
  if (combinedAccess({ statement }, d).reassociable === true) return { kind: "legal", plan: next };
  const clash = firstReassociated(plan, d);
  if (clash?.kind === "illegal") return { kind: "illegal", at, witness: clash.witness };
  if (clash) return { kind: "unknown", at, reason: clash.reason };
  return reject("SCH010", `${d.statement} may not be reassociated`, {
    at: `${d.kind} ${d.statement}:${d.loop}`,
    help: "allow its operator to be reassociated, or leave it whole",
  });
}

/** A value that the statement reads beside combining it: a chunk would have only its own part of it. */
function partialRead({ nest }: Plan, d: SplitDirective, at: number): Verdict | undefined {
  const found = nestDependences(nest);
  const combined = d.kind === "split-reduction" ? "reduction" : "scan";
  if (found.kind === "unknown") return { kind: "unknown", at, reason: found.reason };
  for (const dependence of found.value) {
    const own = dependence.source === d.statement && dependence.sink === d.statement;
    if (!own || dependence.kind !== "flow") continue;
    const witness = pairOf(dependence, nest.context ? { context: nest.context } : {});
    if (!witness) continue;
    const text = `${d.statement} reads a result beside its ${combined}: a chunk has only a part of it`;
    const help = "such a statement cannot be split";
    return { kind: "malformed", at, diagnostics: [diagnostic("SCH016", text, { help })], witness };
  }
  return undefined;
}

/** Two updates of one element that a split would group otherwise, when their order is fixed. */
function firstReassociated(
  { nest, tree }: Plan,
  d: SplitDirective,
): Exclude<Legality, { kind: "legal" }> | undefined {
  const found = nestDependences(nest);
  if (found.kind === "unknown") return undefined;
  const statement = nest.statements.find((s) => s.name === d.statement)!;
  const parts = timePaths(tree, nest.statements).get(d.statement)!;
  const loop = parts.filter((p) => p.loop === d.loop);
  const times = new Map([[d.statement, timeMapOf(statement, [...loop, ...parts])]]);
  const marks = [{ dimension: 0, kind: "parallel" as const }];
  for (const dependence of found.value) {
    if (dependence.source !== d.statement || dependence.sink !== d.statement) continue;
    const options = nest.context ? { context: nest.context } : {};
    const one = checkDependence({ times, marks }, dependence, options);
    if (one.kind !== "legal") return one;
  }
  return undefined;
}

function moveStorage(plan: Plan, d: StorageDirective, at: number): Verdict {
  const relocate = relocationOf(plan, d);
  const answer = checkStorage(plan, relocate);
  switch (answer.kind) {
    case "legal":
      return { kind: "legal", plan: relocated(plan, relocate, d) };
    case "clash":
      return { kind: "clash", at, clash: answer.clash };
    case "unknown":
      return { kind: "unknown", at, reason: answer.reason };
  }
}
