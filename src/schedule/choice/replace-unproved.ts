/**
 * What becomes of a choice that the validator cannot prove: the next schedule that it can. In: the choices of
 * a model and who proves a region by itself; out: the choices with such ones replaced, each with a warning.
 * The next ones are those that the search priced next, then what is without `multiply`, cheapest first, then
 * loops alone; on processors the loops as they are. Where none is proved the choice stays; where each is proved by
 * itself and all together are not, all become loops (`loopsAlone`), and where that is not proved either, the whole
 * program is refused.
 */
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { applySchedule } from "../apply.ts";
import { enumerateBlockLoops, enumerateBlockSchedules } from "../blocks/block-candidates.ts";
import type { Schedule } from "../directive.ts";
import { printDirective } from "../directive-text.ts";
import { checkSchedule } from "../legality/legality.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import type { Certificate, ChosenSchedule, ChosenSchedules } from "./choose-schedules.ts";

export interface ProofOptions {
  readonly target: Target;
  /** Regions whose schedules were given: they stay, or the program is refused. */
  readonly given: ReadonlySet<string>;
  readonly isProved: (scheduled: ScheduledRegion) => boolean;
  readonly priceOf: (scheduled: ScheduledRegion) => number;
}

/** Schedules without `multiply` that are priced, and of these tried, cheapest first. */
const [mostPriced, mostPlain] = [64, 4];

export function replaceUnproved(
  chosen: readonly ChosenSchedule[],
  options: ProofOptions,
): { readonly chosen: readonly ChosenSchedule[]; readonly warnings: readonly Diagnostic[] } {
  const warnings: Diagnostic[] = [];
  const proved = chosen.map((choice) => {
    const { scheduled } = choice;
    const { name } = scheduled.region;
    const isOwn = scheduled.schedule.directives.length > 0 && !options.given.has(name);
    if (!isOwn || options.isProved(scheduled)) return choice;
    const next = nextProved(choice, options);
    if (!next) return choice;
    const [before, after] = [scheduled, next].map((s) => textOf(s.schedule));
    const found = diagnostic("SCH032", `the cheapest schedule of ${name} is not proved`, {
      notes: [`chosen first: ${before}`, `taken: ${after}`],
      help: "nothing is wrong with the result; please report the model",
    });
    warnings.push({ ...found, severity: "warning" });
    const { serialNs: _, ...rest } = choice;
    return { ...rest, scheduled: next };
  });
  return { chosen: proved, warnings };
}

/** What is known of a choice once some of its schedules are others: the bound stays, the gap is wider. */
export function certifiedAgain(
  { schedules, certificate }: ChosenSchedules,
  chosen: readonly ChosenSchedule[],
  { priceOf }: Pick<ProofOptions, "priceOf">,
): Certificate {
  const more = chosen.map(({ scheduled }, i) => {
    const before = schedules[i]!.scheduled;
    return scheduled === before ? 0 : 1000 * (priceOf(scheduled) - priceOf(before));
  });
  const { boundPs } = certificate;
  const sum = more.reduce((a, b) => a + b, certificate.objectivePs);
  const objectivePs = Math.max(boundPs, Math.round(sum));
  return { ...certificate, objectivePs, gap: (objectivePs - boundPs) / (objectivePs || 1) };
}

/**
 * All regions as loops on threads, the cheapest that are proved by themselves, for a program whose regions are and which
 * is not. Those whose schedules were given, and those that have no such loops, stay.
 */
export function loopsAlone(
  chosen: readonly ChosenSchedule[],
  options: ProofOptions,
): { readonly chosen: readonly ChosenSchedule[]; readonly warnings: readonly Diagnostic[] } {
  const replaced: string[] = [];
  const loops = chosen.map((choice) => {
    const { directives } = choice.scheduled.schedule;
    const { region } = choice.scheduled;
    if (options.given.has(region.name) || directives.every(isOfLoops)) return choice;
    const found = loopsOn(region, options).slice(0, mostPlain);
    const next = found.find((s) => isRight(s, options));
    if (!next) return choice;
    replaced.push(region.name);
    const { serialNs: _, ...rest } = choice;
    return { ...rest, scheduled: next };
  });
  if (replaced.length === 0) return { chosen, warnings: [] };
  const found = diagnostic("SCH032", "the cheapest schedules are not proved together", {
    notes: [`loops on threads instead: ${replaced.join(", ")}`],
    help: "nothing is wrong with the result, which takes longer; please report the model",
  });
  return { chosen: loops, warnings: [{ ...found, severity: "warning" }] };
}

function nextProved(
  { scheduled, alternatives }: ChosenSchedule,
  options: ProofOptions,
): ScheduledRegion | undefined {
  const { region } = scheduled;
  const right = (s: ScheduledRegion): boolean => isRight(s, options);
  const found = alternatives.flatMap((schedule) => applied(region, schedule)).find(right);
  if (found) return found;
  if (!options.target.blocks) return applied(region, withoutLoops(scheduled.schedule)).find(right);
  const plain = plainOnes(region, options);
  // Strategies for whole regions fail alike: behind the cheapest come loops on threads.
  const loops = loopsOn(region, options);
  const tried = new Set([...plain.slice(0, mostPlain), ...loops.slice(0, mostPlain)]);
  return [...tried].find(right);
}

/** The loops as they are, which a processor always runs; what lies how stays so. */
function withoutLoops({ directives, ...schedule }: Schedule): Schedule {
  return { ...schedule, directives: directives.filter((d) => d.kind === "layout") };
}

/** What has no finite price asks for more registers or memory than there are. */
function isRight(scheduled: ScheduledRegion, { isProved, priceOf }: ProofOptions): boolean {
  return Number.isFinite(priceOf(scheduled)) && checkSchedule(scheduled).ok && isProved(scheduled);
}

function applied(
  region: ScheduledRegion["region"],
  schedule: Schedule,
): readonly ScheduledRegion[] {
  const found = applySchedule(region, schedule);
  return found.ok ? [found.value] : [];
}

/** What is without `multiply`, cheapest first. */
function plainOnes(
  region: ScheduledRegion["region"],
  options: ProofOptions,
): readonly ScheduledRegion[] {
  const all = enumerateBlockSchedules(region, options.target);
  const isPlain = (s: Schedule): boolean => s.directives.every((d) => d.kind !== "multiply");
  return cheapestFirst(region, all.filter(isPlain), options);
}

/** Loops on threads, cheapest first. */
function loopsOn(
  region: ScheduledRegion["region"],
  options: ProofOptions,
): readonly ScheduledRegion[] {
  return cheapestFirst(region, enumerateBlockLoops(region, options.target), options);
}

function cheapestFirst(
  region: ScheduledRegion["region"],
  schedules: readonly Schedule[],
  { priceOf }: ProofOptions,
): readonly ScheduledRegion[] {
  return schedules
    .slice(0, mostPriced)
    .flatMap((schedule) => applied(region, schedule))
    .map((scheduled) => ({ scheduled, ns: priceOf(scheduled) }))
    .sort((a, b) => a.ns - b.ns)
    .map((p) => p.scheduled);
}

function isOfLoops({ kind }: Schedule["directives"][number]): boolean {
  return kind !== "multiply" && kind !== "rows" && kind !== "attend" && kind !== "turn";
}

function textOf({ directives }: Schedule): string {
  return directives.map(printDirective).join("; ");
}
