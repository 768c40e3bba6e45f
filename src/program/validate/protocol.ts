/**
 * Cooperative kernels: threads that meet, wait, signal and copy asynchronously. Where everything but
 * data is constant (trace.ts) one run of all threads decides for every schedule, because the run is
 * checked to be deterministic in its synchronisation:
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
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Statement } from "../statement.ts";
import { visitStatements } from "../walk.ts";
import { type LaunchView, someStatement } from "./launch-view.ts";
import { ProtocolRun } from "./protocol-run.ts";
import type { Report } from "./report.ts";
import type { Footprint } from "./sequential.ts";
import { traceKernel } from "./trace.ts";

/** Checks one launch of a cooperative kernel; `ready` holds the roots fully written before it. */
export function checkProtocol(
  view: LaunchView,
  ready: ReadonlySet<string>,
  report: Report,
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
  const traces = traceKernel(view, report);
  if (!traces) return nothing;
  return new ProtocolRun(kernel, traces, { ready, report }).run();
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
