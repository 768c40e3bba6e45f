/**
 * The schedule of every region of a model, chosen together. Each region's superposition is narrowed
 * (region-states.ts), what neighbours pay for each other makes a factor graph (model-problem.ts), and the
 * collapse of that graph comes with a bound: no choice among all legal states costs less. A chosen state
 * whose legality is not proved is taken out, and the search goes on without it. Prices are injected.
 */
import { isChain } from "../../region/chains.ts";
import type { Region } from "../../region/nest.ts";
import { checkOutcome } from "../../search/check.ts";
import { collapse } from "../../search/collapse.ts";
import type { Outcome, Snapshot } from "../../search/outcome.ts";
import type { Problem } from "../../search/problem.ts";
import type { Solver } from "../../search/solvers.ts";
import { type Diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Target } from "../../target/target.ts";
import { applySchedule } from "../apply.ts";
import { pricedSchedules } from "../blocks/priced-schedules.ts";
import { chainStates } from "../chains/chain-states.ts";
import type { Schedule } from "../directive.ts";
import { printSchedule } from "../directive-text.ts";
import { decideSchedule } from "../legality/legality.ts";
import type { LegalityClasses } from "../legality/legality-class.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { nestFigures } from "../states/nest-figures.ts";
import { type Refining, refineStates } from "../states/refine-states.ts";
import type { RegionMemory } from "../states/region-memory.ts";
import {
  listedStates,
  type RegionFunnel,
  type RegionState,
  type RegionStates,
  type TilePricer,
} from "../states/region-states.ts";
import { TileSpace } from "../states/tile-space.ts";
import { givenStates, noSchedule } from "./given-schedule.ts";
import { type ModelRegion, modelProblem, refundNs, type SharingOptions } from "./model-problem.ts";
import { SearchTrace, type TracePoint } from "./search-trace.ts";

export interface ChoosingOptions {
  readonly name: string;
  readonly target: Target;
  readonly threads: number;
  readonly rootOf: SharingOptions["rootOf"];
  /** Prices of a CPU's tiles without applying them, and of any schedule. */
  readonly pricerOf: (region: Region) => TilePricer;
  readonly priceOf: (scheduled: ScheduledRegion) => number;
  /** Why the target's blocks have no code for a schedule, or undefined. */
  readonly faultOf: (scheduled: ScheduledRegion) => string | undefined;
  /** The price of a CPU's schedule by the code that it becomes; undefined where it has none. */
  readonly codePriceOf: (scheduled: ScheduledRegion) => number | undefined;
  /** What is known of regions, and is added to. */
  readonly memory: RegionMemory;
  /** Default: collapse, which proves a bound. */
  readonly solver?: Solver;
  /** Schedules by region that were measured to be the best: no price decides about these. */
  readonly measured?: ReadonlyMap<string, Schedule>;
}

export interface ChosenSchedule {
  readonly scheduled: ScheduledRegion;
  /** Nanoseconds of one core, as the choice was made; absent where there was none. */
  readonly serialNs?: number;
  /** The next cheapest states, for who measures. */
  readonly alternatives: readonly Schedule[];
  /** Absent where a region has no choice and runs as it stands. */
  readonly funnel?: RegionFunnel;
}

/** What the search proves of its answer, in picoseconds of the model's time. */
export interface Certificate {
  readonly solver: string;
  readonly objectivePs: number;
  readonly boundPs: number;
  /** (objective - bound) / objective. */
  readonly gap: number;
  readonly variables: number;
  readonly transitions: number;
  /** States of all variables that the hard constraints allow, and that the search was given. */
  readonly legal: number;
  readonly searched: number;
  readonly nodes: number;
  readonly work: number;
  readonly reason: string;
  /** What was known after how much work, in picoseconds. */
  readonly trace: readonly TracePoint[];
}

export interface ChosenSchedules {
  readonly schedules: readonly ChosenSchedule[];
  readonly certificate: Certificate;
}

/** Table entries that the search may touch; a model's graph is solved in far fewer. */
const mostWork = 2e8;
const gapAskedFor = 0;
/** Share of the model's time from which on a region's code is made for its price. */
const leastShare = 0.005;
/** Tiles whose code is made, in a whole model and for one of its regions. */
const modelTiles = 150;
const [fewestTiles, mostTiles] = [3, 8];
/** Other states of a region that are named for who measures. */
const mostAlternatives = 4;

export function chooseSchedules(
  regions: readonly Region[],
  options: ChoosingOptions,
): Result<ChosenSchedules> {
  const { target, threads, rootOf, memory, solver = collapse } = options;
  const sharing = { target, threads, rootOf };
  const coarse = regions.map((region) =>
    target.blocks ? blockStates(region, options) : tileStates(region, options),
  );
  const total = coarse.reduce((ns, found) => ns + (found ? found.states[0]!.priceNs : 0), 0);
  const isWorth = (found: RegionStates | undefined): boolean =>
    !target.blocks && found !== undefined && found.states[0]!.priceNs > leastShare * total;
  const each = Math.floor(modelTiles / Math.max(1, coarse.filter(isWorth).length));
  const fine = {
    mostTiles: Math.max(fewestTiles, Math.min(mostTiles, each)),
    known: memory.tiles,
  };
  const applied = new AppliedSchedules();
  const narrowed: (ModelRegion | undefined)[] = [];
  for (const [i, region] of regions.entries()) {
    const found = coarse[i];
    const isRefined = !found || isChain(region) || !isWorth(found);
    const refining = { ...fine, ...pricesOf(region, applied, options) };
    const refined = isRefined ? found : refineStates(found, refining);
    const given = options.measured?.get(region.name);
    const states = given ? givenStates(region, given, refined, options) : ok(refined);
    if (!states.ok) return states;
    narrowed.push(states.value && { name: region.name, states: states.value });
  }
  const variables = narrowed.filter((n) => n !== undefined);
  const refused = new Map<string, number[]>();
  const refusals: Diagnostic[] = [];
  for (;;) {
    const problem = without(modelProblem(options.name, variables, sharing), refused);
    const trace = new SearchTrace();
    const observe = (snapshot: Snapshot): void => trace.observe(snapshot);
    const outcome = solver(problem, { work: mostWork, gap: gapAskedFor, observe });
    const faults = checkOutcome(problem, outcome);
    invariant(faults.length === 0, () => `the search's answer is false: ${faults.join("; ")}`);
    if (!outcome.solution) {
      const stuck = variables.find((v) => v.states.states.every((s) => s.priceNs === Infinity));
      const reasons = [...refusals, ...(stuck ? [noSchedule(stuck.name, target)] : [])];
      invariant(reasons.length > 0, () => `the search gives no choice: ${outcome.reason}`);
      return fail(...reasons);
    }
    const chosen = applyChoice(regions, narrowed, {
      solution: outcome.solution,
      target,
      classes: memory.classes,
      applied,
    });
    if (chosen.kind === "chosen") {
      const certificate = certificateOf(problem, outcome, variables, trace);
      return ok({ schedules: chosen.schedules, certificate });
    }
    refusals.push(...chosen.diagnostics);
    if (chosen.state === undefined) return fail(...chosen.diagnostics);
    refused.set(chosen.name, [...(refused.get(chosen.name) ?? []), chosen.state]);
  }
}

/** Schedules as they stand on regions: the code that a price was made of is not made again for the choice. */
class AppliedSchedules {
  readonly #known = new Map<Region, Map<string, Result<ScheduledRegion>>>();

  apply(region: Region, schedule: Schedule): Result<ScheduledRegion> {
    const ofRegion = this.#known.get(region) ?? new Map<string, Result<ScheduledRegion>>();
    this.#known.set(region, ofRegion);
    const key = printSchedule(schedule);
    const applied = ofRegion.get(key) ?? applySchedule(region, schedule);
    ofRegion.set(key, applied);
    return applied;
  }
}

function pricesOf(
  region: Region,
  schedules: AppliedSchedules,
  { codePriceOf, pricerOf }: ChoosingOptions,
): Pick<Refining, "region" | "boundNs" | "priceOf"> {
  const priceOf = (state: RegionState): number | undefined => {
    const applied = schedules.apply(region, state.schedule());
    return applied.ok ? codePriceOf(applied.value) : undefined;
  };
  return { region, boundNs: pricerOf(region).boundNs, priceOf };
}

/** Regions with a scan run as they stand. */
function tileStates(region: Region, options: ChoosingOptions): RegionStates | undefined {
  if (isChain(region)) return chainStates(region, options);
  if (!TileSpace.applies(region)) return undefined;
  const { target, threads, memory } = options;
  const pricer = () => options.pricerOf(region);
  const refund = refundNs(nestFigures(region, region.statements[0]!), options);
  return memory.states.statesOf(region, target, { threads, pricer, refundNs: refund });
}

function blockStates(region: Region, options: ChoosingOptions): RegionStates {
  const priced = pricedSchedules(region, options).map(({ schedule, price }) => {
    invariant(price !== undefined, () => `a schedule of ${region.name} does not apply`);
    return { schedule, ns: price.ns };
  });
  return listedStates(nestFigures(region, region.statements[0]!), priced);
}

type Applied =
  | { readonly kind: "chosen"; readonly schedules: readonly ChosenSchedule[] }
  | {
      readonly kind: "refused";
      readonly name: string;
      /** Absent where the region had no choice. */
      readonly state?: number;
      readonly diagnostics: readonly Diagnostic[];
    };

interface Choice {
  readonly solution: ArrayLike<number>;
  readonly target: Target;
  readonly classes: LegalityClasses;
  readonly applied: AppliedSchedules;
}

function applyChoice(
  regions: readonly Region[],
  narrowed: readonly (ModelRegion | undefined)[],
  { solution, target, classes, applied: known }: Choice,
): Applied {
  const schedules: ChosenSchedule[] = [];
  let variable = 0;
  for (const [i, region] of regions.entries()) {
    const states = narrowed[i]?.states;
    const state = states && solution[variable++]!;
    const plain: Schedule = { region: region.name, target: target.name, directives: [] };
    const schedule = states ? states.states[state!]!.schedule() : plain;
    const applied = known.apply(region, schedule);
    const legal = applied.ok ? decideSchedule(applied.value, classes) : applied;
    if (!legal.ok) {
      const { diagnostics } = legal;
      return { kind: "refused", name: region.name, ...(states && { state: state! }), diagnostics };
    }
    const others = states?.states.filter((_, at) => at !== state).slice(0, mostAlternatives) ?? [];
    schedules.push({
      scheduled: legal.value,
      alternatives: others.map((s) => s.schedule()),
      ...(states && { funnel: states.funnel, serialNs: states.states[state!]!.serialNs }),
    });
  }
  return { kind: "chosen", schedules };
}

function without(problem: Problem, refused: ReadonlyMap<string, readonly number[]>): Problem {
  const variables = problem.variables.map((v) => {
    const states = refused.get(v.name);
    return states ? { ...v, exclusions: [{ constraint: "legality", states }] } : v;
  });
  return { ...problem, variables };
}

function certificateOf(
  problem: Problem,
  outcome: Outcome,
  variables: readonly ModelRegion[],
  trace: SearchTrace,
): Certificate {
  const { solver, objective, bound, gap, nodes, work, reason } = outcome;
  return {
    solver,
    objectivePs: objective!,
    boundPs: bound,
    gap,
    variables: problem.variables.length,
    transitions: problem.transitions.length,
    legal: variables.reduce((n, v) => n + v.states.funnel.legal, 0),
    searched: variables.reduce((n, v) => n + v.states.states.length, 0),
    nodes,
    work,
    reason,
    trace: trace.points(),
  };
}
