/**
 * A schedule as directives on the tree of its region (affine/tree/), for what loops of a statement by
 * themselves cannot say: skews, shifts, diamonds, pipelines, roles, copies, storage. Goes in: a region
 * and a schedule; comes out: the verdict of the tree, with the nest that it is about.
 *
 * Until something asks for common loops, every statement has its own: `fuse` waits for the first
 * directive on what fused statements share (fission, pipeline, roles, storage, overlap) or the end, so
 * that fused statements are split, ordered and marked one by one like everywhere in the language.
 */
import * as affine from "../../affine/index.ts";
import { bridgeNest } from "../../region/affine-bridge.ts";
import type { Region } from "../../region/nest.ts";
import { diagnostic, reject } from "../../support/diagnostic.ts";
import type { Directive, Schedule } from "../directive.ts";
import { printDirective } from "../directive-text.ts";

export interface TreeSchedule {
  /** `at` counts the directives of the schedule. Malformed only where loops on threads have no order. */
  readonly verdict: affine.Verdict;
  /** The region in its original order. */
  readonly nest: affine.Nest;
  /** Expressions that were widened to ranges. */
  readonly approximated: readonly string[];
}

/** Rejects the first directive that has no place to apply; `memory` may say no without a proof. */
export function planTree(
  region: Region,
  { directives }: Schedule,
  memory?: affine.ConflictMemory,
): TreeSchedule {
  const { nest, approximated } = regionNest(region);
  const verdict = new Planner(nest, memory).run(directives);
  if (verdict.kind !== "malformed") return { nest, approximated, verdict };
  const { code, message, help } = verdict.diagnostics[0]!;
  if (code === "SCH016") return { nest, approximated, verdict };
  const d = directives[verdict.at];
  return reject(code, message, {
    at: d ? printDirective(d) : `schedule of region ${region.name}`,
    ...(help !== undefined && { help }),
  });
}

type KnownNest = Pick<TreeSchedule, "nest" | "approximated">;

/** Regions are immutable, and many schedules are tried on one. */
const known = new WeakMap<Region, KnownNest>();

/** The statements one after another, each in loops of its own. */
export function regionNest(region: Region): KnownNest {
  const made = known.get(region) ?? makeNest(region);
  known.set(region, made);
  return made;
}

function makeNest(region: Region): KnownNest {
  const { statements, context, approximated } = bridgeNest(region);
  const children = statements.map((s) => ({
    kind: "filter" as const,
    statements: [s.name],
    child: ownLoops(s),
  }));
  const loops: affine.ScheduleTree =
    children.length === 1 ? children[0]!.child : { kind: "sequence", children };
  const text = affine.formatSet(statements.map(affine.domainOf).reduce(affine.union));
  const below: affine.ScheduleTree =
    context.params.length > 0
      ? { kind: "context", text: affine.formatSet(context), child: loops }
      : loops;
  const outside = [...region.tensors].flatMap(([name, t]) => (t.role === "local" ? [] : [name]));
  const nest = {
    statements,
    tree: { kind: "domain" as const, text, child: below },
    given: new Set(outside),
    kept: new Set(outside),
    context,
  };
  return { nest, approximated };
}

function ownLoops({ name, dims }: affine.NestStatement): affine.ScheduleTree {
  const members = dims.map((loop) => ({
    loop,
    values: new Map([[name, affine.affine(loop)]]),
    coincident: false,
  }));
  const leaf: affine.ScheduleTree = { kind: "leaf" };
  return dims.length > 0 ? { kind: "band", members, permutable: false, child: leaf } : leaf;
}

/** What asks for loops that fused statements share. */
const joining: ReadonlySet<Directive["kind"]> = new Set([
  "fission",
  "pipeline",
  "roles",
  "fold",
  "overwrite",
  "buffer",
  "overlap",
]);

interface WaitingFuse {
  readonly at: number;
  readonly statement: string;
  readonly into: string;
  /** Number of loops that are shared. */
  readonly depth: number;
}

class Planner {
  readonly #memory: affine.ConflictMemory | undefined;
  #plan: affine.Plan;
  #waiting: WaitingFuse[] = [];

  constructor(nest: affine.Nest, memory: affine.ConflictMemory | undefined) {
    this.#plan = affine.startPlan(nest);
    this.#memory = memory;
  }

  run(directives: readonly Directive[]): affine.Verdict {
    for (const [at, d] of directives.entries()) {
      const verdict = this.#apply(d, at);
      if (verdict && verdict.kind !== "legal") return verdict;
    }
    const last = directives.length - 1;
    return this.#fuseWaiting() ?? affine.judgePlan(this.#plan, last, this.#memory);
  }

  /** Undefined or legal where the plan took it. */
  #apply(d: Directive, at: number): affine.Verdict | undefined {
    if (isApart(d)) return undefined;
    if (d.kind === "fuse") {
      const depth = this.#loopsOf(d.into).indexOf(d.at) + 1;
      if (depth === 0) return this.#noLoop(d, at);
      this.#waiting.push({ at, statement: d.statement, into: d.into, depth });
      return undefined;
    }
    const fused = joining.has(d.kind) ? this.#fuseWaiting() : undefined;
    return fused ?? this.#take(inTree(d), at);
  }

  #take(d: affine.TreeDirective, at: number): affine.Verdict {
    const verdict = affine.applyDirective(this.#plan, d, at, this.#memory);
    if (verdict.kind === "legal") this.#plan = verdict.plan;
    return verdict;
  }

  #fuseWaiting(): affine.Verdict | undefined {
    for (const { at, statement, into, depth } of this.#waiting) {
      const loop = this.#loopsOf(into)[depth - 1] ?? "";
      const verdict = this.#take({ kind: "fuse", statement, into, at: loop }, at);
      if (verdict.kind !== "legal") return verdict;
    }
    this.#waiting = [];
    return undefined;
  }

  #loopsOf(statement: string): readonly string[] {
    const { tree, nest } = this.#plan;
    const parts = affine.timePaths(tree, nest.statements).get(statement) ?? [];
    return parts.flatMap((p) => (p.loop === undefined ? [] : [p.loop]));
  }

  #noLoop(d: Directive & { readonly kind: "fuse" }, at: number): affine.Verdict {
    const isThere = this.#plan.nest.statements.some((s) => s.name === d.into);
    const fault = isThere
      ? diagnostic("SCH002", `statement ${d.into} has no loop ${d.at} at this point`, {
          help: `its loops are ${this.#loopsOf(d.into).join(" ")}`,
        })
      : diagnostic("SCH001", `there is no statement ${d.into} in the schedule`);
    return { kind: "malformed", at, diagnostics: [fault] };
  }
}

/** What says nothing of loops, or has a tree of its own. */
const apart = ["place", "stage", "layout", "multiply", "rows", "attend", "turn"] as const;
type Apart = Extract<Directive, { readonly kind: (typeof apart)[number] }>;

function isApart(d: Directive): d is Apart {
  return (apart as readonly string[]).includes(d.kind);
}

type OnTree = Exclude<Directive, Apart | { readonly kind: "fuse" }>;

function inTree(d: OnTree): affine.TreeDirective {
  switch (d.kind) {
    case "vectorize":
      return { kind: "mark", statement: d.statement, loop: d.loop, mark: "vector" };
    case "unroll":
      return { kind: "mark", statement: d.statement, loop: d.loop, mark: "unroll" };
    case "parallelize":
      return { kind: "mark", statement: d.statement, loop: d.loop, mark: "grid" };
    case "bind":
      return { kind: "mark", statement: d.statement, loop: d.loop, mark: d.level };
    default:
      return d;
  }
}
