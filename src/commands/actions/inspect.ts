/** Prints the text forms of a model: graph, regions, schedules, program, machine code. */
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import { printGraph } from "../../graph/graph-text.ts";
import { printProgram } from "../../program/program-text.ts";
import { emitNative } from "../../runtime/native/native-instance.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action, CommandResult } from "../command.ts";
import type { OpenModel } from "../library/open-model.ts";
import { atSizes } from "./at-sizes.ts";
import { openWith, printSchedules, type ScheduleViews } from "./inspect-schedule.ts";
import { type OpenArgs, openPath } from "./open.ts";
import { openInStages, type StagesOfModel, titleOf } from "./open-stages.ts";
import { printTable } from "./table.ts";

interface InspectArgs extends OpenArgs, ScheduleViews {
  readonly graph: boolean;
  readonly regions: boolean;
  readonly schedule: boolean;
  readonly program: boolean;
  readonly asm: boolean;
}

const forms = {
  graph: ({ artifact }: OpenModel) => ok(printGraph(artifact.graph)),
  regions: (opened: OpenModel): Result<string> => ok(printRegions(opened)),
  schedule: printSchedules,
  program: ({ code }: OpenModel) => ok(printProgram(code.program)),
  asm: printAssembly,
} as const;

const inspectAtSizes: Action<InspectArgs> = async (args, context) => {
  const view = (["at", "loops"] as const).find((name) => args[name]);
  if (view && !args.schedule) {
    const help = "add --schedule";
    return fail(diagnostic("CLI001", `--${view} is for --schedule`, { at: `--${view}`, help }));
  }
  if (args.use !== undefined && !args.schedule && !args.program && !args.asm) {
    const [at, help] = ["--use", "add --schedule, --program or --asm"];
    return fail(diagnostic("CLI001", "--use shows schedules, or what they become", { at, help }));
  }
  const asked = (Object.keys(forms) as (keyof typeof forms)[]).filter((form) => args[form]);
  const shown = asked.length > 0 ? asked : (["graph"] as const);
  const opened = openPath(args, context);
  if (!opened.ok) {
    const staged = openInStages(args, context, opened.diagnostics);
    if (!staged) return opened;
    return staged.ok ? inspectStages(staged.value, shown, args, staged.warnings) : staged;
  }
  const data: Record<string, string> = {};
  let inUse: OpenModel | undefined;
  for (const form of shown) {
    if (args.use !== undefined && (form === "program" || form === "asm") && !inUse) {
      const used = openWith(args.use, opened.value, (measured) =>
        openPath({ ...args, measured }, context),
      );
      if (!used.ok) return used;
      inUse = used.value;
    }
    const of = form === "schedule" ? opened.value : (inUse ?? opened.value);
    const printed: Result<string> = forms[form](of, args);
    if (!printed.ok) return printed;
    data[form] = printed.value;
  }
  const text = Object.values(data).join("\n").trimEnd();
  return ok({ data, text, target: opened.value.target.name }, opened.warnings);
};

export const inspectModel = atSizes(inspectAtSizes, { ranges: [] });

/** The whole graph; everything else stage by stage. */
function inspectStages(
  staged: StagesOfModel,
  shown: readonly (keyof typeof forms)[],
  args: InspectArgs,
  warnings: readonly Diagnostic[],
): Result<CommandResult> {
  const data: Record<string, string> = {};
  for (const form of shown) {
    if (form === "graph") {
      data[form] = printGraph(staged.stages.graph);
      continue;
    }
    const told: string[] = [];
    for (const [i, stage] of staged.stages.stages.entries()) {
      const printed = stage.opened ? forms[form](stage.opened, args) : ok("");
      if (!printed.ok) return printed;
      told.push(`${titleOf(stage, i + 1)}\n${printed.value}`.trimEnd());
    }
    data[form] = `${told.join("\n\n")}\n`;
  }
  const text = Object.values(data).join("\n").trimEnd();
  return ok({ data, text, target: staged.target }, warnings);
}

/** The functions with the values that had to leave the registers, then the code. */
function printAssembly({ code, target }: OpenModel): Result<string> {
  if (target.emitter === "ptx" && target.machine?.kind === "gpu") {
    const emitted = emitPtx(code.program, target.machine.architecture, target.blocks);
    return emitted.ok ? ok(emitted.value.text) : emitted;
  }
  if (target.emitter !== "x64") {
    return fail(
      diagnostic("CLI001", `the code of target ${target.name} has no assembler text`, {
        at: "--asm",
        help: "choose --target x64-avx512, x64-avx2 or the name of a GPU",
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
