/** One page with all pictures of a model: how its schedules were found, what they cost, what was measured. */
import type { SearchReport } from "../../artifact/artifact.ts";
import { compileModel } from "../../compile.ts";
import { type PlacedPicture, reportPage } from "../../report/report-page.ts";
import type { TimedPoint } from "../../report/scatter-picture.ts";
import { writeAtomically } from "../../runtime/files/files.ts";
import { join } from "../../runtime/files/paths.ts";
import { type Diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import type { Action, CommandContext, CommandResult } from "../command.ts";
import { findTarget } from "../library/choose-target.ts";
import { LoadedModel, type Tensors } from "../library/loaded-model.ts";
import { findCalibration, readCalibration } from "../library/machine-calibration.ts";
import { type OpenModel, startSession } from "../library/open-model.ts";
import { type DrawnPictures, drawPictures } from "../library/report-pictures.ts";
import { describeCertificate, describePrices, searchReport } from "../library/search-report.ts";
import { startStages } from "../library/staged-session.ts";
import { version } from "../version.ts";
import { atSizes } from "./at-sizes.ts";
import { randomInputs } from "./inputs.ts";
import { type OpenArgs, openPath } from "./open.ts";
import { openInStages, programsOf, type StagesOfModel, titleOf } from "./open-stages.ts";
import { searchOf } from "./search-of.ts";

interface ReportArgs extends OpenArgs {
  readonly output: string;
  readonly svg?: string | undefined;
  readonly measure: boolean;
  readonly machines: string;
  readonly seed: number;
}

/** Profiled runs, of which a region's least time counts. */
const rounds = 7;

const reportAtSizes: Action<ReportArgs> = async (args, context) => {
  const opened = openPath(args, context);
  if (!opened.ok) {
    const staged = openInStages(args, context, opened.diagnostics);
    if (!staged) return opened;
    return staged.ok ? reportStages(staged.value, args, context, staged.warnings) : staged;
  }
  const { artifact, target } = opened.value;
  const times = args.measure ? await measureOne(opened.value, args.seed, context) : ok(undefined);
  if (!times.ok) return times;
  const drawn = await drawProgram(opened.value, args, context, times.value?.get(undefined));
  if (!drawn.ok) return drawn;
  const { pictures, missing, facts, search, measured } = drawn.value;
  const page = reportPage({
    title: artifact.graph.name,
    facts: [...facts, madeBy(target.name, artifact.meta.producer)],
    pictures,
    missing,
  });
  const written = writeAll(args, pictures, page);
  if (!written.ok) return written;
  const data = {
    output: args.output,
    pictures: pictures.map((p) => p.name),
    missing,
    files: written.value,
    search,
    ...(measured && { measured }),
  };
  return ok(
    { data, text: describeDrawn(args, pictures, missing), target: target.name },
    opened.warnings,
  );
};

export const reportModel = atSizes(reportAtSizes, { ranges: [] });

interface DrawnProgram extends DrawnPictures {
  readonly facts: readonly string[];
  readonly search: SearchReport;
  readonly measured: readonly TimedPoint[] | undefined;
}

/** The pictures of one program. */
async function drawProgram(
  opened: OpenModel,
  args: ReportArgs,
  context: CommandContext,
  times: RegionTimes | undefined,
): Promise<Result<DrawnProgram>> {
  const { artifact, target, code } = opened;
  const search = searchOf(artifact.meta, target);
  if (!search.ok) return search;
  const others = otherSearches(opened, args.machines, context);
  if (!others.ok) return others;
  const calibration = calibrationFor(target, args.calibration ?? "auto");
  if (!calibration.ok) return calibration;
  const measured = times && pointsOf(opened, times);
  const drawn = drawPictures({
    search: search.value,
    others: others.value,
    program: code.program,
    graph: artifact.graph,
    ...(measured && { measured }),
    ...(calibration.value && { calibration: calibration.value }),
  });
  const facts = [describeCertificate(search.value), describePrices(search.value)];
  return ok({ ...drawn, facts, search: search.value, measured });
}

/** One page for all programs, in the order they run. */
async function reportStages(
  staged: StagesOfModel,
  args: ReportArgs,
  context: CommandContext,
  warnings: readonly Diagnostic[],
): Promise<Result<CommandResult>> {
  const { graph, stages: parts } = staged.stages;
  const times = args.measure ? await measureStages(staged, args.seed, context) : ok(undefined);
  if (!times.ok) return times;
  const pictures: PlacedPicture[] = [];
  const missing: DrawnPictures["missing"][number][] = [];
  const facts: string[] = [];
  const searches: unknown[] = [];
  for (const [i, stage] of parts.entries()) {
    facts.push(titleOf(stage, i + 1));
    if (!stage.opened) continue;
    const drawn = await drawProgram(stage.opened, args, context, times.value?.get(i + 1));
    if (!drawn.ok) return drawn;
    const part = `stage ${i + 1}`;
    pictures.push(...drawn.value.pictures.map((p) => ({ ...p, part })));
    missing.push(...drawn.value.missing.filter((m) => !missing.some((x) => x.name === m.name)));
    facts.push(...drawn.value.facts);
    const { search, measured } = drawn.value;
    searches.push({ stage: i + 1, search, ...(measured && { measured }) });
  }
  const [first] = programsOf(staged);
  const producer = first?.opened.artifact.meta.producer ?? version;
  const page = reportPage({
    title: graph.name,
    facts: [...facts, madeBy(staged.target, producer)],
    pictures,
    missing,
  });
  const named = pictures.map((p) => ({ ...p, name: `${p.part!.replace(" ", "-")}-${p.name}` }));
  const written = writeAll(args, named, page);
  if (!written.ok) return written;
  const data = {
    output: args.output,
    pictures: named.map((p) => p.name),
    missing,
    files: written.value,
    stages: searches,
  };
  const text = describeDrawn(args, named, missing);
  return ok({ data, text, target: staged.target }, warnings);
}

function madeBy(target: string, producer: string): string {
  return `target ${target}, made by Wavetile ${producer}`;
}

function describeDrawn(
  { output }: ReportArgs,
  pictures: readonly { readonly name: string }[],
  missing: DrawnPictures["missing"],
): string {
  return [
    `${output}: ${pictures.map((p) => p.name).join(", ")}`,
    ...missing.map((m) => `not drawn: ${m.name} needs ${m.needs}`),
  ].join("\n");
}

function writeAll(
  { output, svg }: ReportArgs,
  pictures: readonly { readonly name: string; readonly svg: string }[],
  page: string,
): Result<readonly string[]> {
  const files = [
    [output, page],
    ...(svg === undefined ? [] : pictures.map((p) => [join(svg, `${p.name}.svg`), p.svg])),
  ] as [string, string][];
  for (const [path, content] of files) {
    const written = writeAtomically(path, content);
    if (!written.ok) return written;
  }
  return ok(files.map(([path]) => path));
}

/** The searches of an artifact's other targets; an ONNX model is scheduled for those that are named. */
function otherSearches(
  { artifact, target, origin }: OpenModel,
  machines: string,
  { progress }: CommandContext,
): Result<readonly SearchReport[]> {
  if (!origin) return ok((artifact.meta.searches ?? []).filter((s) => s.target !== target.name));
  const names = machines === "none" ? [] : machines.split(",");
  const found: SearchReport[] = [];
  for (const name of names) {
    const other = findTarget(name);
    if (!other.ok) return fail(...other.diagnostics.map((d) => ({ ...d, at: "--machines" })));
    if (other.value.name === target.name) continue;
    progress(`schedule for ${name}`);
    const compiled = compileModel(origin.imported, { target: other.value });
    if (!compiled.ok) return compiled;
    found.push(searchReport(other.value.name, compiled.value));
  }
  return ok(found);
}

function calibrationFor(target: Target, wish: string) {
  const found = findCalibration(target, wish);
  if (!found.ok || !found.value) return found.ok ? ok(undefined) : found;
  const read = readCalibration(found.value.origin.file);
  return read.ok ? ok(read.value.file) : read;
}

/** Nanoseconds by region. */
type RegionTimes = ReadonlyMap<string, number>;

/** By stage; a model of one program has none. */
type TimesByStage = ReadonlyMap<number | undefined, RegionTimes>;

async function measureOne(
  opened: OpenModel,
  seed: number,
  context: CommandContext,
): Promise<Result<TimesByStage>> {
  const session = startSession(opened, 1);
  if (!session.ok) return session;
  return measure(new LoadedModel(opened, session.value), randomInputs(opened, seed), context);
}

/** All stages of one run: what one takes is what the others made. */
async function measureStages(
  { face, stages }: StagesOfModel,
  seed: number,
  context: CommandContext,
): Promise<Result<TimesByStage>> {
  const session = startStages(stages, 1);
  if (!session.ok) return session;
  const fed = { artifact: { graph: stages.graph, meta: face.start.meta } };
  return measure(new LoadedModel(face, session.value), randomInputs(fed, seed), context);
}

/** The least time of each region of several profiled runs on one thread. */
async function measure(
  model: LoadedModel,
  feeds: Tensors,
  { now, progress }: CommandContext,
): Promise<Result<TimesByStage>> {
  progress("measure");
  try {
    const warm = model.tryRun(feeds);
    if (!warm.ok) return warm;
    const least = new Map<number | undefined, Map<string, number>>();
    for (let round = 0; round < rounds; round++) {
      const ran = model.profile(feeds, now);
      if (!ran.ok) return ran;
      const own = new Map<number | undefined, Map<string, number>>();
      for (const { stage, region, startMs, endMs } of ran.value.kernels) {
        const times = own.get(stage) ?? new Map<string, number>();
        times.set(region, (times.get(region) ?? 0) + 1e6 * (endMs - startMs));
        own.set(stage, times);
      }
      for (const [stage, times] of own) {
        const known = least.get(stage) ?? new Map<string, number>();
        for (const [r, ns] of times) known.set(r, Math.min(ns, known.get(r) ?? ns));
        least.set(stage, known);
      }
    }
    return ok(least);
  } finally {
    await model.dispose();
  }
}

/** What was measured beside the prices. */
function pointsOf({ artifact, target }: OpenModel, least: RegionTimes): readonly TimedPoint[] {
  const search = artifact.meta.searches!.find((s) => s.target === target.name)!;
  return search.regions.flatMap(({ name, estimateNs }) => {
    const measuredNs = least.get(name) ?? 0;
    // What the clock cannot see is not measured.
    if (measuredNs <= 0 || estimateNs <= 0) return [];
    return [{ name, group: "regions", predictedNs: estimateNs, measuredNs }];
  });
}
