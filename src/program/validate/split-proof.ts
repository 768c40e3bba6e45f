/**
 * Cooperative kernels that are too large to run whole, in three parts that need no enumeration of blocks,
 * tiles or steps:
 *
 *   memory     each role alone, as if its threads never met (memory-part.ts): bounds, coverage, and no two
 *              threads or blocks at one element of which one writes
 *   registers  written before they are read (registers.ts), and by nobody else while asynchronous work has
 *              them (register-order.ts)
 *   shared     one block of each class of blocks that do the same in shared scope (shared-part.ts), run with
 *              vector clocks (protocol-run.ts) over the first and last trips of each long loop. The trips
 *              between are proved by induction: the body repeats with a period (periods.ts), and the state
 *              after one period more is the state before it (snapshot.ts), so every further period finds
 *              and leaves the same state
 *
 * It applies where no memory is both read and written, control depends on no data but what a whole block reads
 * alike (data-axes.ts), and counters are those of shared scope.
 */
import { type IndexExpr, variablesOf } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { Buffer, Role } from "../program.ts";
import type { Statement } from "../statement.ts";
import { childBodies, mapStatements, visitStatements } from "../walk.ts";
import { withDataAxes } from "./data-axes.ts";
import { type LaunchView, someStatement } from "./launch-view.ts";
import { memoryPart, writesMemory } from "./memory-part.ts";
import { ProtocolRun } from "./protocol-run.ts";
import { checkRegisterOrder } from "./register-order.ts";
import { checkRegisters } from "./registers.ts";
import type { Report } from "./report.ts";
import { checkSequential, type Footprint } from "./sequential.ts";
import { sharedPart } from "./shared-part.ts";
import { tilesExactly } from "./tiling.ts";
import { traceKernel } from "./trace.ts";

/**
 * Statements run by all threads of all blocks, at most; Infinity where extents vary from block to block, or from
 * launch to launch unless the parameters' upper ends are asked for.
 */
export function stepsOf({ kernel, facts }: LaunchView, atMost = false): number {
  const most = (extent: IndexExpr): number => {
    const used = [...variablesOf(extent)];
    const isKnown = used.length === 0 || (atMost && used.every((name) => facts.isParameter(name)));
    return isKnown ? Math.max(0, rangeOf(extent, facts.ranges).max) : Infinity;
  };
  const instances = kernel.grid.axes.reduce((n, a) => n * most(a.extent), 1);
  const steps = (body: readonly Statement[]): number =>
    body.reduce((n, s) => {
      const inside = childBodies(s).reduce((m, b) => m + steps(b), 1);
      return n + inside * (s.kind === "for" ? most(s.extent) : 1);
    }, 0);
  const ofRole = (r: Role): number => r.copies * r.threads * steps(r.body);
  return instances * kernel.roles.reduce((n, r) => n + ofRole(r), 0);
}

/** Whether the three parts say everything about the kernel. */
export function isSplittable(view: LaunchView): boolean {
  const { kernel, roots } = view;
  const data = (s: Statement): boolean => s.kind === "when";
  const grid = (s: Statement): boolean =>
    (s.kind === "barrier" && s.scope === "grid") ||
    (s.kind === "for" && s.mode.kind === "grid") ||
    ((s.kind === "wait" || s.kind === "signal") &&
      !kernel.counters.some((c) => c.name === s.counter && c.protocol === "phase"));
  const tables = [...roots.values()].some((rows) => rows.length > 1);
  if (tables || kernel.roles.some((r) => someStatement(r.body, (s) => data(s) || grid(s))))
    return false;
  return withDataAxes(view) !== undefined;
}

/** The footprint with the view whose stores coverage is asked of, or undefined after a report. */
export function checkSplit(
  view: LaunchView,
  ready: ReadonlySet<string>,
  report: Report,
): Footprint | undefined {
  const { kernel } = view;
  const writers = kernel.roles.filter((r) => writesMemory(view, r));
  if (writers.length > 1) return refuse(view, report, "several roles write memory");
  const footprints = kernel.roles.map((role) => {
    checkRegisters(view, role, report);
    checkRegisterOrder(view, role, report);
    const whole = memoryPart(view, role);
    const tiled = tiledBuffers(whole);
    const part = tiled.size > 0 ? withoutStores(whole, tiled) : whole;
    return {
      part,
      tiled,
      footprint: checkSequential(part, { ready, runsOf: () => undefined }, report),
    };
  });
  const tiled = new Set(footprints.flatMap((f) => rootsOf(view, f.tiled)));
  const reads = new Set(footprints.flatMap((f) => [...f.footprint.reads]));
  const writes = new Set([...tiled, ...footprints.flatMap((f) => [...f.footprint.writes])]);
  const both = [...reads].find((root) => writes.has(root));
  if (both !== undefined) return refuse(view, report, `${both} is read and written`);
  if (report.isClean) checkShared(view, report);
  const writer = footprints[kernel.roles.indexOf(writers[0]!)] ?? footprints[0]!;
  const { storesTo } = writer.footprint;
  // What is tiled exactly is whole; of the rest coverage is asked of the stores that are left.
  return { reads, writes, covered: tiled, ...(storesTo && { storesTo }), stores: writer.part };
}

/** Buffers of the program that the stores of a part tile exactly: in bounds, complete, without a race. */
function tiledBuffers(part: LaunchView): ReadonlySet<string> {
  const names = new Set<string>();
  for (const role of part.kernel.roles) {
    visitStatements(role.body, (s) => {
      if (s.kind === "store") names.add(s.buffer);
    });
  }
  // A root that is written under two names is left to the general proof.
  const roots = [...names].map((n) => rootsOf(part, [n]).join());
  if (new Set(roots).size < roots.length) return new Set();
  const isGiven = (b: Buffer): boolean => b.kind === "input" || b.kind === "weight";
  const tiled = [...names].filter((name) => {
    const buffer = part.buffers.get(name)!;
    return !isGiven(buffer) && tilesExactly(part, buffer);
  });
  return new Set(tiled);
}

function rootsOf({ roots }: LaunchView, names: Iterable<string>): readonly string[] {
  return [...names].flatMap((name) => roots.get(name) ?? []);
}

/** The part with what is stored to the buffers only computed. */
function withoutStores(part: LaunchView, tiled: ReadonlySet<string>): LaunchView {
  let stores = 0;
  const roles = part.kernel.roles.map((role) => ({
    ...role,
    body: mapStatements(role.body, (s) => {
      if (s.kind !== "store" || !tiled.has(s.buffer)) return [s];
      return [{ kind: "let", name: `stored.${stores++}`, value: s.value }];
    }),
  }));
  return { ...part, kernel: { ...part.kernel, roles } };
}

function refuse(view: LaunchView, report: Report, why: string): undefined {
  report.add("PRG060", `${why} in cooperative kernel ${view.kernel.name}`, {
    notes: ["such a kernel is proved by running all its threads, which are too many"],
    help: "let one role write, and other memory than is read",
  });
  return undefined;
}

function checkShared(view: LaunchView, report: Report): void {
  const part = sharedPart(withDataAxes(view)!);
  if (!part) {
    refuse(view, report, "places in shared scope hang on block and thread together");
    return;
  }
  const size = view.kernel.grid.clusterSize;
  for (let at = 0; at < part.instances.length && report.isClean; at += size) {
    const instances = part.instances.slice(at, at + size);
    const traces = traceKernel(part.view, new Map(), report, { instances, kept: part.kept });
    if (!traces) return;
    new ProtocolRun(part.view.kernel, traces, { ready: new Set(), report, at: "" }).run();
  }
}
