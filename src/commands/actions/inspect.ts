/** Prints the text forms of a model: graph, regions, schedules, program, machine code. */

import { printTree } from "../../affine/index.ts";
import { printGraph } from "../../graph/graph-text.ts";
import { printProgram } from "../../program/program-text.ts";
import { emitNative } from "../../runtime/native/native-instance.ts";
import { printSchedule } from "../../schedule/directive-text.ts";
import { formatPlace, parseAt, placeOf } from "../../schedule/place.ts";
import { findScheduled, type ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { scheduleTree } from "../../schedule/tree.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import type { OpenModel } from "../library/open-model.ts";
import { type OpenArgs, openPath } from "./open.ts";
import { printTable } from "./table.ts";

interface InspectArgs extends OpenArgs {
  readonly graph: boolean;
  readonly regions: boolean;
  readonly schedule: boolean;
  readonly at?: string | undefined;
  readonly program: boolean;
  readonly asm: boolean;
}

const forms = {
  graph: ({ artifact }: OpenModel) => ok(printGraph(artifact.graph)),
  regions: (opened: OpenModel) => ok(printRegions(opened)),
  schedule: printSchedules,
  program: ({ code }: OpenModel) => ok(printProgram(code.program)),
  asm: printAssembly,
} as const;

export const inspectModel: Action<InspectArgs> = async (args, context) => {
  if (args.at !== undefined && !args.schedule) {
    const help = "add --schedule";
    return fail(diagnostic("CLI001", "--at is for --schedule", { at: "--at", help }));
  }
  const opened = openPath(args, context);
  if (!opened.ok) return opened;
  const asked = (Object.keys(forms) as (keyof typeof forms)[]).filter((form) => args[form]);
  const shown = asked.length > 0 ? asked : (["graph"] as const);
  const data: Record<string, string> = {};
  for (const form of shown) {
    const printed: Result<string> = forms[form](opened.value, args);
    if (!printed.ok) return printed;
    data[form] = printed.value;
  }
  const text = Object.values(data).join("\n").trimEnd();
  return ok({ data, text, target: opened.value.target.name }, opened.warnings);
};

/** All schedules; or of one region the schedule, its tree, and the place of the iteration asked for. */
function printSchedules({ code, origin }: OpenModel, { at }: InspectArgs): Result<string> {
  if (at === undefined) return ok(code.schedules.map(printSchedule).join("\n"));
  const asked = parseAt(at);
  if (!asked.ok) return asked;
  const { region, statement, point } = asked.value;
  const all = origin?.compiled.regions.map((r) => r.scheduled) ?? [];
  const runs = (r: ScheduledRegion): boolean =>
    r.statements.some((s) => s.statement.name === statement);
  const found = all.find((r) => (region === undefined || r.region.name === region) && runs(r));
  if (!found) return fail(noSuchIteration(at, all, origin !== undefined));
  const tree = scheduleTree(found);
  if (!tree.ok) return tree;
  const loops = findScheduled(found, statement).statement.loops.map((l) => l.name);
  const place = placeOf(found, statement, point(loops));
  if (!place.ok) return place;
  const parts = [printSchedule(found.schedule), printTree(tree.value), formatPlace(place.value)];
  return ok(parts.map((p) => p.trimEnd()).join("\n\n"));
}

function noSuchIteration(
  at: string,
  all: readonly ScheduledRegion[],
  compiled: boolean,
): Diagnostic {
  const some = all
    .slice(0, 5)
    .flatMap((r) => r.statements.map((s) => `${r.region.name}:${s.statement.name}`));
  return diagnostic("SCH001", `no region has the statement of ${JSON.stringify(at)}`, {
    at: "--at",
    help: compiled
      ? `statements are ${some.join(", ")}${all.length > 5 ? ", … (--schedule lists all)" : ""}`
      : "give the model instead of the artifact: an artifact keeps no loops",
  });
}

/** The functions with the values that had to leave the registers, then the code. */
function printAssembly({ code, target }: OpenModel): Result<string> {
  if (target.emitter !== "x64") {
    return fail(
      diagnostic("CLI001", `the code of target ${target.name} has no assembler text`, {
        at: "--asm",
        help: "choose --target x64-avx512 or x64-avx2",
      }),
    );
  }
  const emitted = emitNative(code.program, target, { kind: "linux" });
  if (!emitted.ok) return emitted;
  const { functions, text } = emitted.value.code;
  const table = printTable(
    ["function", "bytes", "spilled", "reloaded constants", "frame bytes"],
    functions.map((f) => [
      f.name,
      ...[f.end - f.start, f.spills, f.reloads, f.frameBytes].map((n) => String(n)),
    ]),
  );
  return ok(`${table}\n\n${text()}`);
}

function printRegions({ code, origin }: OpenModel): string {
  const compiled = origin?.compiled.regions;
  if (!compiled) {
    const kernels = code.program.kernels;
    return printTable(
      ["kernel", "region"],
      kernels.map((k) => [k.name, k.region]),
    );
  }
  return printTable(
    ["region", "statements", "estimate ms", "Mflop", "candidates"],
    compiled.map((r) => [
      r.name,
      r.scheduled.statements.map((s) => s.statement.name).join("+"),
      (r.price.estimateNs / 1e6).toFixed(4),
      (r.flops / 1e6).toFixed(2),
      String(r.candidates),
    ]),
  );
}
