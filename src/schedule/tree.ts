/**
 * The schedule tree of a scheduled region, in the manner of polyhedral compilers (Verdoolaege et al.,
 * "Schedule trees", IMPACT 2014): a domain of statement instances, bands that order them by loop values, sequences
 * and sets of filters, and marks. Also the place and time of a single instance, and an interpreter
 * that runs through all instances in the tree's order. A view of the schedule for people and tests:
 * lowering reads the scheduled region itself, legality is decided in legality.ts.
 */
import * as affine from "../affine/index.ts";
import { type BridgedRegion, bridgeRegion } from "../region/affine-bridge.ts";
import { attempt, type Result, reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { type ExecutedStatement, executedLoops, executionOrder } from "./execution-order.ts";
import type { ScheduledLoop, ScheduledMode, ScheduledRegion } from "./scheduled-region.ts";

export interface BandMember {
  /** The loop's name in the statement that owns the band. */
  readonly loop: string;
  /** Its value in each statement, over that statement's original loops. */
  readonly values: ReadonlyMap<string, affine.Affine>;
  /** No dependence that is not ordered outside the band is carried by the loop: proved. */
  readonly coincident: boolean;
}

export type TreeMark =
  | { readonly kind: Exclude<ScheduledMode, "serial"> }
  | { readonly kind: "placed" | "staged"; readonly tensor: string; readonly scope: string };

export type ScheduleTree =
  | { readonly kind: "domain"; readonly text: string; readonly child: ScheduleTree }
  /** Children one after another; in a set in any order. */
  | { readonly kind: "sequence" | "set"; readonly children: readonly FilterNode[] }
  | FilterNode
  | {
      readonly kind: "band";
      readonly members: readonly BandMember[];
      /** The members may be exchanged and tiled: proved. */
      readonly permutable: boolean;
      readonly child: ScheduleTree;
    }
  | { readonly kind: "mark"; readonly mark: TreeMark; readonly child: ScheduleTree }
  | { readonly kind: "leaf" };

export interface FilterNode {
  readonly kind: "filter";
  readonly statements: readonly string[];
  readonly child: ScheduleTree;
}

/** The tree, or why the fused statements have no common order. */
export function scheduleTree(region: ScheduledRegion): Result<ScheduleTree> {
  return attempt(() => new TreeBuilder(region, executionOrder(region)).build());
}

class TreeBuilder {
  readonly #region: ScheduledRegion;
  readonly #executed: readonly ExecutedStatement[];
  readonly #bridged: BridgedRegion;
  readonly #times: ReadonlyMap<string, affine.IntegerMap>;
  /** Undefined when they could not be found: then no band has a proved property. */
  readonly #dependences: readonly affine.Dependence[] | undefined;

  constructor(region: ScheduledRegion, executed: readonly ExecutedStatement[]) {
    this.#region = region;
    this.#executed = executed;
    this.#bridged = bridgeRegion(region.region);
    const found = affine.findDependences(this.#bridged.affine);
    this.#dependences = found.kind === "known" ? found.value : undefined;
    this.#times = new Map(executed.map((s) => [nameOf(s), timeMap(s)]));
  }

  build(): ScheduleTree {
    const domains = this.#executed.map((s) =>
      affine.formatSet(this.#bridged.statements.get(nameOf(s))!.domain),
    );
    const kernels = groupBy(this.#executed, (s) => s.kernel);
    const children = kernels.map((statements) => filter(statements, this.#inside(statements, 0)));
    const child = children.length === 1 ? children[0]!.child : this.#sideBySide(children);
    return { kind: "domain", text: domains.join("; "), child };
  }

  /** A set when no dependence connects two children, else a sequence. */
  #sideBySide(children: readonly FilterNode[]): ScheduleTree {
    const childOf = (statement: string): number =>
      children.findIndex((c) => c.statements.includes(statement));
    const apart = this.#dependences?.every((d) => {
      const [source, sink] = [childOf(d.source), childOf(d.sink)];
      return source === sink || source < 0 || sink < 0;
    });
    return { kind: apart ? "set" : "sequence", children };
  }

  /** What statements with equal loops outside `depth` do from there on. */
  #inside(statements: readonly ExecutedStatement[], depth: number): ScheduleTree {
    const placed = groupBy(statements, (s) => s.positions[depth] ?? 0);
    const rest =
      placed.length > 1
        ? this.#sideBySide(placed.map((group) => filter(group, this.#band(group, depth))))
        : this.#band(statements, depth);
    const marks = this.#placements(statements, depth);
    return marks.reduceRight<ScheduleTree>((child, mark) => ({ kind: "mark", mark, child }), rest);
  }

  #band(statements: readonly ExecutedStatement[], depth: number): ScheduleTree {
    const owner = statements[0]!;
    const first = executedLoops(owner)[depth];
    if (!first) {
      invariant(statements.length === 1, () => "two statements at one place");
      return { kind: "leaf" };
    }
    let end = depth + 1;
    while (this.#continues(statements, first, end)) end++;
    const { permutable, coincident } = this.#properties(depth, end - depth);
    const members = Array.from({ length: end - depth }, (_, i) => ({
      loop: executedLoops(owner)[depth + i]!.name,
      values: new Map(
        statements.map((s) => [nameOf(s), s.values.get(executedLoops(s)[depth + i]!.name)!]),
      ),
      coincident: coincident[i]!,
    }));
    const child = this.#inside(statements, end);
    const band: ScheduleTree = { kind: "band", members, permutable, child };
    const { mode } = first;
    return mode === "serial" ? band : { kind: "mark", mark: { kind: mode }, child: band };
  }

  /** Whether the loop at `at` belongs to the band that starts with `first`. */
  #continues(statements: readonly ExecutedStatement[], first: ScheduledLoop, at: number): boolean {
    const next = executedLoops(statements[0]!)[at];
    return (
      next !== undefined &&
      first.mode === "serial" &&
      next.mode === "serial" &&
      groupBy(statements, (s) => s.positions[at] ?? 0).length === 1 &&
      this.#placements(statements, at).length === 0
    );
  }

  #placements(statements: readonly ExecutedStatement[], depth: number): readonly TreeMark[] {
    const names = new Set(statements.map(nameOf));
    const here = <T extends ScheduledRegion["placed"][number]>(list: readonly T[]): readonly T[] =>
      list.filter((p) => p.depth === depth && names.has(p.statement));
    return [
      ...here(this.#region.placed).map((p) => ({ kind: "placed" as const, ...tile(p) })),
      ...here(this.#region.staged).map((p) => ({ kind: "staged" as const, ...tile(p) })),
    ];
  }

  #properties(depth: number, count: number): { permutable: boolean; coincident: boolean[] } {
    if (!this.#dependences) {
      return { permutable: false, coincident: Array.from({ length: count }, () => false) };
    }
    const band = { first: dimensionOf(depth), count: 2 * count - 1 };
    const { context } = this.#bridged;
    const found = affine.bandProperties({ times: this.#times }, this.#dependences, band, {
      context,
    });
    const loops = found.coincident.filter((_, i) => i % 2 === 0);
    return { permutable: found.permutable === "yes", coincident: loops.map((t) => t === "yes") };
  }
}

function nameOf(s: ExecutedStatement): string {
  return s.scheduled.statement.name;
}

function tile({ tensor, scope }: ScheduledRegion["placed"][number]): {
  readonly tensor: string;
  readonly scope: string;
} {
  return { tensor, scope };
}

function filter(statements: readonly ExecutedStatement[], child: ScheduleTree): FilterNode {
  return { kind: "filter", statements: statements.map(nameOf), child };
}

/** Groups in ascending order of the key. */
function groupBy<T>(list: readonly T[], key: (item: T) => number): readonly (readonly T[])[] {
  const keys = [...new Set(list.map(key))].sort((a, b) => a - b);
  return keys.map((k) => list.filter((item) => key(item) === k));
}

/** Position of the loop at `depth` in the time vectors of `timeMap`. */
function dimensionOf(depth: number): number {
  return 2 + 2 * depth;
}

/** (kernel, place, loop, place, loop, …) */
function timeMap(s: ExecutedStatement): affine.IntegerMap {
  const loops = executedLoops(s).map((l) => s.values.get(l.name)!);
  const values = loops.flatMap((value, i) => [value, s.positions[i + 1] ?? 0]);
  const dims = s.scheduled.statement.loops.map((l) => l.name);
  return affine.makeMap({
    from: { tuple: nameOf(s), dims },
    to: { values: [s.kernel, s.positions[0]!, ...values] },
  });
}

/** Where and when one instance of a statement runs. */
export interface InstancePlace {
  /** Number of the kernel among those of the region. */
  readonly kernel: number;
  /** All loops, outermost first; a grid loop's value says on which share, a vector loop's which lane. */
  readonly loops: readonly {
    readonly name: string;
    readonly mode: ScheduledMode;
    readonly value: number;
  }[];
  /** (kernel, place, loop, place, …): instances of a thread run in the order of these vectors. */
  readonly time: readonly number[];
}

/** The place of the instance whose original loops have the values `point`. */
export function placeOf(
  region: ScheduledRegion,
  statement: string,
  point: Readonly<Record<string, number>>,
): Result<InstancePlace> {
  return attempt(() => {
    const all = executionOrder(region);
    const s =
      all.find((e) => nameOf(e) === statement) ??
      reject("SCH001", `there is no statement ${statement} in region ${region.region.name}`, {
        help: `statements are ${all.map(nameOf).join(", ")}`,
      });
    const loops = executedLoops(s).map(({ name, mode }) => ({
      name,
      mode,
      value: affine.evaluateAffine(s.values.get(name)!, point),
    }));
    const rest = loops.flatMap(({ value }, i) => [value, s.positions[i + 1] ?? 0]);
    return { kernel: s.kernel, loops, time: [s.kernel, s.positions[0]!, ...rest] };
  });
}

/** An instance: the statement and the values of its original loops. */
export interface Instance {
  readonly statement: string;
  readonly point: Readonly<Record<string, number>>;
}

/**
 * The instances in the order of the tree, grid loops and lanes counted up. The caller gives the
 * points of the domain in any order.
 */
export function executeTree(tree: ScheduleTree, domain: readonly Instance[]): readonly Instance[] {
  switch (tree.kind) {
    case "leaf":
      return domain;
    case "domain":
    case "mark":
      return executeTree(tree.child, domain);
    case "filter": {
      const kept = domain.filter((i) => tree.statements.includes(i.statement));
      return executeTree(tree.child, kept);
    }
    case "sequence":
    case "set":
      return tree.children.flatMap((child) => executeTree(child, domain));
    case "band":
      return executeBand(tree.members, tree.child, domain);
  }
}

function executeBand(
  members: readonly BandMember[],
  child: ScheduleTree,
  domain: readonly Instance[],
): readonly Instance[] {
  const [member, ...others] = members;
  if (!member) return executeTree(child, domain);
  const timeOf = ({ statement, point }: Instance): number =>
    affine.evaluateAffine(member.values.get(statement)!, point);
  return groupBy(domain, timeOf).flatMap((group) => executeBand(others, child, group));
}
