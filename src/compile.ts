/**
 * The compiler as a list of passes, in order. In: a model and a target. Out: a program with everything
 * that led to it. Pure: no file, clock or device; the caller turns the program into machine code
 * (emit/) and runs it (runtime/).
 *
 *   expand      composites into core ops
 *   fold        constants, batch norms into weights, dead and repeated nodes
 *   inline      bodies of control flow that is decided or short
 *   nests       a loop nest per node
 *   groups      what is computed together
 *   coalesce    fewer, longer loops
 *   schedule    candidates priced, the cheapest taken and proved legal
 *   lower       kernels, buffers, memory plan
 *   validate    the program proved: in bounds, no race, all written; a refusal is our bug
 */
import { bodyFlops, compulsoryBytes, pointsOf, type RegionPrice } from "./cost/region-work.ts";
import { priceRegion } from "./cost/tile-cost.ts";
import type { Graph, Model } from "./graph/graph.ts";
import { prepareModel } from "./graph/prepare.ts";
import { lowerProgram } from "./lower/lower-program.ts";
import type { MemoryPlan } from "./lower/memory-plan.ts";
import type { Program } from "./program/program.ts";
import { validateProgram } from "./program/validate/validate.ts";
import { buildNests } from "./region/builders/build-nests.ts";
import { coalesceRegion } from "./region/coalesce.ts";
import { analyseProgram, applyGroups, formRegion } from "./region/form-region.ts";
import { defaultGroupOptions, planGroups } from "./region/groups.ts";
import type { NestProgram, NestTensor, Region, TensorRole, View } from "./region/nest.ts";
import { applySchedule } from "./schedule/apply.ts";
import { enumerateSchedules } from "./schedule/candidates.ts";
import type { Schedule } from "./schedule/directive.ts";
import { checkSchedule } from "./schedule/legality.ts";
import { type ScheduledRegion, symbolRanges } from "./schedule/scheduled-region.ts";
import { equal } from "./semantics/condition.ts";
import { type Diagnostic, fail, formatDiagnostic, ok, type Result } from "./support/diagnostic.ts";
import { invariant } from "./support/invariant.ts";
import type { Target } from "./target/target.ts";

export interface CompileOptions {
  readonly target: Target;
  /** Threads that the program is made for; it runs on any number. Default: any number above one. */
  readonly threads?: number;
  /** Called before each pass with its name: progress. */
  readonly onPass?: (pass: string) => void;
}

export interface CompiledRegion {
  readonly name: string;
  readonly scheduled: ScheduledRegion;
  readonly price: RegionPrice;
  /** Candidates that were priced. */
  readonly candidates: number;
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
  readonly plan: MemoryPlan;
}

export function compileModel(source: Model, options: CompileOptions): Result<CompiledModel> {
  const { target, threads = 2, onPass = () => {} } = options;
  onPass("graph");
  const model = prepareModel(source);
  onPass("nests");
  const nests = buildNests(model.graph);
  if (!nests.ok) return nests;
  onPass("groups");
  const analysed = analyseProgram(nests.value);
  const { groups } = planGroups(analysed, defaultGroupOptions);
  const regions = groups.map((g) => formRegion(analysed, g));
  const grouped = applyGroups(analysed, groups);
  onPass("schedule");
  const chosen: CompiledRegion[] = [];
  const views: View[] = [];
  const made = new Map<string, NestTensor & { readonly role: TensorRole }>();
  for (const region of regions) {
    const coalesced = coalesceRegion(region);
    views.push(...coalesced.views.filter((v) => !made.has(v.tensor)));
    for (const { tensor } of coalesced.views) {
      const { role, ...rest } = coalesced.region.tensors.get(tensor)!;
      invariant(role !== "local", () => `view ${tensor} of a local tensor`);
      made.set(tensor, { ...rest, role });
    }
    const best = chooseSchedule(coalesced.region, target, threads);
    if (!best.ok) return best;
    chosen.push(best.value);
  }
  onPass("lower");
  const widened = withViews(grouped, views, made);
  const plan = lowerProgram(
    {
      nests: widened,
      scheduled: chosen.map((c) => c.scheduled),
      requires: model.graph.constraints.map((c) => equal(c.left, c.right)),
      states: statesOf(model.graph),
    },
    target,
  );
  if (!plan.ok) return plan;
  onPass("validate");
  const valid = validateProgram(plan.value.program);
  invariant(valid.ok, () => refusalText(valid));
  return ok({ model, nests: widened, regions: chosen, plan: plan.value }, [
    ...nests.warnings,
    ...plan.warnings,
  ]);
}

/** Barriers that a region must outweigh before it is dealt out: its own, and what late threads cost. */
const barriersPerRegion = 4;

function refusalText(refused: Result<Program>): string {
  const list = refused.ok ? [] : refused.diagnostics.slice(0, 3);
  return `the lowered program is not proved valid: ${list.map(formatDiagnostic).join("\n")}`;
}

/** The cheapest candidate; threads only where they save more than the barriers cost. */
export function chooseSchedule(
  region: Region,
  target: Target,
  threads = 2,
): Result<CompiledRegion> {
  const serial = cheapest(region, target, enumerateSchedules(region, target, { parallel: false }));
  if (!serial.ok) return serial;
  const savedNs = serial.value.price.estimateNs * (1 - 1 / threads);
  const worthThreads = savedNs > barriersPerRegion * target.barrierNs.value;
  if (!worthThreads || !target.capabilities.has("threads")) return serial;
  return cheapest(region, target, enumerateSchedules(region, target, { parallel: true }));
}

function cheapest(
  region: Region,
  target: Target,
  schedules: readonly Schedule[],
): Result<CompiledRegion> {
  const priced: { scheduled: ScheduledRegion; price: RegionPrice }[] = [];
  for (const schedule of schedules) {
    const scheduled = applySchedule(region, schedule);
    if (!scheduled.ok) return fail(...scheduled.diagnostics);
    priced.push({ scheduled: scheduled.value, price: priceRegion(scheduled.value, target) });
  }
  // Sorting is stable: among equal prices the earlier candidate stays first.
  priced.sort((a, b) => picoseconds(a.price) - picoseconds(b.price));
  const refusals: Diagnostic[] = [];
  const best = priced.find(({ scheduled }) => {
    const legal = checkSchedule(scheduled);
    if (!legal.ok) refusals.push(...legal.diagnostics);
    return legal.ok;
  });
  if (!best) return fail(...refusals);
  const ranges = symbolRanges(region);
  return ok({
    name: region.name,
    ...best,
    candidates: schedules.length,
    flops: region.statements.reduce((n, s) => n + pointsOf(s, ranges) * bodyFlops(s), 0),
    bytes: compulsoryBytes(region, ranges),
    origins: [...new Set(region.statements.map((s) => s.origin))],
  });
}

/** Prices are compared as integers, so that the choice does not hang on the last bit of a sum. */
function picoseconds(price: RegionPrice): number {
  return Math.round(price.estimateNs * 1000);
}

function withViews(
  nests: NestProgram,
  views: readonly View[],
  tensors: ReadonlyMap<string, NestTensor & { readonly role: TensorRole }>,
): NestProgram {
  return {
    ...nests,
    tensors: new Map([...nests.tensors, ...tensors]),
    items: [...nests.items, ...views.map((view) => ({ kind: "view", view }) as const)],
  };
}

function statesOf(graph: Graph): MemoryPlan["program"]["states"] {
  const name = (id: number): string => graph.values[id]!.name;
  return graph.states.map((s) => ({ input: name(s.input), output: name(s.output) }));
}
