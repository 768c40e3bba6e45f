/**
 * The compiler as a list of passes, in order. In: a model and a target. Out: a program with everything
 * that led to it. Pure: no file, clock or device; the caller turns the program into machine code
 * (emit/) and runs it (runtime/).
 *
 *   expand      composites into core ops
 *   fold        constants, batch norms into weights, dead and repeated nodes
 *   inline      bodies of control flow that is decided or short
 *   wide        half precision that may overflow, as single
 *   rewrite     equal graphs, the cheapest by the target's prices (when asked for); it and the import go
 *               through the four passes behind this one, and what these price lower is kept
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
import { priceRegion, regionBoundNs, tilePricer } from "./cost/region-price.ts";
import { bodyFlops, compulsoryBytes, pointsOf, type RegionPrice } from "./cost/region-work.ts";
import type { Graph, Model } from "./graph/graph.ts";
import { prepareModel } from "./graph/prepare.ts";
import { keepWide, type WideValue } from "./graph/transforms/keep-wide.ts";
import { separateOutputs } from "./graph/transforms/separate-outputs.ts";
import { lowerProgram } from "./lower/lower-program.ts";
import { lowerRegion } from "./lower/lower-region.ts";
import type { MemoryPlan } from "./lower/memory-plan.ts";
import { validateProgram } from "./program/validate/validate.ts";
import { buildNests } from "./region/builders/build-nests.ts";
import type { NestProgram, Region } from "./region/nest.ts";
import { regionsOf } from "./region/regions-of.ts";
import { approximatePhases, type RewriteMode } from "./rewrite/families/index.ts";
import {
  lowerToCore,
  type RewriteOptions,
  type Rewritten,
  rewriteModel,
} from "./rewrite/rewrite-model.ts";
import { layoutsFor } from "./schedule/choose-layouts.ts";
import {
  type Certificate,
  type ChosenSchedule,
  type ChosenSchedules,
  chooseSchedules,
} from "./schedule/choose-schedules.ts";
import type { Schedule } from "./schedule/directive.ts";
import type { RegionFunnel } from "./schedule/region-states.ts";
import { type ScheduledRegion, symbolRanges } from "./schedule/scheduled-region.ts";
import type { Solver } from "./search/solvers.ts";
import { equal } from "./semantics/condition.ts";
import type { Tensor } from "./semantics/tensor.ts";
import {
  type Diagnostic,
  diagnostic,
  fail,
  formatDiagnostic,
  ok,
  type Result,
} from "./support/diagnostic.ts";
import { invariant } from "./support/invariant.ts";
import { byteProducts, type Target } from "./target/target.ts";

export interface CompileOptions {
  readonly target: Target;
  /** Look for a cheaper equal graph by equality saturation; default: off. */
  readonly rewrite?: RewriteMode;
  /** What decides layouts and schedules; default: collapse. */
  readonly solver?: Solver;
  /** Threads that the program is made for; it runs on any number. Default: any number above one. */
  readonly threads?: number;
  /** What prices code; default: what the target's data say. */
  readonly model?: CostModel;
  /** Schedules by region that were measured to be the best. */
  readonly measured?: ReadonlyMap<string, Schedule>;
  /** Called before each pass with its name: progress. */
  readonly onPass?: (pass: string) => void;
}

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
  /** What rewriting found, when it was asked for. */
  readonly rewritten?: Rewritten;
  /** What rules that approximate may have changed in the graph that was kept; 0 without them. */
  readonly errorBound: number;
}

/** The graph passes, with those that only this target gains by. */
export function prepareFor(model: Model, target: Target): Model {
  return prepareModel(model, { integerProducts: target.capabilities.has(byteProducts) });
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
  return rewriteModel(model, { ...rest, pricer: new GraphPricer(target, core) });
}

function improve(
  prepared: Model,
  { target, rewrite = "off", onPass, model }: CompileOptions,
): Result<Rewritten | undefined> {
  if (rewrite === "off") return ok(undefined);
  const phases = {
    ...(rewrite === "approximate" && { phases: approximatePhases }),
    ...(model && { core: model.core }),
  };
  // Both graphs are scheduled and priced whole behind this.
  return rewriteFor(prepared, target, onPass, { ...phases, wholePrices: false });
}

export function compileModel(source: Model, options: CompileOptions): Result<CompiledModel> {
  const { target, onPass = () => {} } = options;
  onPass("graph");
  const { model: prepared, wide } = prepareWide(source, target);
  const improved = improve(prepared, options);
  if (!improved.ok) return improved;
  const chosen = scheduleCheapest(graphsOf(prepared, improved.value), options);
  if (!chosen.ok) return chosen;
  const { model, widened, choice } = chosen.value;
  const prices = options.model ?? analyticalModel(target);
  const regions = choice.schedules.map((s) => describeChoice(s, target, prices));
  onPass("lower");
  const plan = lowerProgram(
    {
      nests: widened,
      scheduled: regions.map((c) => c.scheduled),
      requires: model.graph.constraints.map((c) => equal(c.left, c.right)),
      states: statesOf(model.graph),
    },
    target,
  );
  if (!plan.ok) return plan;
  onPass("validate");
  const valid = validateProgram(plan.value.program);
  if (!valid.ok) return fail(notProved(valid.diagnostics));
  const { certificate } = choice;
  const rewritten = improved.value && { rewritten: improved.value };
  const isImport = chosen.value.source === prepared;
  const errorBound = isImport ? 0 : (improved.value?.best.errorBound ?? 0);
  const found = { model, nests: widened, regions, certificate, plan: plan.value, errorBound };
  return ok({ ...found, ...rewritten }, [
    ...keptWide(wide),
    ...improved.warnings,
    ...chosen.warnings,
    ...plan.warnings,
  ]);
}

/** The graph passes; half precision that may overflow becomes single, and is prepared again. */
function prepareWide(
  source: Model,
  target: Target,
): {
  readonly model: Model;
  readonly wide: readonly WideValue[];
} {
  const model = prepareFor(source, target);
  const { graph, constants, wide } = keepWide(model);
  if (wide.length === 0) return { model, wide };
  const read = (key: string): Tensor => constants.get(key) ?? model.weights.read(key);
  return { model: prepareFor({ graph, weights: { read } }, target), wide };
}

/** Rows of the warning about values that are kept wide. */
const mostWideRows = 20;

function keptWide(wide: readonly WideValue[]): readonly Diagnostic[] {
  if (wide.length === 0) return [];
  const rows = wide.slice(0, mostWideRows).map(({ value, origin, range }) => {
    const [low, high] = [range.low, range.high].map((x) => x.toPrecision(2));
    return `${value} (${origin}): about ${low} to ${high}`;
  });
  const more = wide.length - rows.length;
  const message = `${wide.length} values may leave the range of f16; they are kept in f32`;
  const found = diagnostic("GRF015", message, {
    notes: more > 0 ? [...rows, `and ${more} more`] : rows,
    help: "nothing is lost but some time; scale the activations, or export the model in f32 or bf16",
  });
  return [{ ...found, severity: "warning" }];
}

/** Graphs that the search is given: what rewriting says is cheapest, and the import. */
function graphsOf(prepared: Model, rewritten: Rewritten | undefined): readonly Model[] {
  if (!rewritten || rewritten.best.model === prepared) return [prepared];
  return [lowerToCore(rewritten.best.model), prepared];
}

/** A graph with its regions scheduled. */
interface ScheduledGraph {
  /** As it was given. */
  readonly source: Model;
  readonly model: Model;
  readonly widened: NestProgram;
  readonly choice: ChosenSchedules;
  /** Of the whole program, with regions that had no choice. */
  readonly pricePs: number;
}

/**
 * Schedules each graph and keeps the cheapest, the first of those of one price. What was measured says
 * nothing of the other graphs' schedules, so that it has no part in the choice among graphs.
 */
function scheduleCheapest(
  models: readonly Model[],
  options: CompileOptions,
): Result<ScheduledGraph> {
  const { measured, ...unmeasured } = options;
  if (models.length === 1) return scheduleGraph(models[0]!, options);
  let best: { readonly made: Result<ScheduledGraph>; readonly model: Model } | undefined;
  let least = Infinity;
  for (const model of models) {
    const made = scheduleGraph(model, unmeasured);
    if (!made.ok) return made;
    if (made.value.pricePs >= least) continue;
    least = made.value.pricePs;
    best = { made, model };
  }
  invariant(best, () => "no graph has a price");
  return measured ? scheduleGraph(best.model, options) : best.made;
}

function scheduleGraph(source: Model, options: CompileOptions): Result<ScheduledGraph> {
  const { target, threads = 2, onPass = () => {} } = options;
  const model = { ...source, graph: separateOutputs(source.graph) };
  onPass("nests");
  const nests = buildNests(model.graph);
  if (!nests.ok) return nests;
  onPass("groups");
  const prices = options.model ?? analyticalModel(target);
  const { core } = prices;
  const pricing = {
    target,
    pricerOf: (region: Region) => tilePricer(region, target, core),
    priceOf: (scheduled: ScheduledRegion) => priceRegion(scheduled, target, core).estimateNs,
  };
  const {
    regions,
    nests: widened,
    rootOf,
  } = regionsOf(nests.value, layoutsFor(pricing, options.solver));
  onPass("schedule");
  const choice = chooseSchedules(regions, {
    ...pricing,
    name: nests.value.name,
    threads,
    rootOf,
    codePriceOf: (scheduled) => codePriceOf(scheduled, target, prices)?.estimateNs,
    ...(options.measured && { measured: options.measured }),
    ...(options.solver && { solver: options.solver }),
  });
  if (!choice.ok) return choice;
  const { schedules, certificate } = choice.value;
  // Regions without a choice are no variables of the search.
  const fixedNs = schedules
    .filter((s) => !s.funnel)
    .reduce((sum, s) => sum + finePriceOf(s.scheduled, target, prices).estimateNs, 0);
  const pricePs = certificate.objectivePs + Math.round(1000 * fixedNs);
  return ok({ source, model, widened, choice: choice.value, pricePs }, nests.warnings);
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
