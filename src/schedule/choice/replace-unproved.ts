/**
 * What becomes of a choice that the validator cannot prove: the next schedule that it can. In: the choices of
 * a model and who proves a region by itself; out: the choices with such ones replaced, each with a warning.
 * The next ones are those that the search priced next, then what is without `multiply`, cheapest first, then
 * loops alone. Where none is proved the choice stays, and the whole program is refused.
 */
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { applySchedule } from "../apply.ts";
import { enumerateBlockSchedules } from "../blocks/block-candidates.ts";
import type { Schedule } from "../directive.ts";
import { printDirective } from "../directive-text.ts";
import { checkSchedule } from "../legality/legality.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import type { ChosenSchedule } from "./choose-schedules.ts";

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

function nextProved(
  { scheduled: { region }, alternatives }: ChosenSchedule,
  { target, isProved, priceOf }: ProofOptions,
): ScheduledRegion | undefined {
  const apply = (schedule: Schedule): readonly ScheduledRegion[] => {
    const applied = applySchedule(region, schedule);
    return applied.ok ? [applied.value] : [];
  };
  const isRight = (s: ScheduledRegion): boolean => checkSchedule(s).ok && isProved(s);
  const found = alternatives.flatMap(apply).find(isRight);
  if (found) return found;
  const plain = enumerateBlockSchedules(region, target)
    .filter((s) => s.directives.every((d) => d.kind !== "multiply"))
    .slice(0, mostPriced)
    .flatMap(apply)
    .map((scheduled) => ({ scheduled, ns: priceOf(scheduled) }))
    .sort((a, b) => a.ns - b.ns);
  // Strategies for whole regions fail alike: behind the cheapest come loops on threads.
  const loops = plain.filter(({ scheduled }) => scheduled.schedule.directives.every(isOfLoops));
  const tried = new Set([...plain.slice(0, mostPlain), ...loops.slice(0, mostPlain)]);
  return [...tried].find((p) => isRight(p.scheduled))?.scheduled;
}

function isOfLoops({ kind }: Schedule["directives"][number]): boolean {
  return kind !== "rows" && kind !== "attend" && kind !== "turn";
}

function textOf({ directives }: Schedule): string {
  return directives.map(printDirective).join("; ");
}
