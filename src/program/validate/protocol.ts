/**
 * Cooperative kernels: threads that meet, wait, signal and copy asynchronously. Where everything but
 * data is constant (trace.ts) one run of all threads decides for every schedule, because the run is
 * checked to be deterministic in its synchronisation (parameters of few values are run for each):
 * - an arrival at a phase counter comes from a thread that knows all its earlier phases to be
 *   complete, so it cannot count in another phase;
 * - a wait for a parity is entered knowing all phases but the awaited one, so it cannot be satisfied
 *   by an older phase, and no later phase can complete before the waiter has gone on, because one of
 *   that phase's arrivals comes after it.
 * Then the order of events by waits, barriers and groups (vector clocks) is the same in every run, and
 * it is enough that in this one: every two accesses of an element, one of them a write, are ordered;
 * asynchronous accesses to ordinary writes have a proxy fence on the way; nothing is read unwritten;
 * every thread ends. Asynchronous operations leave their accesses under a slot that only a wait on
 * their group or phase makes known. In-kernel waits on monotone counters are refused.
 */
import {
  collectVariables,
  evaluate,
  type IndexExpr,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Statement } from "../statement.ts";
import { exprIndices, ownIndices, visitExprs, visitStatements } from "../walk.ts";
import type { Facts } from "./facts.ts";
import { type LaunchView, someStatement } from "./launch-view.ts";
import { ProtocolRun } from "./protocol-run.ts";
import type { Report } from "./report.ts";
import type { Footprint } from "./sequential.ts";
import { checkSplit, isSplittable, stepsOf } from "./split-proof.ts";
import { traceKernel } from "./trace.ts";

/** Checks one launch of a cooperative kernel; `ready` holds the roots fully written before it. */
export function checkProtocol(
  view: LaunchView,
  ready: ReadonlySet<string>,
  { report, stepsRunWhole }: { readonly report: Report; readonly stepsRunWhole: number },
): Footprint {
  const nothing = {
    reads: new Set<string>(),
    writes: new Set<string>(),
    covered: new Set<string>(),
  };
  const { kernel } = view;
  checkPlacesWritten(view, report);
  const meetsGrid = (s: Statement): boolean => s.kind === "barrier" && s.scope === "grid";
  const waitsForGrid = kernel.roles.some((r) => someStatement(r.body, meetsGrid));
  if (waitsForGrid && !kernel.grid.resident) {
    report.add("PRG042", `kernel ${kernel.name} has a barrier over its grid`, {
      help: "declare the grid resident and keep it within what the device holds at once",
    });
  }
  // What data says is not run at all; what has few steps is, for each value of the parameters that it hangs on.
  const binds = (s: Statement): boolean => s.kind === "letIndex";
  const isOfData = kernel.roles.some((r) => someStatement(r.body, binds));
  const isFixed = Number.isFinite(stepsOf(view));
  const values = isFixed ? [new Map<string, number>()] : parameterValues(view);
  // Too many values to be listed.
  const isOpen = !isFixed && values.every((given) => given.size === 0);
  const isMany = isOfData || isOpen || stepsOf(view, true) * values.length > stepsRunWhole;
  if (isMany && isSplittable(view)) return checkSplit(view, ready, report) ?? nothing;
  const footprints: Footprint[] = [];
  for (const given of values) {
    const traces = traceKernel(view, given, report);
    if (!traces) return nothing;
    const at = [...given].map(([name, value]) => `${name} = ${value}`).join(", ");
    footprints.push(new ProtocolRun(kernel, traces, { ready, report, at }).run());
    if (!report.isClean) break;
  }
  return footprints.reduce(together, footprints[0] ?? nothing);
}

/** What is touched for some values, and what is covered for all. */
function together(a: Footprint, b: Footprint): Footprint {
  const covered = new Set([...(a.covered ?? [])].filter((root) => b.covered?.has(root)));
  const [reads, writes] = [new Set([...a.reads, ...b.reads]), new Set([...a.writes, ...b.writes])];
  return { reads, writes, covered };
}

const mostRuns = 24;

/**
 * The values of the parameters that a run depends on, each to be run: a protocol that holds for every
 * one of them holds. None are given where there are too many; then the run itself says what varies.
 */
function parameterValues({ kernel, facts, buffers }: LaunchView): readonly Map<string, number>[] {
  const used = new Set<string>();
  const mention = (e: IndexExpr): void => collectVariables(e, used);
  const visitBuffer = (name: string): void => buffers.get(name)?.shape.forEach(mention);
  for (const axis of kernel.grid.axes) mention(axis.extent);
  for (const { body } of kernel.roles) {
    visitStatements(body, (s) => {
      ownIndices(s).forEach(mention);
      if (s.kind === "store") visitBuffer(s.buffer);
      if (s.kind === "intrinsic") {
        for (const o of s.operands) if (o.kind === "tile") visitBuffer(o.buffer);
      }
    });
    visitExprs(body, (e) => {
      exprIndices(e).forEach(mention);
      if (e.kind === "load") visitBuffer(e.buffer);
    });
  }
  for (const { name } of kernel.grid.axes) used.delete(name);
  let all: readonly Map<string, number>[] = [new Map()];
  for (const name of [...used].sort()) {
    const range = facts.ranges.get(name);
    if (!range || range.min === range.max) continue;
    const count = range.max - range.min + 1;
    if (all.length * count > mostRuns) return [new Map()];
    const values = Array.from({ length: count }, (_, i) => range.min + i);
    all = all.flatMap((given) => values.map((value) => new Map(given).set(name, value)));
  }
  return all.filter((given) => isPossible(facts, given));
}

/** Whether no requirement that the values decide fails. */
function isPossible(facts: Facts, given: ReadonlyMap<string, number>): boolean {
  return facts.conditions.every((c) => {
    const decided = [...variablesOf(c)].every((name) => given.has(name));
    return !decided || evaluate(c, given) >= 0;
  });
}

/** Inputs and weights are not written. */
function checkPlacesWritten(view: LaunchView, report: Report): void {
  for (const role of view.kernel.roles) {
    visitStatements(role.body, (s) => {
      for (const name of writtenBy(s)) {
        const kind = view.buffers.get(name)?.kind;
        if (kind !== "input" && kind !== "weight") continue;
        report.add("PRG012", `kernel ${view.kernel.name} writes the ${kind} ${name}`);
      }
    });
  }
}

function writtenBy(s: Statement): readonly string[] {
  if (s.kind === "store") return [s.buffer];
  if (s.kind !== "intrinsic") return [];
  const row = findTileIntrinsic(s.intrinsic)!;
  return s.operands.flatMap((o, i) =>
    o.kind === "tile" && row.operands[i]!.access !== "read" ? [o.buffer] : [],
  );
}
