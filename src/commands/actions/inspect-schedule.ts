/**
 * `inspect --schedule`: the schedules of a model, or others from a file in their place; with them, on
 * demand, the loops of their trees and the place of one iteration.
 */
import { printLoops, printTree } from "../../affine/index.ts";
import { blockFault } from "../../cost/block-fault.ts";
import { lowerRegion } from "../../lower/lower-region.ts";
import { threadInProduct } from "../../lower/product/place.ts";
import { lowerRegionProgram } from "../../lower/region-program.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { applySchedule } from "../../schedule/apply.ts";
import type { Schedule } from "../../schedule/directive.ts";
import { parseSchedules, printSchedule } from "../../schedule/directive-text.ts";
import { checkSchedule } from "../../schedule/legality/legality.ts";
import type { ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { scheduleLoops } from "../../schedule/tree/loops.ts";
import { type AskedInstance, formatPlace, parseAt, placeOf } from "../../schedule/tree/place.ts";
import { scheduleTree } from "../../schedule/tree/tree.ts";
import {
  attempt,
  type Diagnostic,
  DiagnosticError,
  diagnostic,
  fail,
  formatDiagnostic,
  ok,
  type Result,
  reject,
} from "../../support/diagnostic.ts";
import type { Target } from "../../target/index.ts";
import { blockKernels } from "../library/block-kernels.ts";
import type { OpenModel } from "../library/open-model.ts";

export interface ScheduleViews {
  readonly at?: string | undefined;
  readonly loops: boolean;
  readonly use?: string | undefined;
}

/** All schedules; or of one region the schedule, its tree, and the place of the iteration asked for. */
export function printSchedules(opened: OpenModel, views: ScheduleViews): Result<string> {
  const { code, origin } = opened;
  const { at, loops, use } = views;
  if (at === undefined && !loops && use === undefined) {
    return ok(code.schedules.map(printSchedule).join("\n"));
  }
  if (!origin) return fail(noLoops(views));
  return attempt(() => {
    const chosen = origin.compiled.regions.map((r) => r.scheduled);
    const shown = use === undefined ? chosen : take(scheduledBy(use, chosen));
    const asked = at === undefined ? undefined : { text: at, ...take(parseAt(at)) };
    const found = asked ? [take(ofIteration(asked, shown))] : shown;
    const tree = asked !== undefined || use !== undefined;
    const hasBlocks = opened.target.blocks !== undefined;
    const parts = found.map((region) =>
      take(printRegion(region, { loops, asked, tree, hasBlocks })),
    );
    return parts
      .map((text, i) =>
        use === undefined ? text : `${text}\n\n${lowering(found[i]!, opened.target)}`,
      )
      .join("\n\n");
  });
}

/** The model compiled with a file's schedules in place of those that were chosen. */
export function openWith(
  path: string,
  { origin }: OpenModel,
  reopen: (measured: ReadonlyMap<string, Schedule>) => Result<OpenModel>,
): Result<OpenModel> {
  if (!origin) return fail(noLoops({ use: path, loops: false }));
  return attempt(() => {
    const chosen = origin.compiled.regions.map((r) => r.scheduled);
    const wanted = take(scheduledBy(path, chosen)).map((r) => r.schedule);
    const opened = reopen(new Map(wanted.map((schedule) => [schedule.region, schedule])));
    if (opened.ok) return opened.value;
    throw new DiagnosticError(opened.diagnostics.map((d) => ({ at: path, ...d })));
  });
}

/** The value, or the way to the nearest `attempt`. */
function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new DiagnosticError(result.diagnostics);
}

function noLoops({ at, use }: ScheduleViews): Diagnostic {
  const option = at !== undefined ? "--at" : use !== undefined ? "--use" : "--loops";
  return diagnostic("CLI001", `${option} needs the model: an artifact keeps no loops`, {
    at: option,
    help: "give the model instead of the artifact",
  });
}

function ofIteration(
  { text, region, statement }: AskedInstance & { readonly text: string },
  all: readonly ScheduledRegion[],
): Result<ScheduledRegion> {
  const found = all.find(
    (r) => (region === undefined || r.region.name === region) && dimsOf(r, statement) !== undefined,
  );
  if (found) return ok(found);
  const some = all
    .slice(0, 5)
    .flatMap((r) => r.statements.map((s) => `${r.region.name}:${s.statement.name}`));
  return fail(
    diagnostic("SCH001", `no region has the statement of ${JSON.stringify(text)}`, {
      at: "--at",
      help: `statements are ${some.join(", ")}${all.length > 5 ? ", … (--schedule lists all)" : ""}`,
    }),
  );
}

/** The loops that count a statement's iterations; a directive may have made the statement. */
function dimsOf(
  { region, tree }: ScheduledRegion,
  statement: string,
): readonly string[] | undefined {
  const made =
    tree?.verdict.kind === "legal"
      ? tree.verdict.plan.nest.statements.find((s) => s.name === statement)?.dims
      : undefined;
  return made ?? region.statements.find((s) => s.name === statement)?.loops.map((l) => l.name);
}

interface Shown {
  readonly tree: boolean;
  readonly loops: boolean;
  readonly asked: AskedInstance | undefined;
  readonly hasBlocks: boolean;
}

function printRegion(
  region: ScheduledRegion,
  { tree, loops, asked, hasBlocks }: Shown,
): Result<string> {
  return attempt(() => {
    const parts = [printSchedule(region.schedule)];
    if (tree) parts.push(printTree(take(scheduleTree(region))));
    if (loops) parts.push(printLoops(take(scheduleLoops(region))));
    if (asked) {
      const at = asked.point(dimsOf(region, asked.statement) ?? []);
      const place = take(placeOf(region, asked.statement, at));
      const holder = threadInProduct(region, asked.statement, at);
      parts.push(formatPlace(holder ? { ...place, thread: [holder.thread] } : place, hasBlocks));
    }
    return parts.map((p) => p.trimEnd()).join("\n\n");
  });
}

/** The regions of a file's schedules under them, each proved legal. */
function scheduledBy(
  path: string,
  chosen: readonly ScheduledRegion[],
): Result<readonly ScheduledRegion[]> {
  return attempt(() => {
    const text = new TextDecoder().decode(take(readWhole(path)));
    const schedules = take(parseSchedules(text));
    return schedules.map((schedule, i) => {
      const known = chosen.find((r) => r.region.name === schedule.region);
      if (!known) {
        const names = chosen.slice(0, 5).map((r) => r.region.name);
        return reject("SCH001", `there is no region ${JSON.stringify(schedule.region)}`, {
          at: path,
          help: `regions are ${names.join(", ")}${chosen.length > 5 ? ", … (--schedule lists all)" : ""}`,
        });
      }
      const { target } = known.schedule;
      if (schedule.target !== target) {
        return reject("SCH040", `the schedule of ${schedule.region} is for ${schedule.target}`, {
          at: path,
          help: `write it for ${target}, or give --target ${schedule.target}`,
        });
      }
      if (schedules.findIndex((s) => s.region === schedule.region) < i) {
        return reject("SCH041", `there are two schedules of region ${schedule.region}`, {
          at: path,
          help: "keep one of them",
        });
      }
      return take(checkSchedule(take(applySchedule(known.region, schedule))));
    });
  });
}

function lowering(region: ScheduledRegion, target: Target): string {
  const lowered = lowerRegion(region, target);
  if (!lowered.ok) return `legal, not lowered: ${formatDiagnostic(lowered.diagnostics[0]!)}`;
  const told = `legal; lowers to ${lowered.value.map((k) => k.name).join(", ")}`;
  // Instructions and shared memory that a GPU has not are refused when code is written.
  const plan = target.blocks ? lowerRegionProgram(region, target) : undefined;
  const kernels = plan?.ok
    ? blockKernels({ program: plan.value.program, schedules: [region.schedule], target })
    : plan;
  const why =
    kernels?.ok === false
      ? formatDiagnostic(kernels.diagnostics[0]!)
      : target.blocks && blockFault(region, target.blocks);
  return why === undefined ? told : `${told}, but no code of ${target.name}: ${why}`;
}
