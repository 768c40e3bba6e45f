/**
 * What to change in a refused schedule: the smallest set of edits of its directives that makes it legal
 * (affine/tree/suggest.ts), found by deciding about each candidate like about any schedule.
 */
import { ConflictMemory, describeEdits, type Judge, smallestEdits } from "../../affine/index.ts";
import type { Diagnostic, Result } from "../../support/diagnostic.ts";
import { applySchedule } from "../apply.ts";
import type { Directive } from "../directive.ts";
import { printDirective } from "../directive-text.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";

type Refused = Extract<Result<ScheduledRegion>, { readonly ok: false }>;

/** The refusal with the change as its help, where the schedule breaks a dependence. */
export function withCure(
  { region, schedule }: ScheduledRegion,
  refused: Refused,
  decide: (scheduled: ScheduledRegion, memory: ConflictMemory) => Result<ScheduledRegion>,
): Refused {
  const [fault, ...others] = refused.diagnostics;
  if (fault?.code !== "SCH016") return refused;
  const { directives } = schedule;
  const memory = new ConflictMemory();
  const judge: Judge<Directive> = (edited) => {
    const before = memory.hits;
    const applied = applySchedule(region, { ...schedule, directives: edited }, memory);
    if (!applied.ok) return { legal: false, stuck: stuckAt(applied.diagnostics[0]!, edited) };
    const { ok: legal } = decide(applied.value, memory);
    return { legal, quick: memory.hits > before };
  };
  const found = smallestEdits(directives, judge);
  if (!found) return refused;
  const change = describeEdits<Directive>(found.edits, directives, printDirective);
  const help = found.smallest ? change : `${change} (not all smaller changes were tried)`;
  // What is at fault in general; the change alone is known to be legal.
  const notes = fault.help === undefined ? fault.notes : [...fault.notes, fault.help];
  return { ...refused, diagnostics: [{ ...fault, notes, help }, ...others] };
}

/** Codes of a directive that names what is not there or is taken at its place in the list. */
const namesAmiss: ReadonlySet<string> = new Set(["SCH001", "SCH002", "SCH004", "SCH009"]);

/** How many directives there are up to the one at fault, where those before it are all that matters. */
function stuckAt({ code, at }: Diagnostic, edited: readonly Directive[]): number | undefined {
  const matches = edited.flatMap((d, i) => (printDirective(d) === at ? [i] : []));
  const [first, ...others] = matches;
  if (first === undefined || others.length > 0 || !namesAmiss.has(code)) return undefined;
  // Fused statements are looked at later than where they are fused.
  return edited[first]!.kind === "fuse" ? undefined : first + 1;
}
