/** Prints the text forms of a model: graph, regions, schedules, program. */
import { printGraph } from "../../graph/graph-text.ts";
import { printProgram } from "../../program/program-text.ts";
import { printSchedule } from "../../schedule/directive-text.ts";
import { ok } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import type { OpenModel } from "../library/open-model.ts";
import { type OpenArgs, openPath } from "./open.ts";
import { printTable } from "./table.ts";

interface InspectArgs extends OpenArgs {
  readonly graph: boolean;
  readonly regions: boolean;
  readonly schedule: boolean;
  readonly program: boolean;
}

const forms = {
  graph: ({ artifact }: OpenModel) => printGraph(artifact.graph),
  regions: printRegions,
  schedule: ({ code }: OpenModel) => code.schedules.map(printSchedule).join("\n"),
  program: ({ code }: OpenModel) => printProgram(code.program),
} as const;

export const inspectModel: Action<InspectArgs> = async (args, context) => {
  const opened = openPath(args, context);
  if (!opened.ok) return opened;
  const asked = (Object.keys(forms) as (keyof typeof forms)[]).filter((form) => args[form]);
  const shown = asked.length > 0 ? asked : (["graph"] as const);
  const data = Object.fromEntries(shown.map((form) => [form, forms[form](opened.value)]));
  const text = Object.values(data).join("\n").trimEnd();
  return ok({ data, text, target: opened.value.target.name }, opened.warnings);
};

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
