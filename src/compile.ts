/**
 * The compiler as a list of passes, in order. In: a model and a target. Out: a program with everything
 * that led to it. Pure: no file, clock or device; the caller turns the program into machine code
 * (emit/) and runs it (runtime/).
 *
 *   expand      composites into core ops
 *   fold        constants, batch norms into weights, dead and repeated nodes
 *   inline      bodies of control flow that is decided or short
 *   wide        half precision that may overflow, as single
 *   rewrite     equal graphs, the cheapest by the target's prices (when asked for); some of them and the
 *               import go through the five passes behind this one, and what these price lowest is kept
 *   nests       a loop nest per node
 *   groups      what is computed together
 *   layouts     feature maps in blocks of channels, where that is cheaper with all conversions
 *   coalesce    fewer, longer loops
 *   schedule    superpositions narrowed and collapsed together, the choice proved legal
 *   lower       kernels, buffers, memory plan
 *   validate    the program proved: in bounds, no race, all written; a refusal is our bug
 */

import { analyticalModel, type CostModel, priceCalibrated } from "./cost/calibration.ts";
import type { CoreFigures } from "./cost/core-figures.ts";
import { codeWork } from "./cost/mix-price.ts";
import { GraphPricer } from "./cost/price-graph.ts";
import { OperatorPricer } from "./cost/price-operators.ts";
import { priceRegion, regionBoundNs, tilePricer } from "./cost/region-price.ts";
import { bodyFlops, compulsoryBytes, pointsOf, type RegionPrice } from "./cost/region-work.ts";
import * as told from "./cost/told-apart.ts";
import type { Graph, Model, Node, NodeOf } from "./graph/graph.ts";
import { semanticHash } from "./graph/semantic-hash.ts";
import { eliminateDeadCode } from "./graph/transforms/clean.ts";
import { keptWide } from "./graph/transforms/keep-wide.ts";
import { hasSteps, type ScanSteps, stepsOf } from "./graph/transforms/scan-steps.ts";
import { separateOutputs } from "./graph/transforms/separate-outputs.ts";
import { unboundedSymbols } from "./graph/unbounded-symbols.ts";
import {
  type LoweredScan,
  type LoweringInput,
  lowerProgram,
  nestsWithSteps,
  requiresOfRegions,
} from "./lower/lower-program.ts";
import { lowerRegion } from "./lower/lower-region.ts";
import type { MemoryPlan } from "./lower/memory-plan.ts";
import type { ProvedLaunches } from "./program/validate/known-launches.ts";
import { validateProgram } from "./program/validate/validate.ts";
import { buildNests } from "./region/builders/build-nests.ts";
import type { NestProgram, Region, Routine } from "./region/nest.ts";
import { regionHash } from "./region/region-hash.ts";
import { inTurn, programOf, regionsOf } from "./region/regions-of.ts";
import { storedResults } from "./rewrite/derive-constants.ts";
import { approximatePhases, type RewriteMode } from "./rewrite/families/index.ts";
import { firstMade, leftOut } from "./rewrite/first-made.ts";
import { chooseExport, type GraphToExport } from "./rewrite/graph-to-export.ts";
import {
  type Candidate,
  forSearch,
  lowerToCore,
  type RewriteOptions,
  type Rewritten,
  rewriteModel,
} from "./rewrite/rewrite-model.ts";
import type { RuleRow } from "./rewrite/rule-row.ts";
import { blockRegions } from "./schedule/blocks/block-regions.ts";
import { chainsFor } from "./schedule/chains/choose-chains.ts";
import { layoutsFor } from "./schedule/choice/choose-layouts.ts";
import {
  type Certificate,
  type ChosenSchedule,
  type ChosenSchedules,
  chooseSchedules,
} from "./schedule/choice/choose-schedules.ts";
import { noRegion } from "./schedule/choice/given-schedule.ts";
import { replaceUnproved } from "./schedule/choice/replace-unproved.ts";
import type { Schedule } from "./schedule/directive.ts";
import { prepareWide, repeatsSteps } from "./schedule/prepare-graph.ts";
import { constantResults } from "./schedule/products/prologues.ts";
import { unitBound } from "./schedule/products/tf32.ts";
import { type ScheduledRegion, symbolRanges } from "./schedule/scheduled-region.ts";
import { emptyMemory, type RegionMemory } from "./schedule/states/region-memory.ts";
import type { RegionFunnel } from "./schedule/states/region-states.ts";
import type { Solver } from "./search/solvers.ts";
import { type Condition, equal } from "./semantics/condition.ts";
import { rangeOf } from "./semantics/index-range.ts";
import {
  type Diagnostic,
  diagnostic,
  fail,
  formatDiagnostic,
  ok,
  type Result,
} from "./support/diagnostic.ts";
import { type Allowance, allowing } from "./target/allowing.ts";
import type { Target } from "./target/target.ts";

export { prepareFor, prepareParts } from "./schedule/prepare-graph.ts";

export interface CompileOptions {
  readonly target: Target;
  /** What may change results within a bound (target/allowing.ts); default: nothing. */
  readonly allow?: readonly Allowance[];
  /** Look for a cheaper equal graph by equality saturation; default: off. */
  readonly rewrite?: RewriteMode;
  /** Rules beside those of the families, proved on random tensors before they are used. */
  readonly rules?: readonly RuleRow[];
  /** Say by which rules each graph came about: keeps proofs, which takes time. */
  readonly explain?: boolean;
  /** What decides layouts and schedules; default: collapse. */
  readonly solver?: Solver;
  /** Threads that the program is made for; it runs on any number. Default: any number above one. */
  readonly threads?: number;
  /** Launches in a row start while the one before still runs; default: where the target can. */
  readonly overlap?: boolean;
  /** What prices code; default: what the target's data say. */
  readonly model?: CostModel;
  /** Schedules by region that were measured to be the best. */
  readonly measured?: ReadonlyMap<string, Schedule>;
  /** Called before each pass with its name: progress. */
  readonly onPass?: (pass: string) => void;
  /** Called with the regions once their schedules stand; again where the program is refused and others take their place. */
  readonly onScheduled?: (scheduled: ScheduledRegions) => void;
}

/** The regions of a program, and what holds of their symbols. */
export type ScheduledRegions = Pick<CompiledModel, "regions" | "regionRequires">;

export interface CompiledRegion {
  readonly name: string;
  readonly scheduled: ScheduledRegion;
  readonly price: RegionPrice;
  /** States that the hard constraints allowed. */
  readonly candidates: number;
  /** Schedules that are priced next. */
  readonly alternatives: readonly Schedule[];
  /** What was removed on the way to the choice; absent where a region runs as it stands. */
  readonly funnel?: RegionFunnel;
  /** Work at the symbols' upper ends: multiply and add counted, each tensor's bytes once. */
  readonly flops: number;
  readonly bytes: number;
  /** Nodes of the model it computes. */
  readonly origins: readonly string[];
}

export interface CompiledModel {
  /** The graph after the graph passes; its weights are in `model.weights`. */
  readonly model: Model;
  readonly nests: NestProgram;
  readonly regions: readonly CompiledRegion[];
  /** How far from the best choice of all the chosen schedules can be, as priced. */
  readonly certificate: Certificate;
  readonly plan: MemoryPlan;
  /** What holds of the symbols of regions: what the program requires, and that steps are in range. */
  readonly regionRequires: readonly Condition[];
  /** What the prices were made with. */
  readonly prices: CostModel;
  /** What rewriting found, when it was asked for. */
  readonly rewritten?: Rewritten;
  /** The graphs that the search was given, the import last; one is kept. */
  readonly competitors: readonly Competitor[];
  /** Threads that schedules were chosen and priced for. */
  readonly threads: number;
  /** What approximating rules and the sums of matrix units may have changed in the graph that was kept; else 0. */
  readonly errorBound: number;
}

/** A graph as the search prices it. */
export interface Competitor extends Pick<Candidate, "savedNs" | "rank" | "filtered"> {
  /** As scheduled for the threads of the program; absent where the graph was refused. */
  readonly estimateNs?: number;
  readonly isKept: boolean;
}

/** Whether a node of a prepared graph with a body is part of programs all the same. */
export function isRepeated(node: Node, target: Target): node is NodeOf<"scan"> {
  return node.op === "scan" && hasSteps(node) && repeatsSteps(target);
}

/** Rewrites with the prices of the target; the model comes back unharmed where nothing is cheaper. */
export function rewriteFor(
  model: Model,
  target: Target,
  onPass: (pass: string) => void = () => {},
  options: Omit<RewriteOptions, "pricer"> & { readonly core?: CoreFigures } = {},
): Result<Rewritten> {
  onPass("rewrite");
  const { core, ...rest } = options;
  const filters = target.blocks === undefined;
  return rewriteModel(model, { filters, ...rest, pricer: new GraphPricer(target, core) });
}

/** As chooseExport (rewrite/), by the prices of a target. */
export function graphToExport(
  imported: Model,
  target: Target,
  { onPass = () => {}, rules = [] }: Pick<CompileOptions, "onPass" | "rules"> = {},
): Result<GraphToExport> {
  onPass("rewrite");
  return chooseExport(imported, { pricer: new OperatorPricer(target), rules });
}

function improve(
  prepared: Model,
  { target, rewrite = "off", rules = [], explain = false, onPass, model }: CompileOptions,
): Result<Rewritten | undefined> {
  if (rewrite === "off") return ok(undefined);
  return rewriteFor(prepared, target, onPass, {
    ...(rewrite === "approximate" && { phases: approximatePhases }),
    ...(model && { core: model.core }),
    ...forSearch,
    ownRules: rules,
    explain,
  });
}

/** What was found of regions and of the launches that they become while a model is compiled. */
interface CompileMemory extends RegionMemory {
  readonly proved: ProvedLaunches;
}

/** Stands for any number above one. */
const defaultThreads = 2;

export function compileModel(source: Model, given: CompileOptions): Result<CompiledModel> {
  const options = { ...given, target: allowing(given.target, given.allow) };
  const { target, onPass = () => {} } = options;
  const open = unboundedSymbols(source.graph);
  if (open) return fail(open);
  onPass("graph");
  const { model: prepared, counted, wide } = prepareWide(source, target);
  const improved = improve(prepared, options);
  if (!improved.ok) return improved;
  const memory = { ...emptyMemory(), proved: new Map() };
  const byRanks = counted ? [{ model: counted, savedNs: 0, errorBound: 0 }] : [];
  const graphs = [...byRanks, ...graphsOf(prepared, improved.value)];
  const scheduled = scheduleGraphs(graphs, options, memory);
  if (!scheduled.ok) return scheduled;
  const wanted = [...(options.measured?.keys() ?? [])];
  const best = preferred(scheduled.value, options);
  const taking = best.filter((graph) => wanted.every((name) => hasRegion(graph, name)));
  const missing = wanted.find((name) => !hasRegion(best[0]!, name));
  if (missing !== undefined && taking.length === 0) return fail(noRegion(missing));
  const chosen = firstMade(taking, (graph) => makeProgram(graph, options, memory));
  if (!chosen.ok) return chosen;
  const { from, ...made } = chosen.value;
  const found = {
    ...made,
    errorBound: from.errorBound + unitBound(made.regions),
    threads: options.threads ?? defaultThreads,
    competitors: graphs.map((graph) => competitorOf(graph, scheduled.value, from)),
    ...(improved.value && { rewritten: improved.value }),
  };
  return ok(found, [
    ...keptWide(wide),
    ...improved.warnings,
    ...scheduled.warnings,
    ...chosen.warnings,
  ]);
}

function competitorOf(
  graph: Candidate,
  scheduled: readonly ScheduledGraph[],
  kept: Candidate,
): Competitor {
  const priced = scheduled.find((s) => s.from === graph);
  const { savedNs, rank, filtered } = graph;
  return {
    savedNs,
    ...(priced && { estimateNs: priced.pricePs / 1000 }),
    ...(rank !== undefined && { rank }),
    ...(filtered !== undefined && { filtered }),
    isKept: graph === kept,
  };
}

function makeProgram(graph: ScheduledGraph, options: CompileOptions, memory: CompileMemory) {
  const { target, measured, onPass = () => {} } = options;
  // What was measured is of the schedules of the graph that is kept: it has no part in choosing that.
  const given = measured ? scheduleGraph(graph.from, options, memory) : ok(graph);
  if (!given.ok) return given;
  const { from, model, choice, warnings } = given.value;
  const prices = options.model ?? analyticalModel(target);
  const made = (taken: ScheduledGraph) => {
    const all = [...taken.choice.schedules, ...stepSchedules(taken)];
    const regions = all.map((s) => describeChoice(s, target, prices));
    const { overlap = target.capabilities.has("griddepcontrol") } = options;
    const lowering = { ...loweringOf(taken), overlap };
    const regionRequires = requiresOfRegions(lowering);
    options.onScheduled?.({ regions, regionRequires });
    onPass("lower");
    const plan = lowerProgram(lowering, target);
    if (!plan.ok) return plan;
    onPass("validate");
    const valid = validateProgram(plan.value.program, { proved: memory.proved });
    if (!valid.ok) return fail(notProved(valid.diagnostics));
    const found = { from, model, regions, regionRequires, certificate: choice.certificate };
    const nests = nestsWithSteps(lowering);
    return ok({ ...found, nests, plan: plan.value, prices }, [...warnings, ...plan.warnings]);
  };
  const first = made(given.value);
  if (first.ok || first.diagnostics[0]?.code !== "SCH032") return first;
  if (!target.blocks) return made(withPlainRows(given.value));
  const { chosen, warnings: said } = replaceUnproved(choice.schedules, {
    target,
    given: new Set(measured?.keys()),
    isProved: (s) => isProvedAlone(s, target, memory),
    priceOf: (s) => finePriceOf(s, target, prices).estimateNs,
  });
  const replaced = { ...given.value, choice: { ...choice, schedules: chosen } };
  const second = said.length > 0 ? made(replaced) : first;
  return second.ok ? ok(second.value, [...second.warnings, ...said]) : second;
}

function hasRegion(graph: ScheduledGraph, name: string): boolean {
  const all = [...graph.choice.schedules, ...stepSchedules(graph)];
  return all.some(({ scheduled }) => scheduled.region.name === name);
}

/** The same without what only few rows gain by, which is the first thing that a proof may fail at. */
function withPlainRows(graph: ScheduledGraph): ScheduledGraph {
  const plain = (s: ChosenSchedule) => ({
    ...s,
    scheduled: { ...s.scheduled, plainRows: true } as const,
  });
  const scans = [...graph.scans].map(
    ([id, { plan, step }]) => [id, { plan, step: withPlainRows(step) }] as const,
  );
  const choice = { ...graph.choice, schedules: graph.choice.schedules.map(plain) };
  return { ...graph, choice, scans: new Map(scans) };
}

/** What is lowered of a graph, with the steps of its scans. */
function loweringOf({ model, widened, scans, choice }: ScheduledGraph): LoweringInput {
  const steps = [...scans].map(([id, { plan, step }]): [number, LoweredScan] => [
    id,
    { plan, step: loweringOf(step) },
  ]);
  return {
    nests: widened,
    scheduled: choice.schedules.map((s) => s.scheduled),
    requires: model.graph.constraints.map((c) => equal(c.left, c.right)),
    states: statesOf(model.graph),
    scans: new Map(steps),
  };
}

function stepSchedules({ scans }: ScheduledGraph): readonly ChosenSchedule[] {
  return [...scans.values()].flatMap(({ step }) => [
    ...step.choice.schedules,
    ...stepSchedules(step),
  ]);
}

/**
 * Graphs that the search is given: those that rewriting says are cheaper, each once however its composites
 * were written, and the import.
 */
function graphsOf(prepared: Model, rewritten: Rewritten | undefined): readonly Candidate[] {
  const cheaper = (rewritten?.candidates ?? []).filter((c) => c.savedNs > 0);
  const seen = new Set(cheaper.length > 0 ? [semanticHash(prepared.graph)] : []);
  const graphs: Candidate[] = [];
  for (const candidate of cheaper) {
    const model = lowerToCore(candidate.model);
    const hash = semanticHash(model.graph);
    if (seen.has(hash)) continue;
    seen.add(hash);
    graphs.push({ ...candidate, model });
  }
  return [...graphs, { model: prepared, savedNs: 0, errorBound: 0 }];
}

/** A graph with its regions scheduled. */
interface ScheduledGraph {
  readonly from: Candidate;
  /** Scans whose steps are tasks, by the number of their node. */
  readonly scans: ReadonlyMap<number, ScheduledScan>;
  readonly model: Model;
  readonly widened: NestProgram;
  readonly choice: ChosenSchedules;
  /** Of the whole program, with regions that had no choice. */
  readonly pricePs: number;
  readonly warnings: readonly Diagnostic[];
}

interface ScheduledScan {
  readonly plan: ScanSteps;
  readonly step: ScheduledGraph;
}

/** Each graph scheduled, without those that are refused: the import, which is the last, is the answer. */
function scheduleGraphs(
  graphs: readonly Candidate[],
  { measured: _, ...options }: CompileOptions,
  memory: CompileMemory,
): Result<readonly ScheduledGraph[]> {
  const scheduled: ScheduledGraph[] = [];
  const warnings: Diagnostic[] = [];
  for (const [i, graph] of graphs.entries()) {
    const made = scheduleGraph(graph, options, memory);
    if (made.ok) scheduled.push(made.value);
    else if (i === graphs.length - 1) return made;
    else warnings.push(leftOut(made.diagnostics));
  }
  return ok(scheduled, warnings);
}

/** The import, and before it the cheapest of those others that are worth it. */
function preferred(
  scheduled: readonly ScheduledGraph[],
  options: CompileOptions,
): readonly ScheduledGraph[] {
  const unchanged = scheduled.at(-1)!;
  const cheaper = scheduled.filter((graph) => graph.pricePs < unchanged.pricePs);
  if (cheaper.length === 0) return [unchanged];
  const { blocks } = options.target;
  const before = blocks ? [] : regionPrices(unchanged, options);
  const worth = cheaper.filter((graph) => {
    if (blocks) return told.isToldApartOnBlocks(kernelsOf(unchanged), kernelsOf(graph), blocks);
    const saved = 1 - graph.pricePs / unchanged.pricePs;
    return told.isToldApart(saved, before, regionPrices(graph, options));
  });
  if (worth.length === 0) return [unchanged];
  return [worth.reduce((a, b) => (b.pricePs < a.pricePs ? b : a)), unchanged];
}

function kernelsOf({ pricePs, choice }: ScheduledGraph): told.PricedKernels {
  return { ns: pricePs / 1000, kernels: choice.schedules.length };
}

function regionPrices(
  { choice }: ScheduledGraph,
  { target, model }: CompileOptions,
): readonly told.PricedRegion[] {
  const prices = model ?? analyticalModel(target);
  return choice.schedules.map(({ scheduled, serialNs }) => ({
    key: regionHash(scheduled.region),
    ns: serialNs ?? finePriceOf(scheduled, target, prices).estimateNs,
  }));
}

/** The steps of scans, each scheduled as a graph of its own. */
function scheduleScans(
  from: Candidate,
  routines: readonly Routine[],
  { options, memory }: { readonly options: CompileOptions; readonly memory: CompileMemory },
): Result<ReadonlyMap<number, ScheduledScan>> {
  const { graph, weights } = from.model;
  const scans = new Map<number, ScheduledScan>();
  for (const { node: id, name } of routines) {
    const node = graph.nodes.find((n) => n.id === id)!;
    if (!isRepeated(node, options.target)) continue;
    const plan = stepsOf(graph, node);
    const step = { ...from, model: { graph: eliminateDeadCode(plan.graph), weights } };
    const made = scheduleGraph(step, options, memory, `${name}.`);
    if (!made.ok) return made;
    scans.set(id, { plan, step: made.value });
  }
  return ok(scans);
}

/** Names of statements begin with `prefix`. */
function scheduleGraph(
  from: Candidate,
  options: CompileOptions,
  memory: CompileMemory,
  prefix = "",
  model: Model = { ...from.model, graph: separateOutputs(from.model.graph) },
): Result<ScheduledGraph> {
  const { target, threads = defaultThreads, onPass = () => {} } = options;
  onPass("nests");
  const nests = buildNests(model.graph, prefix);
  if (!nests.ok) return nests;
  const routines = nests.value.items.flatMap((i) => (i.kind === "routine" ? [i.routine] : []));
  const scans = scheduleScans({ ...from, model }, routines, { options, memory });
  if (!scans.ok) return scans;
  onPass("groups");
  const prices = options.model ?? analyticalModel(target);
  const { core } = prices;
  const pricing = {
    target,
    memory,
    pricerOf: (region: Region) => tilePricer(region, target, core),
    priceOf: (scheduled: ScheduledRegion) => priceRegion(scheduled, target, core).estimateNs,
  };
  const codePrice = (scheduled: ScheduledRegion): number | undefined =>
    codePriceOf(scheduled, target, prices)?.estimateNs;
  const formed = regionsOf(nests.value, {
    layOut: inTurn(
      layoutsFor(pricing, options.solver) ?? blockRegions(pricing),
      chainsFor({
        ...pricing,
        threads,
        codePriceOf: codePrice,
        isProved: (scheduled) => isProvedAlone(scheduled, target, memory),
      }),
    ),
    forBlocks: target.blocks !== undefined,
  });
  const { regions, nests: widened, rootOf } = formed;
  const stored = target.blocks ? storedResults(model, constantResults(formed)) : model;
  if (stored !== model) return scheduleGraph(from, options, memory, prefix, stored);
  onPass("schedule");
  const choice = chooseSchedules(regions, {
    ...pricing,
    name: nests.value.name,
    threads,
    rootOf,
    codePriceOf: codePrice,
    ...(options.measured && { measured: options.measured }),
    ...(options.solver && { solver: options.solver }),
  });
  if (!choice.ok) return choice;
  const { schedules, certificate } = choice.value;
  // Regions without a choice are no variables of the search.
  const fixedNs = schedules
    .filter((s) => !s.funnel)
    .reduce((sum, s) => sum + finePriceOf(s.scheduled, target, prices).estimateNs, 0);
  const steps = [...scans.value.values()].map(({ plan, step }) => {
    const ranges = new Map(model.graph.symbols.map((s) => [s.name, s]));
    return rangeOf(plan.count, ranges).max * step.pricePs;
  });
  const pricePs = [certificate.objectivePs, Math.round(1000 * fixedNs), ...steps].reduce(
    (a, b) => a + b,
  );
  const made = { from, model, widened, choice: choice.value, scans: scans.value };
  return ok({ ...made, pricePs, warnings: nests.warnings });
}

/** Whether a region's program by itself, with its operands as inputs, is proved valid. */
function isProvedAlone(
  scheduled: ScheduledRegion,
  target: Target,
  { proved }: Pick<CompileMemory, "proved">,
): boolean {
  const plan = lowerProgram(
    { nests: programOf(scheduled.region), scheduled: [scheduled], requires: [], states: [] },
    target,
  );
  return plan.ok && validateProgram(plan.value.program, { proved }).ok;
}

/** What cannot be proved is refused: our gap, which the user can go around by narrower ranges. */
function notProved(refusals: readonly Diagnostic[]): Diagnostic {
  return diagnostic("SCH032", "the program for this model is not proved valid", {
    notes: refusals.slice(0, 3).map(formatDiagnostic),
    help: "give the dimensions values or narrower ranges from 1 on (--shape); and report it",
  });
}

/** The price of the code that a schedule becomes on a CPU; undefined where there is none. */
export function codePriceOf(
  scheduled: ScheduledRegion,
  target: Target,
  prices: CostModel,
): RegionPrice | undefined {
  if (target.blocks) return undefined;
  const lowered = lowerRegion(scheduled, target);
  if (!lowered.ok) return undefined;
  const { ns } = priceCalibrated([codeWork(scheduled, lowered.value, target)], prices);
  const boundNs = regionBoundNs(scheduled.region, target);
  return { estimateNs: Math.max(ns, boundNs), boundNs };
}

function finePriceOf(scheduled: ScheduledRegion, target: Target, prices: CostModel): RegionPrice {
  return codePriceOf(scheduled, target, prices) ?? priceRegion(scheduled, target, prices.core);
}

function describeChoice(
  { scheduled, serialNs, funnel, alternatives }: ChosenSchedule,
  target: Target,
  prices: CostModel,
): CompiledRegion {
  const { region } = scheduled;
  const ranges = symbolRanges(region);
  const price =
    serialNs === undefined
      ? finePriceOf(scheduled, target, prices)
      : { estimateNs: serialNs, boundNs: regionBoundNs(region, target) };
  return {
    name: region.name,
    scheduled,
    price,
    candidates: funnel?.legal ?? 1,
    alternatives,
    ...(funnel && { funnel }),
    flops: region.statements.reduce((n, s) => n + pointsOf(s, ranges) * bodyFlops(s), 0),
    bytes: compulsoryBytes(region, ranges),
    origins: [...new Set(region.statements.map((s) => s.origin))],
  };
}

function statesOf(graph: Graph): MemoryPlan["program"]["states"] {
  const name = (id: number): string => graph.values[id]!.name;
  return graph.states.map((s) => ({ input: name(s.input), output: name(s.output) }));
}
