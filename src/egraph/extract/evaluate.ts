/**
 * The judge of extractions: from the problem and a choice alone it finds the costs, or says what is wrong.
 * It shares no code with the extractors.
 */
import type { Choice, ExtractionProblem } from "./problem.ts";

export type Evaluation =
  | {
      readonly ok: true;
      readonly dagCost: number;
      readonly treeCost: number;
      readonly classes: number;
    }
  | { readonly ok: false; readonly fault: string };

/** Costs of what the choice takes from the roots on. */
export function evaluateChoice(problem: ExtractionProblem, choice: Choice): Evaluation {
  const treeCosts = new Map<number, number>();
  const open = new Set<number>();
  let dagCost = 0;
  // Depth first with an own stack: chains may be longer than the engine's.
  const stack: { readonly of: number; readonly needs: readonly number[]; next: number }[] = [];
  const enter = (c: number): string | undefined => {
    const node = choice[c];
    if (node === undefined || node < 0) return `class ${c} is needed and has no choice`;
    if (problem.nodeClass[node] !== c) return `node ${node} is not of class ${c}`;
    const needs = problem.children.subarray(
      problem.childStart[node]!,
      problem.childStart[node + 1]!,
    );
    open.add(c);
    dagCost += problem.cost[node]!;
    stack.push({ of: c, needs: [...needs], next: 0 });
    return undefined;
  };
  for (const root of problem.roots) {
    if (treeCosts.has(root)) continue;
    const fault = enter(root);
    if (fault) return { ok: false, fault };
    while (stack.length > 0) {
      const top = stack[stack.length - 1]!;
      const child = top.needs[top.next++];
      if (child === undefined) {
        stack.pop();
        open.delete(top.of);
        const own = problem.cost[choice[top.of]!]!;
        treeCosts.set(
          top.of,
          top.needs.reduce((sum, c) => sum + treeCosts.get(c)!, own),
        );
      } else if (open.has(child)) {
        return { ok: false, fault: `class ${child} needs itself` };
      } else if (!treeCosts.has(child)) {
        const inner = enter(child);
        if (inner) return { ok: false, fault: inner };
      }
    }
  }
  const treeCost = problem.roots.reduce((sum, root) => sum + treeCosts.get(root)!, 0);
  return { ok: true, dagCost, treeCost, classes: treeCosts.size };
}
