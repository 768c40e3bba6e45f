/**
 * `optimize` of a model that runs in stages, because data decide sizes in it or when a loop ends: each part
 * between those places is compiled, checked and emitted like a model of its own, for any size up to the
 * bound, and all of them stand in one artifact.
 */
import { stageContainers } from "../../artifact/container.ts";
import { layoutStagedArtifact, type StageContent } from "../../artifact/write-artifact.ts";
import type { ImportedModel } from "../../frontend/onnx/import/import-model.ts";
import { runnableTargets } from "../../runtime/create-session.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import type { Schedule } from "../../schedule/directive.ts";
import { attempt, type Diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import type { CommandContext, CommandResult } from "../command.ts";
import { findTarget } from "../library/choose-target.ts";
import { leastNamed } from "../library/least-target.ts";
import { portNames } from "../library/model-bytes.ts";
import { importModel, type OpenOptions } from "../library/open-model.ts";
import { type OpenStages, openStages } from "../library/stages.ts";
import { version } from "../version.ts";
import {
  describeChecks,
  type RegionChecking,
  type RegionReport,
  withChecks,
} from "./check-regions.ts";
import { emitRunnable, keepCode, writeArtifactFile } from "./emit-artifact.ts";
import { measureRegions } from "./measure-regions.ts";
import { readRequest } from "./open.ts";
import {
  describeRegions,
  estimatedOn,
  type OptimizeArgs,
  type OptimizedRegion,
  outputOf,
  slowestOf,
} from "./optimized.ts";
import type { WithPortable } from "./portable-child.ts";

interface Surroundings {
  readonly checking: RegionChecking;
  readonly context: CommandContext;
}

/** @param diagnostics why the model has no one program: the answer where stages do not help */
export async function optimizeStages(
  args: OptimizeArgs,
  diagnostics: readonly Diagnostic[],
  surroundings: Surroundings,
): Promise<Result<CommandResult>> {
  if (args.state.length > 0) return fail(...diagnostics);
  const request = readRequest(args, surroundings.context);
  if (!request.ok) return request;
  const target = findTarget(args.target);
  if (!target.ok) return target;
  const { source, options } = request.value;
  const imported = importModel(source, options);
  if (!imported.ok) return imported;
  const opened = await openMeasured(imported.value, target.value, {
    args,
    options,
    ...surroundings,
  });
  if (!opened) return fail(...diagnostics);
  if (!opened.ok) return opened;
  const { stages: named, target: least } = leastOfStages(args, opened.value, target.value);
  const made = await makeStages(named, target.value, surroundings.checking);
  if (!made.ok) return made;
  const written = writeStages(args, imported.value, named, made.value);
  if (!written.ok) return written;
  const { output, bytes } = written.value;
  const { regions, reports, programs } = made.value;
  const estimateNs = regions.reduce((sum, r) => sum + r.estimateNs, 0);
  const stages = programs.map((p) => (p ? "program" : "reference"));
  const count = stages.filter((kind) => kind === "program").length;
  const { name } = least;
  const data = { output, bytes, target: name, estimateNs, stages, regions };
  const text = [
    `${output}: ${bytes} bytes, ${regions.length} regions of ${count} programs for ${name}`,
    `between them ${stages.length - count} operators on the reference, where data decide sizes or when to end`,
    `estimated ${(estimateNs / 1e6).toFixed(3)} ms a run of the programs at the largest shapes, ${estimatedOn(target.value)}`,
    describeChecks(reports),
    "",
    slowestOf(regions),
  ].join("\n");
  const warnings = [...imported.warnings, ...opened.warnings, ...made.warnings];
  return ok({ data, text, target: name }, warnings);
}

/** Threads that candidates are timed on: as many as the code is made for. */
const measuringThreads = 2;

/** The stages compiled; with a budget once more, under the schedules that were measured to be faster. */
async function openMeasured(
  imported: ImportedModel,
  target: Target,
  {
    args,
    options,
    context,
  }: Surroundings & { readonly args: OptimizeArgs; readonly options: OpenOptions },
): Promise<Result<OpenStages> | undefined> {
  const own = { ...options, portable: true };
  const first = openStages(imported, target, own);
  const runsHere = runnableTargets().names.includes(target.name);
  if (!first?.ok || args.budget === undefined || !runsHere) return first;
  const compiled = first.value.stages.flatMap((s) => s.opened?.origin?.compiled ?? []);
  const seconds = args.budget / Math.max(1, compiled.length);
  const how = { seconds, threads: args.threads ?? measuringThreads, seed: args.seed ?? 0 };
  const measured: ReadonlyMap<string, Schedule>[] = [];
  const warnings: Diagnostic[] = [];
  for (const stage of compiled) {
    const found = await measureRegions(stage, target, how, context);
    measured.push(found.better);
    warnings.push(...found.warnings);
  }
  const isBetter = measured.some((better) => better.size > 0);
  const again = isBetter ? openStages(imported, target, own, measured) : first;
  return again?.ok ? ok(again.value, [...again.warnings, ...warnings]) : again;
}

/** The stages under the least name that is enough for all of them: an artifact is for one target. */
function leastOfStages(
  { target: wish }: OptimizeArgs,
  opened: OpenStages,
  target: Target,
): { readonly stages: OpenStages; readonly target: Target } {
  const made = opened.stages.flatMap((s) => s.opened?.artifact ?? []);
  const named = leastNamed(wish, target, made);
  const artifacts = named.artifacts.values();
  const stages = opened.stages.map((stage) => {
    if (!stage.opened) return stage;
    return { ...stage, opened: { ...stage.opened, artifact: artifacts.next().value! } };
  });
  return { stages: { ...opened, stages }, target: named.target };
}

interface MadeStages {
  /** In the order they run; undefined for one that the reference computes. */
  readonly programs: readonly (WithPortable | undefined)[];
  readonly reports: readonly RegionReport[];
  readonly regions: readonly OptimizedRegion[];
}

/** Each program checked and emitted. */
async function makeStages(
  { stages }: OpenStages,
  target: Target,
  checking: RegionChecking,
): Promise<Result<MadeStages>> {
  const compiled = stages.flatMap((s) => s.opened?.origin?.compiled ?? []);
  const all = {
    regions: compiled.flatMap((c) => c.regions),
    regionRequires: compiled.flatMap((c) => c.regionRequires),
  };
  const checked = await checking.finish(all, target);
  if (!checked.ok) return checked;
  const { faults, warnings, reports } = checked.value;
  if (faults.length > 0) return fail(...faults);
  const programs: (WithPortable | undefined)[] = [];
  const regions: OptimizedRegion[] = [];
  for (const { opened } of stages) {
    const own = opened?.origin?.compiled;
    if (!opened || !own) {
      programs.push(undefined);
      continue;
    }
    const found = reports.slice(regions.length, regions.length + own.regions.length);
    const artifact = withChecks(opened.artifact, found);
    const emitted = emitRunnable({ artifact, emitted: new Map() });
    if (!emitted.ok) return emitted;
    programs.push(emitted.value);
    regions.push(...describeRegions(own, found));
  }
  return ok({ programs, reports, regions }, warnings);
}

function writeStages(
  args: OptimizeArgs,
  imported: ImportedModel,
  { graph, weights, stages }: OpenStages,
  { programs }: MadeStages,
): Result<{ readonly output: string; readonly bytes: number }> {
  const output = outputOf(args);
  const contents = stages.map(({ graph: part }, i): StageContent => {
    const program = programs[i]?.artifact;
    return { part, ...(program && { program }) };
  });
  const meta = { producer: version, seed: args.seed ?? 0, ...portNames(imported, graph) };
  const file = layoutStagedArtifact({ meta, graph, weights, stages: contents }, checksums);
  const container = writeArtifactFile(output, file);
  if (!container.ok) return container;
  const parts = attempt(() => stageContainers(container.value));
  if (!parts.ok) return parts;
  for (const [i, { program }] of parts.value.entries())
    if (program) keepCode(programs[i]!, program);
  return ok({ output, bytes: file.byteLength });
}
