/** Compiles an ONNX model for a target and writes the artifact. */

import type { SearchReport } from "../../artifact/artifact.ts";
import { layoutArtifact } from "../../artifact/write-artifact.ts";
import { ChildRunner } from "../../runtime/child/child-runner.ts";
import { runnableTargets, runsHere } from "../../runtime/create-session.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import { samePath } from "../../runtime/files/paths.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action, CommandContext, CommandResult } from "../command.ts";
import { assembledHere, withAssembled } from "../library/assembled.ts";
import type { SizeWish } from "../library/assumed-sizes.ts";
import { leastNamed } from "../library/least-target.ts";
import type { OpenModel } from "../library/open-model.ts";
import { compilePortable } from "../library/portable-program.ts";
import { describeCertificate, describePrices } from "../library/search-report.ts";
import { atSizes } from "./at-sizes.ts";
import { describeChecks, RegionChecking, withChecks } from "./check-regions.ts";
import { emitRunnable, keepCode, writeArtifactFile } from "./emit-artifact.ts";
import { type MeasuredRegions, measureRegions } from "./measure-regions.ts";
import { type OpenArgs, openPath } from "./open.ts";
import { optimizeStages } from "./optimize-stages.ts";
import {
  describeRegions,
  estimatedOn,
  type OptimizeArgs,
  outputOf,
  slowestOf,
} from "./optimized.ts";
import { PortableChild } from "./portable-child.ts";

function withoutRegions({
  regions: _,
  passes: __,
  trace: ___,
  ...rest
}: SearchReport): Omit<SearchReport, "regions" | "passes" | "trace"> {
  return rest;
}

/** Threads that candidates are timed on: as many as the code is made for, and no more than there are. */
const measuringThreads = 2;

/** The compiled model; with a budget once more, under the schedules that were measured to be faster. */
async function openMeasured(
  args: OptimizeArgs,
  context: CommandContext,
  { portable, checking }: Processes,
): Promise<Result<{ readonly opened: OpenModel; readonly measured?: MeasuredRegions }>> {
  const own = { ...args, portable: portable === undefined };
  const { budget: seconds } = args;
  // Where schedules are measured, others may take their place.
  const begin: OpenArgs["onScheduled"] = (scheduled, target) => checking.begin(scheduled, target);
  const first = openPath(seconds === undefined ? { ...own, onScheduled: begin } : own, context);
  if (!first.ok) return first;
  const { origin, target } = first.value;
  if (seconds === undefined || !origin) return ok({ opened: first.value }, first.warnings);
  if (!runsHere(target)) {
    const unmeasured = diagnostic("VER004", `target ${target.name} does not run here`, {
      severity: "warning",
      at: "--budget",
      help: "measure on the machine that it is for",
    });
    return ok({ opened: first.value }, [...first.warnings, unmeasured]);
  }
  const threads = args.threads ?? measuringThreads;
  const how = { seconds, threads, seed: args.seed ?? 0 };
  await portable?.settle();
  const measured = await measureRegions(origin.compiled, target, how, context);
  const again =
    measured.better.size > 0 ? openPath({ ...own, measured: measured.better }, context) : first;
  if (!again.ok) return again;
  return ok({ opened: again.value, measured }, [...again.warnings, ...measured.warnings]);
}

function describeMeasured({ measured, regions, better }: MeasuredRegions): string {
  return `measured ${measured} schedules of ${regions} different regions: ${better.size} replaced by a faster one`;
}

/** What takes a range where sizes are missing: as much as the program is proved for. */
const widestWish: SizeWish["ranges"] = ["batch", "length"];
const narrowerWishes: readonly SizeWish["ranges"][] = [["batch"], []];

export const optimizeModel: Action<OptimizeArgs> = async (args, context) => {
  const answerAt = (ranges: SizeWish["ranges"]) =>
    atSizes(optimizeGiven, { ranges })(args, context);
  let answer = await answerAt(widestWish);
  for (const ranges of narrowerWishes) {
    const { isAssumed, isUnproved } = refusalOf(answer);
    if (!isAssumed || !isUnproved) break;
    answer = await answerAt(ranges);
  }
  return answer;
};

function refusalOf(answer: Result<CommandResult>) {
  const diagnostics = answer.ok ? [] : answer.diagnostics;
  const has = (code: Diagnostic["code"]): boolean => diagnostics.some((d) => d.code === code);
  return { isAssumed: has("CLI005"), isUnproved: has("SCH032") };
}

const optimizeGiven: Action<OptimizeArgs> = async (args, context) => {
  if (args.output !== undefined && samePath(args.output, args.model)) {
    return fail(
      diagnostic("CLI001", `${args.output} is the model itself`, {
        at: "--output",
        help: "give the artifact another name",
      }),
    );
  }
  // The process that checks gets ready while the model is compiled.
  const runner = new ChildRunner();
  if (["auto", "cpu", "cuda", ...runnableTargets().names].includes(args.target)) runner.warm();
  const checking = new RegionChecking({ seed: args.seed ?? 0, progress: context.progress, runner });
  const portable = PortableChild.isWorth(args) ? new PortableChild(args) : undefined;
  try {
    return await optimizeWith({ checking, portable }, args, context);
  } finally {
    portable?.end();
    await checking.end();
  }
};

interface Processes {
  readonly checking: RegionChecking;
  readonly portable: PortableChild | undefined;
}

async function optimizeWith(
  processes: Processes,
  args: OptimizeArgs,
  context: CommandContext,
): Promise<Result<CommandResult>> {
  const { checking, portable } = processes;
  const opened = await openMeasured(args, context, processes);
  if (!opened.ok) {
    return opened.diagnostics.every((d) => d.code === "SCH015")
      ? optimizeStages(args, opened.diagnostics, { checking, context })
      : opened;
  }
  const { measured } = opened.value;
  const { artifact: made, target: compiledFor, origin } = opened.value.opened;
  if (!origin) {
    return fail(
      diagnostic("CLI001", `${args.model} is an artifact already`, {
        help: "give the ONNX model that it was made from",
      }),
    );
  }
  // Regions are checked, as they were measured, for the target that they were compiled for.
  const checks = checking.finish(origin.compiled, compiledFor);
  const { target, artifacts } = leastNamed(args.target, compiledFor, [made]);
  const own = artifacts[0]!;
  // While the child runs the first regions, which it has been sent by the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  const code = emitRunnable({ artifact: own, emitted: new Map() });
  const checked = await checks;
  if (!checked.ok) return checked;
  if (!code.ok) return code;
  const { faults, warnings, reports } = checked.value;
  if (faults.length > 0) return fail(...faults);
  const wish = args.calibration ?? "auto";
  const graphs = { imported: origin.imported, compiled: origin.compiled.model };
  const compileHere = (of: keyof typeof graphs) => compilePortable(graphs[of], wish);
  const whole = portable ? await portable.addTo(code.value, compileHere) : code;
  if (!whole.ok) return whole;
  const emitted = emitRunnable(whole.value);
  if (!emitted.ok) return emitted;
  const { artifact } = emitted.value;
  const output = outputOf(args);
  const assembled = assembledHere(own.targets.get(target.name)!.program, target);
  if (!assembled.ok) return assembled;
  context.progress("write");
  const meta = withAssembled(artifact.meta, target, assembled.value);
  const content = withChecks({ ...artifact, meta }, reports);
  const file = layoutArtifact(content, checksums, target.name);
  const written = writeArtifactFile(output, file);
  if (!written.ok) return written;
  keepCode(emitted.value, written.value);
  const regions = describeRegions(origin.compiled, reports);
  const estimateNs = regions.reduce((sum, r) => sum + r.estimateNs, 0);
  const { arenas, scratchLowerBound } = origin.compiled.plan;
  const search = artifact.meta.searches!.find((s) => s.target === target.name)!;
  const data = {
    output,
    bytes: file.byteLength,
    target: target.name,
    estimateNs,
    arenas,
    scratchLowerBound,
    search: withoutRegions(search),
    ...(measured && {
      measured: {
        schedules: measured.measured,
        regions: measured.regions,
        replaced: [...measured.better.keys()],
      },
    }),
    regions,
  };
  const text = [
    `${output}: ${file.byteLength} bytes, ${regions.length} regions for ${target.name}`,
    `estimated ${(estimateNs / 1e6).toFixed(3)} ms a run at the largest shapes, ${estimatedOn(target)}`,
    describeCertificate(search),
    describePrices(search),
    ...(measured ? [describeMeasured(measured)] : []),
    describeChecks(reports),
    "",
    slowestOf(regions),
  ].join("\n");
  return ok({ data, text, target: target.name }, [
    ...opened.warnings,
    ...whole.warnings,
    ...warnings,
  ]);
}
