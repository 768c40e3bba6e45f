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

import { type CompiledRegion, describeChoice, finePriceOf } from "./code-price.ts";
import { analyticalModel, type CostModel } from "./cost/calibration.ts";
import type { CoreFigures } from "./cost/core-figures.ts";
import { GraphPricer } from "./cost/price-graph.ts";
import { OperatorPricer } from "./cost/price-operators.ts";
import * as told from "./cost/told-apart.ts";
import type { Graph, Model } from "./graph/graph.ts";
import { semanticHash } from "./graph/semantic-hash.ts";
import { keptWide } from "./graph/transforms/keep-wide.ts";
import { unboundedSymbols } from "./graph/unbounded-symbols.ts";
import {
  type LoweredScan,
  type LoweringInput,
  lowerProgram,
  nestsWithSteps,
  requiresOfRegions,
} from "./lower/lower-program.ts";
import type { MemoryPlan } from "./lower/memory-plan.ts";
import { validateProgram } from "./program/validate/validate.ts";
import type { NestProgram } from "./region/nest.ts";
import type { MemoryPass } from "./region/passes.ts";
import { regionHash } from "./region/region-hash.ts";
import { approximatePhases, type RewriteMode } from "./rewrite/families/index.ts";
import { firstMade } from "./rewrite/first-made.ts";
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
import type { Certificate, ChosenSchedule } from "./schedule/choice/choose-schedules.ts";
import { noRegion } from "./schedule/choice/given-schedule.ts";
import { certifiedAgain, loopsAlone, replaceUnproved } from "./schedule/choice/replace-unproved.ts";
import { prepareWide } from "./schedule/prepare-graph.ts";
import { unitBound } from "./schedule/products/tf32.ts";
import type { ScheduledRegion } from "./schedule/scheduled-region.ts";
import {
  defaultThreads,
  emptySchedulingMemory,
  isProvedAlone,
  passesOf,
  type ScheduledGraph,
  type SchedulingMemory,
  type SchedulingOptions,
  scheduleGraph,
  scheduleGraphs,
  stepSchedules,
} from "./scheduled-graph.ts";
import { type Condition, equal } from "./semantics/condition.ts";
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

export interface CompileOptions extends SchedulingOptions {
  /** What may change results within a bound (target/allowing.ts); default: nothing. */
  readonly allow?: readonly Allowance[];
  /** Look for a cheaper equal graph by equality saturation; default: off. */
  readonly rewrite?: RewriteMode;
  /** Rules beside those of the families, proved on random tensors before they are used. */
  readonly rules?: readonly RuleRow[];
  /** Say by which rules each graph came about: keeps proofs, which takes time. */
  readonly explain?: boolean;
  /**
   * What was found of the regions of other models under the same target, threads, prices and allowances, and is
   * added to: parts of one model repeat. It decides how long this takes, not what comes out.
   */
  readonly memory?: SchedulingMemory;
  /** Proves the program; default: validateProgram. What it does not refuse is taken as proved. */
  readonly prove?: typeof validateProgram;
  /** Launches in a row start while the one before still runs; default: where the target can. */
  readonly overlap?: boolean;
  /** Called with the regions once their schedules stand; again where the program is refused and others take their place. */
  readonly onScheduled?: (scheduled: ScheduledRegions) => void;
}

/** The regions of a program, and what holds of their symbols. */
export type ScheduledRegions = Pick<CompiledModel, "regions" | "regionRequires">;

export interface CompiledModel {
  /** The graph after the graph passes; its weights are in `model.weights`. */
  readonly model: Model;
  readonly nests: NestProgram;
  readonly regions: readonly CompiledRegion[];
  /** Those regions that only map what they read, and why nobody else does. */
  readonly passes: readonly MemoryPass[];
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

export function compileModel(source: Model, given: CompileOptions): Result<CompiledModel> {
  const options = { ...given, target: allowing(given.target, given.allow) };
  const { target, memory = emptySchedulingMemory(), onPass = () => {} } = options;
  const open = unboundedSymbols(source.graph);
  if (open) return fail(open);
  onPass("graph");
  const { model: prepared, counted, wide } = prepareWide(source, target);
  const improved = improve(prepared, options);
  if (!improved.ok) return improved;
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

/** Where tensors that joins share keep a program from being proved, they are copied. */
function makeProgram(graph: ScheduledGraph, options: CompileOptions, memory: SchedulingMemory) {
  const made = makeProved(graph, options, memory);
  if (made.ok || made.diagnostics[0]?.code !== "SCH032" || !graph.sharesJoins) return made;
  const copying = { ...options, copiesJoins: true };
  const apart = scheduleGraph(graph.from, copying, memory);
  if (!apart.ok) return made;
  const again = makeProved(apart.value, copying, memory);
  return again.ok ? ok(again.value, [...again.warnings, joinsCopied]) : made;
}

const joinsCopied = diagnostic("SCH032", "joins that grow are not proved to be written in time", {
  severity: "warning",
  help: "each is copied into the next one, which takes longer; report the model",
});

function makeProved(graph: ScheduledGraph, options: CompileOptions, memory: SchedulingMemory) {
  const { target, measured, onPass = () => {}, prove = validateProgram } = options;
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
    const valid = prove(plan.value.program, { proved: memory.proved });
    if (!valid.ok) return fail(notProved(valid.diagnostics, model.graph.symbols.length > 0));
    const found = { from, model, regions, regionRequires, certificate: taken.choice.certificate };
    const nests = nestsWithSteps(lowering);
    const passes = passesOf(taken);
    return ok({ ...found, nests, passes, plan: plan.value, prices }, [
      ...warnings,
      ...plan.warnings,
    ]);
  };
  const first = made(given.value);
  if (first.ok || first.diagnostics[0]?.code !== "SCH032") return first;
  const plain = target.blocks ? given.value : withPlainRows(given.value);
  let last = target.blocks ? first : made(plain);
  if (last.ok || last.diagnostics[0]?.code !== "SCH032") return last;
  const proofs = {
    target,
    given: new Set(measured?.keys()),
    isProved: (s: ScheduledRegion) => isProvedAlone(s, target, memory),
    priceOf: (s: ScheduledRegion) => finePriceOf(s, target, prices).estimateNs,
  };
  let { schedules } = plain.choice;
  const all: Diagnostic[] = [];
  for (const mend of target.blocks ? [replaceUnproved, loopsAlone] : [replaceUnproved]) {
    const { chosen, warnings: said } = mend(schedules, proofs);
    if (said.length === 0) continue;
    schedules = chosen;
    all.push(...said);
    const certificate = certifiedAgain(choice, schedules, proofs);
    last = made({ ...plain, choice: { ...choice, schedules, certificate } });
    if (last.ok) return ok(last.value, [...last.warnings, ...all]);
    if (last.diagnostics[0]?.code !== "SCH032") return last;
  }
  return last;
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

/** What cannot be proved is refused: our gap, which the user can go around by narrower ranges where there are any. */
function notProved(refusals: readonly Diagnostic[], isOpen: boolean): Diagnostic {
  return diagnostic("SCH032", "the program for this model is not proved valid", {
    notes: refusals.slice(0, 3).map(formatDiagnostic),
    help: isOpen
      ? "give the dimensions values or narrower ranges from 1 on (--shape); and report it"
      : "choose another target (--target); and report the model",
  });
}

function statesOf(graph: Graph): MemoryPlan["program"]["states"] {
  const name = (id: number): string => graph.values[id]!.name;
  return graph.states.map((s) => ({ input: name(s.input), output: name(s.output) }));
}
