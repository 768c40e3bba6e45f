/**
 * Why every region has the schedule that it has: how many states it had, which constraint and which phase
 * took how many, what the choice is priced at, how far that is from the roofline and from the proved bound; and
 * which regions only pass over memory, with the reasons why nobody else computes them.
 */
import type { SearchReport } from "../../artifact/artifact.ts";
import type { RewriteMode } from "../../rewrite/families/index.ts";
import { writeAtomically } from "../../runtime/files/files.ts";
import { join } from "../../runtime/files/paths.ts";
import { printSchedule } from "../../schedule/directive-text.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action, CommandResult } from "../command.ts";
import { assembledFor } from "../library/assembled.ts";
import {
  type BlockKernel,
  blockKernels,
  boundOf,
  describeKernel,
  kernelTable,
  type RegionBound,
} from "../library/block-kernels.ts";
import type { OpenModel } from "../library/open-model.ts";
import { drawPictures } from "../library/report-pictures.ts";
import { describeCertificate, describePrices } from "../library/search-report.ts";
import { atSizes } from "./at-sizes.ts";
import { explainRewriting } from "./explain-rewrite.ts";
import { type OpenArgs, openPath } from "./open.ts";
import { openInStages, type StagesOfModel, titleOf } from "./open-stages.ts";
import { passesOf, printPasses } from "./passes.ts";
import { searchOf } from "./search-of.ts";
import { printTable } from "./table.ts";

type RegionSearch = SearchReport["regions"][number];

/** Absent where grids are of CPU threads, and where a region's kernels are another's. */
type KernelsOfRegion =
  | { readonly kernels: readonly BlockKernel[]; readonly bound: RegionBound }
  | undefined;

interface ExplainArgs extends Omit<OpenArgs, "rewrite"> {
  /** Tell of rewriting. */
  readonly rewrite: boolean;
  /** Tell of the schedules of the graph that it leads to. */
  readonly rewritten?: RewriteMode | undefined;
  readonly region?: string | undefined;
  readonly svg?: string | undefined;
}

const explainAtSizes: Action<ExplainArgs> = async (given, context) => {
  const { rewrite, rewritten = "off", ...rest } = given;
  if (rewrite) {
    const { region, svg, ...shared } = rest;
    const asked = rewritten === "off" ? undefined : rewritten;
    const extra = Object.entries({ "--region": region, "--svg": svg, "--rewritten": asked }).find(
      ([, value]) => value !== undefined,
    );
    return extra ? fail(notOfRewriting(extra[0])) : explainRewriting(shared, context);
  }
  const args = { ...rest, rewrite: rewritten };
  const opened = openPath(args, context);
  if (!opened.ok) {
    const staged = openInStages(args, context, opened.diagnostics);
    if (!staged) return opened;
    return staged.ok ? explainStages(staged.value, args, staged.warnings) : staged;
  }
  const told = explainProgram(opened.value, args);
  return told.ok ? ok({ ...told.value, target: opened.value.target.name }, opened.warnings) : told;
};

export const explainModel = atSizes(explainAtSizes, { ranges: [] });

/** Stage by stage; with a region the stages that have it. */
function explainStages(
  staged: StagesOfModel,
  args: Pick<ExplainArgs, "region" | "svg">,
  warnings: readonly Diagnostic[],
): Result<CommandResult> {
  const stages = staged.stages.stages.map((stage, i) => ({ ...stage, number: i + 1 }));
  const names = (opened: OpenModel | undefined): readonly string[] =>
    opened ? (opened.artifact.meta.searches?.[0]?.regions.map((r) => r.name) ?? []) : [];
  const { region } = args;
  const chosen =
    region === undefined ? stages : stages.filter((s) => names(s.opened).includes(region));
  if (chosen.length === 0)
    return fail(
      noRegion(
        region!,
        stages.flatMap((s) => names(s.opened)),
      ),
    );
  const data: unknown[] = [];
  const texts: string[] = [];
  for (const stage of chosen) {
    const { graph, opened, number } = stage;
    const svg = args.svg === undefined ? undefined : join(args.svg, `stage-${number}`);
    const told = opened ? explainProgram(opened, { ...args, svg }) : undefined;
    if (told && !told.ok) return told;
    data.push(told ? told.value.data : { reference: graph.nodes.map((node) => node.op) });
    texts.push([titleOf(stage, number), ...(told ? [told.value.text] : [])].join("\n"));
  }
  const text = texts.join("\n\n");
  return ok({ data: { stages: data }, text, target: staged.target }, warnings);
}

function explainProgram(
  opened: OpenModel,
  args: Pick<ExplainArgs, "region" | "svg">,
): Result<Pick<CommandResult, "data" | "text">> {
  const { target, artifact } = opened;
  const found = searchOf(artifact.meta, target);
  if (!found.ok) return found;
  const search = found.value;
  const shown = chooseRegions(search, args.region);
  if (!shown.ok) return shown;
  const drawn = args.svg === undefined ? ok([]) : writePictures(opened, search, args.svg);
  if (!drawn.ok) return drawn;
  const pictures = drawn.value;
  const assembled = assembledFor(opened, search);
  if (!assembled.ok) return assembled;
  const kernels = blockKernels({ ...opened.code, target, assembled: assembled.value });
  if (!kernels.ok) return kernels;
  const ofRegion = (region: RegionSearch): KernelsOfRegion => {
    const own = kernels.value.filter((k) => k.region === region.name);
    return own.length === 0
      ? undefined
      : { kernels: own, bound: boundOf(region, own, target.blocks!) };
  };
  const text = [
    describeCertificate(search),
    describePrices(search),
    "",
    ...(args.region === undefined
      ? [
          printAll(shown.value),
          ...printKernels(shown.value, kernels.value, ofRegion),
          ...printPasses(search),
        ]
      : [printOne(shown.value[0]!, opened, ofRegion), ...printPasses(search, args.region)]),
    ...(pictures.length > 0 ? ["", `drawn: ${pictures.join(", ")}`] : []),
  ].join("\n");
  const data = {
    ...search,
    ...(search.passes && { passes: passesOf(search, args.region) }),
    regions: shown.value.map((region) => {
      const own = ofRegion(region);
      return own ? { ...region, ...own } : region;
    }),
    ...(pictures.length > 0 && { pictures }),
  };
  return ok({ data, text });
}

/** Writes the pictures that need nothing measured; gives their paths. */
function writePictures(
  { artifact, target, code }: OpenModel,
  search: SearchReport,
  folder: string,
): Result<readonly string[]> {
  const others = (artifact.meta.searches ?? []).filter((s) => s.target !== target.name);
  const from = { search, others, program: code.program, graph: artifact.graph };
  const paths: string[] = [];
  for (const { name, svg } of drawPictures(from).pictures) {
    const path = join(folder, `${name}.svg`);
    const written = writeAtomically(path, svg);
    if (!written.ok) return written;
    paths.push(path);
  }
  return ok(paths);
}

function chooseRegions(
  { regions }: SearchReport,
  name: string | undefined,
): Result<readonly RegionSearch[]> {
  if (name === undefined) return ok(regions);
  const found = regions.filter((r) => r.name === name);
  if (found.length > 0) return ok(found);
  return fail(
    noRegion(
      name,
      regions.map((r) => r.name),
    ),
  );
}

function notOfRewriting(option: string): Diagnostic {
  return diagnostic("CLI001", `${option} tells of schedules, --rewrite of graphs`, {
    at: option,
    help: `give ${option} without --rewrite`,
  });
}

function noRegion(name: string, names: readonly string[]): Diagnostic {
  return diagnostic("CLI001", `there is no region ${name}`, {
    at: "--region",
    help: `regions are ${names.join(", ")}`,
  });
}

/** Share of a count, of those that were still there. */
function share(removed: number, of: number): string {
  return of === 0 ? "-" : `${((100 * removed) / of).toFixed(1)} %`;
}

/** What the phases took, each of what the phase before left. */
function phaseShares({ legal, ...phases }: RegionSearch): readonly string[] {
  let left = legal;
  return ([phases.roofline, phases.symmetry, phases.occupancy, phases.code] as const).map((n) => {
    const shown = share(n, left);
    left -= n;
    return shown;
  });
}

function printAll(regions: readonly RegionSearch[]): string {
  const head = ["region", "states", "legal", "roofline", "symmetry", "occupancy", "code", "kept"];
  const rows = [...regions]
    .sort((a, b) => b.estimateNs - a.estimateNs)
    .map((r) => [
      r.name,
      String(r.generated),
      String(r.legal),
      ...phaseShares(r),
      String(r.kept),
      (r.estimateNs / 1e6).toFixed(4),
      share(r.boundNs, r.estimateNs),
    ]);
  return printTable([...head, "estimate ms", "of roofline"], rows);
}

/** All kernels of the shown regions, in the order in which they run. */
function printKernels(
  regions: readonly RegionSearch[],
  kernels: readonly BlockKernel[],
  ofRegion: (region: RegionSearch) => KernelsOfRegion,
): readonly string[] {
  if (kernels.length === 0) return [];
  const bounds = new Map(regions.map((r) => [r.name, ofRegion(r)?.bound]));
  const { head, rows } = kernelTable(kernels, (region) => bounds.get(region));
  const isGuessed = kernels.some((k) => k.registersBy === "estimate");
  return [
    "",
    printTable(head, rows, [4, 5, 6, 7, 8, 9, 10, 11, 13]),
    ...(isGuessed ? ["~ estimated from the text; a driver says what its assembler took"] : []),
  ];
}

function printOne(
  region: RegionSearch,
  { code }: OpenModel,
  kernelsOf: (region: RegionSearch) => KernelsOfRegion,
): string {
  const [roofline, symmetry, occupancy, priced] = phaseShares(region);
  const steps: (readonly [string, number, string])[] = [
    ["states named", region.generated, ""],
    ...region.removed.map(
      (r) => [`- ${r.constraint}`, r.states, share(r.states, region.generated)] as const,
    ),
    ["legal", region.legal, share(region.legal, region.generated)],
    ["- roofline", region.roofline, roofline!],
    ["- symmetry", region.symmetry, symmetry!],
    ["- occupancy", region.occupancy, occupancy!],
    ["- code", region.code, priced!],
    ["kept", region.kept, share(region.kept, region.legal)],
  ];
  const schedule = code.schedules.find((s) => s.region === region.name);
  const own = kernelsOf(region);
  return [
    printTable(
      ["step", "states", "share"],
      steps.map(([step, states, of]) => [step, String(states), of]),
    ),
    "",
    ...describeBound(region, own),
    ...(own?.kernels ?? []).flatMap(describeKernel),
    ...(schedule ? ["", printSchedule(schedule).trimEnd()] : []),
  ].join("\n");
}

/** What the region takes as priced, and what no schedule of it beats. */
function describeBound(
  { estimateNs, boundNs, boundBy }: RegionSearch,
  own: KernelsOfRegion,
): string[] {
  const ms = (ns: number): string => `${(ns / 1e6).toFixed(4)} ms`;
  const by = boundBy === undefined ? "" : ` (${boundBy})`;
  const lines = [
    `estimate ${ms(estimateNs)}, roofline ${ms(boundNs)}${by}: the estimate is at ${share(boundNs, estimateNs)} of it`,
  ];
  if (own?.bound.by !== "latency") return lines;
  const { kernels, bound } = own;
  const launches = kernels.length === 1 ? "a launch" : `${kernels.length} launches`;
  const loads = kernels.reduce((n, k) => n + k.loadsInChain, 0);
  const chain = loads === 1 ? "a load" : `${loads} loads behind each other`;
  return [
    ...lines,
    `bound by latency: ${launches} and ${chain} from memory alone take ${ms(bound.ns)}, ` +
      `the estimate is at ${share(bound.ns, estimateNs)} of that`,
  ];
}
