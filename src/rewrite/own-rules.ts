/**
 * Rules of a caller's own: text that nobody has proved. Each is read, proved on random tensors as the
 * rules of the families are, and runs before them to the end of its news or of the budget, then among those
 * that run more than once.
 * A rule that is not well formed (EGR001, EGR002) or not true (EGR006) lets none of them run.
 */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { compileRows } from "./compile-rows.ts";
import { defaultProof, proveRule } from "./prove/prove-rule.ts";
import type { RulePhase } from "./rewrite-part.ts";
import type { RuleRow } from "./rule-row.ts";

/** Phases with the caller's rules in front and in the first, or what is wrong with the rules. */
export function withOwnRules(
  phases: readonly RulePhase[],
  own: readonly RuleRow[],
): Result<readonly RulePhase[]> {
  if (own.length === 0) return ok(phases);
  const scope = { ranges: new Map(), granted: new Set<string>(), inferred: new Map() };
  const read = compileRows(own, scope);
  if (!read.ok) return read;
  const refuted = own.flatMap(refute);
  if (refuted.length > 0) return fail(...refuted);
  const alone = { name: "own", rules: own, iterations: Number.POSITIVE_INFINITY };
  const among = phases.map((phase) =>
    phase.iterations > 1 ? { ...phase, rules: [...own, ...phase.rules] } : phase,
  );
  return ok([alone, ...among]);
}

function refute(row: RuleRow): readonly Diagnostic[] {
  const verdict = proveRule(row, defaultProof);
  if (verdict.kind === "holds") return [];
  return [
    diagnostic("EGR006", verdict.reason, {
      at: `rule "${row.name}"`,
      notes: [`trial ${verdict.seed} of its proof on random tensors`],
      help: "correct the rule, guard it, or give it a sample that meets its conditions",
    }),
  ];
}
