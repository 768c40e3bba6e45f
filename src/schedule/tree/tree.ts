/**
 * The schedule tree of a scheduled region, in the manner of polyhedral compilers (Verdoolaege et al.,
 * "Schedule trees", IMPACT 2014): a domain of statement instances, what holds for the symbols, bands that
 * order the instances by loop values, sequences and sets of filters, and marks. affine/tree/ has the
 * form, its text and its interpreter; place.ts tells where a single instance runs. A view of the
 * schedule for people and tests: lowering reads the scheduled region itself, legality is decided in
 * legality.ts.
 */

import type { FilterNode, ScheduleTree, TreeMark } from "../../affine/index.ts";
import * as affine from "../../affine/index.ts";
import { type BridgedRegion, bridgeRegion } from "../../region/affine-bridge.ts";
import { attempt, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import {
  type ExecutedStatement,
  executedLoops,
  executionOrder,
} from "../legality/execution-order.ts";
import { treeOf } from "../products/product-tree.ts";
import type { ScheduledLoop, ScheduledRegion } from "../scheduled-region.ts";

/** The tree, or why the fused statements have no common order. */
export function scheduleTree(region: ScheduledRegion): Result<ScheduleTree> {
  return attempt(() => {
    const tree = treeOf(region);
    if (tree) return tree.verdict.kind === "legal" ? provedTree(tree.verdict.plan) : tree.nest.tree;
    return new TreeBuilder(region, executionOrder(region)).build();
  });
}

/** A plan's tree with what is proved about its bands. */
function provedTree({ nest, tree }: affine.Plan): ScheduleTree {
  const found = affine.nestDependences(nest);
  if (found.kind === "unknown") return tree;
  const { statements, context } = nest;
  return affine.proveBands({ statements, tree, dependences: found.value }, context);
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
    const domain = this.#executed
      .map((s) => this.#bridged.statements.get(nameOf(s))!.domain)
      .reduce(affine.union);
    const kernels = groupBy(this.#executed, (s) => s.kernel);
    const children = kernels.map((statements) => filter(statements, this.#inside(statements, 0)));
    const child = children.length === 1 ? children[0]!.child : this.#sideBySide(children);
    return { kind: "domain", text: affine.formatSet(domain), child: this.#inContext(child) };
  }

  /** Below what is known of the region's symbols, if it has any. */
  #inContext(child: ScheduleTree): ScheduleTree {
    const { context } = this.#bridged;
    if (context.params.length === 0) return child;
    return { kind: "context", text: affine.formatSet(context), child };
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
