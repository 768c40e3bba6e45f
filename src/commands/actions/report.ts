/** One page with all pictures of a model: how its schedules were found, what they cost, what was measured. */
import type { SearchReport } from "../../artifact/artifact.ts";
import { compileModel } from "../../compile.ts";
import { reportPage } from "../../report/report-page.ts";
import type { TimedPoint } from "../../report/scatter-picture.ts";
import { writeAtomically } from "../../runtime/files/files.ts";
import { join } from "../../runtime/files/paths.ts";
import { fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import type { Action, CommandContext } from "../command.ts";
import { LoadedModel } from "../library/loaded-model.ts";
import { findCalibration, readCalibration } from "../library/machine-calibration.ts";
import { findTarget, type OpenModel, startSession } from "../library/open-model.ts";
import { drawPictures } from "../library/report-pictures.ts";
import { describeCertificate, describePrices, searchReport } from "../library/search-report.ts";
import { randomInputs } from "./inputs.ts";
import { type OpenArgs, openPath } from "./open.ts";
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

export const reportModel: Action<ReportArgs> = async (args, context) => {
  const opened = openPath(args, context);
  if (!opened.ok) return opened;
  const { artifact, target, code } = opened.value;
  const search = searchOf(artifact.meta, target);
  if (!search.ok) return search;
  const others = otherSearches(opened.value, args.machines, context);
  if (!others.ok) return others;
  const measured = args.measure ? await measure(opened.value, args.seed, context) : ok(undefined);
  if (!measured.ok) return measured;
  const calibration = calibrationFor(target, args.calibration ?? "auto");
  if (!calibration.ok) return calibration;
  const { pictures, missing } = drawPictures({
    search: search.value,
    others: others.value,
    program: code.program,
    graph: artifact.graph,
    ...(measured.value && { measured: measured.value }),
    ...(calibration.value && { calibration: calibration.value }),
  });
  const facts = [
    describeCertificate(search.value),
    describePrices(search.value),
    `target ${target.name}, made by Wavetile ${artifact.meta.producer}`,
  ];
  const title = artifact.graph.name;
  const written = writeAll(args, pictures, reportPage({ title, facts, pictures, missing }));
  if (!written.ok) return written;
  const data = {
    output: args.output,
    pictures: pictures.map((p) => p.name),
    missing,
    files: written.value,
    search: search.value,
    ...(measured.value && { measured: measured.value }),
  };
  const text = [
    `${args.output}: ${pictures.map((p) => p.name).join(", ")}`,
    ...missing.map((m) => `not drawn: ${m.name} needs ${m.needs}`),
  ].join("\n");
  return ok({ data, text, target: target.name }, opened.warnings);
};

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

/** The least time of each region of several profiled runs on one thread, beside its price. */
async function measure(
  opened: OpenModel,
  seed: number,
  { now, progress }: CommandContext,
): Promise<Result<readonly TimedPoint[]>> {
  progress("measure");
  const session = startSession(opened, 1);
  if (!session.ok) return session;
  const model = new LoadedModel(opened, session.value);
  try {
    const feeds = randomInputs(opened, seed);
    const warm = model.tryRun(feeds);
    if (!warm.ok) return warm;
    const least = new Map<string, number>();
    for (let round = 0; round < rounds; round++) {
      const ran = model.profile(feeds, now);
      if (!ran.ok) return ran;
      const own = new Map<string, number>();
      for (const { region, startMs, endMs } of ran.value.kernels) {
        own.set(region, (own.get(region) ?? 0) + 1e6 * (endMs - startMs));
      }
      for (const [region, ns] of own) least.set(region, Math.min(ns, least.get(region) ?? ns));
    }
    return ok(pointsOf(opened, least));
  } finally {
    await model.dispose();
  }
}

function pointsOf(
  { artifact, target }: OpenModel,
  least: ReadonlyMap<string, number>,
): readonly TimedPoint[] {
  const search = artifact.meta.searches!.find((s) => s.target === target.name)!;
  return search.regions.flatMap(({ name, estimateNs }) => {
    const measuredNs = least.get(name) ?? 0;
    // What the clock cannot see is not measured.
    if (measuredNs <= 0 || estimateNs <= 0) return [];
    return [{ name, group: "regions", predictedNs: estimateNs, measuredNs }];
  });
}
