/**
 * A budget on what is alive at one time becomes one plain budget for each moment at which the set of live
 * uses is largest. A use is alive from its variable's place in the order of execution to the last
 * variable that a transition leads to, or over the interval that it names.
 */
import type { Budget, BudgetUse, Transition } from "./problem.ts";

export interface LiveUse extends BudgetUse {
  /** First and last moment, both included. */
  readonly live?: readonly [first: number, last: number];
}

export function peakBudgets(
  budget: { readonly name: string; readonly capacity: number; readonly uses: readonly LiveUse[] },
  variables: number,
  flow: readonly Transition[],
): Budget[] {
  const last = Int32Array.from({ length: variables }, (_, i) => i);
  for (const t of flow) last[t.from] = Math.max(last[t.from]!, t.to);
  const spans = budget.uses.map(
    (use) => use.live ?? ([use.variable, last[use.variable]!] as const),
  );
  const cliques = maximalCliques(spans);
  return cliques.map(({ time, members }) => ({
    name: cliques.length === 1 ? budget.name : `${budget.name} at ${time}`,
    capacity: budget.capacity,
    uses: members.map((k) => ({
      variable: budget.uses[k]!.variable,
      amounts: budget.uses[k]!.amounts,
    })),
  }));
}

/** Sets of intervals that meet in one point and are in no larger such set. */
export function maximalCliques(
  spans: readonly (readonly [number, number])[],
): { readonly time: number; readonly members: readonly number[] }[] {
  const starts = [...new Set(spans.map(([first]) => first))].sort((a, b) => a - b);
  const cliques = starts.map((time) => ({
    time,
    members: spans.flatMap(([first, end], k) => (first <= time && time <= end ? [k] : [])),
  }));
  // A set shrinks only by an end and grows only by a start: it is maximal unless the next keeps it.
  return cliques.filter(({ members }, i) => {
    const next = new Set(cliques[i + 1]?.members);
    return members.length > 0 && !members.every((k) => next.has(k));
  });
}
