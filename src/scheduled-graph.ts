/**
 * Graphs with the schedules of their regions, before anything is lowered: nests, groups, layouts and the choice
 * among the states of all regions, for the graph and for the steps of its scans.
 */

import { codePriceOf, finePriceOf, selectionPriceNs } from "./code-price.ts";
import { blockFault } from "./cost/block-fault.ts";
import { analyticalModel, type CostModel } from "./cost/calibration.ts";
import { priceRegion, tilePricer } from "./cost/region-price.ts";
import type { Graph, Model, Node, NodeOf } from "./graph/graph.ts";
import { eliminateDeadCode } from "./graph/transforms/clean.ts";
import {
  hasSteps,
  type RepeatedSteps,
  stepsOf,
  type Trips,
} from "./graph/transforms/scan-steps.ts";
import { separateOutputs } from "./graph/transforms/separate-outputs.ts";
import { isCut } from "./graph/transforms/split-at-data.ts";
import {
  constantTables,
  noTables,
  type Tables,
  withTables,
  withTableWeights,
} from "./interp/constant-tables.ts";
import { lowerProgram, refuseRoutines } from "./lower/lower-program.ts";
import type { ProvedLaunches } from "./program/validate/known-launches.ts";
import { validateProgram } from "./program/validate/validate.ts";
import { buildNests } from "./region/builders/build-nests.ts";
import { growInPlace } from "./region/growing-joins.ts";
import type { NestProgram, Region, Routine } from "./region/nest.ts";
import { type MemoryPass, memoryPasses, type PassesOf } from "./region/passes.ts";
import { inTurn, type LayOut, programOf, regionsOf } from "./region/regions-of.ts";
import { storedResults } from "./rewrite/derive-constants.ts";
import { leftOut } from "./rewrite/first-made.ts";
import type { Candidate } from "./rewrite/rewrite-model.ts";
import { blockRegions } from "./schedule/blocks/block-regions.ts";
import { chainsFor } from "./schedule/chains/choose-chains.ts";
import { layoutsFor } from "./schedule/choice/choose-layouts.ts";
import {
  type ChosenSchedule,
  type ChosenSchedules,
  chooseSchedules,
} from "./schedule/choice/choose-schedules.ts";
import { turnsFor } from "./schedule/choice/choose-turns.ts";
import type { Schedule } from "./schedule/directive.ts";
import { nestOptions } from "./schedule/prepare-graph.ts";
import { warnOfOpenLoops } from "./schedule/products/open-loops.ts";
import { constantResults } from "./schedule/products/prologues.ts";
import type { ScheduledRegion } from "./schedule/scheduled-region.ts";
import { emptyMemory, type RegionMemory } from "./schedule/states/region-memory.ts";
import type { Solver } from "./search/solvers.ts";
import { constantValue } from "./semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "./semantics/index-range.ts";
import { type Diagnostic, fail, ok, type Result } from "./support/diagnostic.ts";
import type { Target } from "./target/target.ts";

/** What decides the schedules of a graph. */
export interface SchedulingOptions {
  readonly target: Target;
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
  /** Joins that grow are tensors of their own; default: they are one where copies alone make them several. */
  readonly copiesJoins?: boolean;
}

/** What was found of regions and of the launches that they become while models are compiled. */
export interface SchedulingMemory extends RegionMemory {
  readonly proved: ProvedLaunches;
}

export function emptySchedulingMemory(): SchedulingMemory {
  return { ...emptyMemory(), proved: new Map() };
}

/** Stands for any number above one. */
export const defaultThreads = 2;

/** A graph with its regions scheduled. */
export interface ScheduledGraph {
  readonly from: Candidate;
  /** Scans and loops whose steps are tasks, by the number of their node. */
  readonly scans: ReadonlyMap<number, ScheduledScan>;
  readonly model: Model;
  readonly widened: NestProgram;
  readonly choice: ChosenSchedules;
  /** Why its regions are not fewer. */
  readonly apart: PassesOf;
  /** Of the whole program, with regions that had no choice. */
  readonly pricePs: number;
  /** Whether joins that grow are one tensor. */
  readonly sharesJoins: boolean;
  readonly warnings: readonly Diagnostic[];
}

export interface ScheduledScan {
  readonly plan: RepeatedSteps;
  readonly step: ScheduledGraph;
}

/** Whether a node of a prepared graph with a body is part of programs all the same: on GPUs with as many steps as are known. */
export function isRepeated(
  node: Node,
  graph: Graph,
  target: Target,
): node is NodeOf<"scan"> | NodeOf<"loop"> {
  if (!hasSteps(node, graph)) return false;
  if (!target.blocks) return true;
  const { trips } = stepsOf(graph, node);
  return trips.kind === "count" && constantValue(trips.count) !== undefined;
}

/** Passes over memory of a graph, and behind them those of its steps. */
export function passesOf({ choice, apart, scans }: ScheduledGraph): readonly MemoryPass[] {
  const regions = choice.schedules.map((s) => s.scheduled.region);
  const steps = [...scans.values()].flatMap(({ step }) => passesOf(step));
  return [...memoryPasses(regions, apart), ...steps];
}

export function stepSchedules({ scans }: ScheduledGraph): readonly ChosenSchedule[] {
  return [...scans.values()].flatMap(({ step }) => [
    ...step.choice.schedules,
    ...stepSchedules(step),
  ]);
}

/**
 * Nodes that no program of a graph has a place for, whatever its schedules: data decide what comes out of them, and
 * the model runs in stages.
 */
function withoutProgram({ model: { graph } }: Candidate, target: Target): readonly Diagnostic[] {
  if (!graph.nodes.some((node) => isCut(node, graph) && !isRepeated(node, graph, target)))
    return [];
  const nests = buildNests(separateOutputs(graph));
  if (!nests.ok) return [];
  const repeated = new Set(
    graph.nodes.flatMap((n) => (isRepeated(n, graph, target) ? [n.id] : [])),
  );
  return refuseRoutines(nests.value, (node) => repeated.has(node), target);
}

/** Each graph scheduled, without those that are refused: the import, which is the last, is the answer. */
export function scheduleGraphs(
  graphs: readonly Candidate[],
  { measured, ...options }: SchedulingOptions,
  memory: SchedulingMemory,
): Result<readonly ScheduledGraph[]> {
  const lacking = measured ? [] : graphs.map((graph) => withoutProgram(graph, options.target));
  if (lacking.length > 0 && lacking.every((refused) => refused.length > 0)) {
    return fail(...lacking.at(-1)!);
  }
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

/** The steps of scans, each scheduled as a graph of its own. */
function scheduleScans(
  from: Candidate,
  routines: readonly Routine[],
  { options, memory }: { readonly options: SchedulingOptions; readonly memory: SchedulingMemory },
): Result<ReadonlyMap<number, ScheduledScan>> {
  const { graph, weights } = from.model;
  const scans = new Map<number, ScheduledScan>();
  for (const { node: id, name } of routines) {
    const node = graph.nodes.find((n) => n.id === id)!;
    if (!isRepeated(node, graph, options.target)) continue;
    const plan = stepsOf(graph, node);
    const step = { ...from, model: { graph: eliminateDeadCode(plan.graph), weights } };
    const made = scheduleGraph(step, options, memory, `${name}.`);
    if (!made.ok) return made;
    scans.set(id, { plan, step: made.value });
  }
  return ok(scans);
}

/** Names of statements begin with `prefix`. */
export function scheduleGraph(
  from: Candidate,
  options: SchedulingOptions,
  memory: SchedulingMemory,
  prefix = "",
  model: Model = { ...from.model, graph: separateOutputs(from.model.graph) },
  tables: Tables = noTables,
): Result<ScheduledGraph> {
  const { target, threads = defaultThreads, copiesJoins = false, onPass = () => {} } = options;
  onPass("nests");
  const built = buildNests(model.graph, { prefix, ...nestOptions(target) });
  if (!built.ok) return built;
  const nests = { ...built, value: withTables(built.value, tables) };
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
  const layouts = layoutsFor(pricing, options.solver);
  let sharesJoins = false;
  const growing: LayOut = (before, program) => {
    const grown = growInPlace(before, program);
    sharesJoins = grown.regions.length < before.length;
    return grown;
  };
  const formed = regionsOf(nests.value, {
    layOut: inTurn(
      layouts && turnsFor(pricing, layouts),
      layouts ?? blockRegions(pricing),
      copiesJoins || target.blocks ? undefined : growing,
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
  if (target.blocks) {
    const constant = constantResults(formed);
    const stored = storedResults(model, constant);
    if (stored !== model) return scheduleGraph(from, options, memory, prefix, stored);
    // Steps of scans have no weights of their own.
    const made = prefix === "" ? constantTables(nests.value, constant) : noTables;
    if (made.size > 0) return scheduleGraph(from, options, memory, prefix, model, made);
  }
  onPass("schedule");
  const choice = chooseSchedules(regions, {
    ...pricing,
    name: nests.value.name,
    threads,
    rootOf,
    codePriceOf: codePrice,
    faultOf: (scheduled) => target.blocks && blockFault(scheduled, target.blocks),
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
    return tripsOf(plan.trips, ranges) * step.pricePs;
  });
  const selected = routines.flatMap(({ selects, ...r }) =>
    selects ? [selectionPriceNs({ ...r, selects }, nests.value, target, prices)] : [],
  );
  const withoutChoice = selected.reduce((sum, ns) => sum + ns, fixedNs);
  const pricePs = [certificate.objectivePs, Math.round(1000 * withoutChoice), ...steps].reduce(
    (a, b) => a + b,
  );
  const whole = withTableWeights(model, nests.value, tables);
  const apart = { nests: nests.value, rootOf, fusion: formed.fusion };
  const made = { from, model: whole, widened, choice: choice.value, scans: scans.value, apart };
  const open = warnOfOpenLoops(
    schedules.map((s) => s.scheduled),
    { target, priceOf: pricing.priceOf },
  );
  const shares = sharesJoins || [...scans.value.values()].some(({ step }) => step.sharesJoins);
  const warned = [...nests.warnings, ...open];
  return ok({ ...made, pricePs, sharesJoins: shares, warnings: warned });
}

/** Trips of a loop that data end, for its price. */
const usualTrips = 64;

function tripsOf(trips: Trips, ranges: IndexRanges): number {
  return trips.kind === "count"
    ? rangeOf(trips.count, ranges).max
    : Math.min(usualTrips, trips.most);
}

/** Whether a region's program by itself, with its operands as inputs, is proved valid. */
export function isProvedAlone(
  scheduled: ScheduledRegion,
  target: Target,
  { proved }: Pick<SchedulingMemory, "proved">,
): boolean {
  const plan = lowerProgram(
    { nests: programOf(scheduled.region), scheduled: [scheduled], requires: [], states: [] },
    target,
  );
  return plan.ok && validateProgram(plan.value.program, { proved }).ok;
}
