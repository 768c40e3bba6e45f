/**
 * What to change in a refused schedule: the smallest change of its directives (affine/tree/suggest.ts)
 * that makes it legal, found by deciding about each candidate like about any schedule.
 */
import { describeEdit, editDirectives, editsOf } from "../affine/index.ts";
import type { Result } from "../support/diagnostic.ts";
import { applySchedule } from "./apply.ts";
import type { Directive } from "./directive.ts";
import { printDirective } from "./directive-text.ts";
import type { ScheduledRegion } from "./scheduled-region.ts";

type Refused = Extract<Result<ScheduledRegion>, { readonly ok: false }>;

/** The refusal with the change in its help, where the schedule breaks a dependence and one helps. */
export function withCure(
  { region, schedule }: ScheduledRegion,
  refused: Refused,
  decide: (scheduled: ScheduledRegion) => Result<ScheduledRegion>,
): Refused {
  const [fault, ...others] = refused.diagnostics;
  if (fault?.code !== "SCH016") return refused;
  const { directives } = schedule;
  for (const edit of editsOf(directives)) {
    const edited = editDirectives<Directive>(directives, edit);
    const applied = applySchedule(region, { ...schedule, directives: edited });
    if (!applied.ok || !decide(applied.value).ok) continue;
    const change = describeEdit<Directive>(edit, directives, printDirective);
    const help = fault.help === undefined ? change : `${fault.help}; or: ${change}`;
    return { ...refused, diagnostics: [{ ...fault, help }, ...others] };
  }
  return refused;
}
