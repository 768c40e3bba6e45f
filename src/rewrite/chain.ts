/**
 * Why a candidate equals the part that it came from: for every chosen e-node the proof that joins it to
 * the first node of its class, as the rules that the proofs use, with how often, in the order in which
 * they first appear. Computed constants and congruences are no steps.
 */
import { type EGraph, explain, type NodeId, type Phase } from "../egraph/index.ts";
import type { ChosenNode } from "./extracted-graph.ts";
import type { Facts } from "./facts.ts";

export interface ChainStep {
  readonly rule: string;
  readonly uses: number;
}

interface Choice {
  readonly chosen: ChosenNode;
  readonly phases: readonly Phase<Facts>[];
}

export function chainOf(
  egraph: EGraph<Facts>,
  originals: readonly NodeId[],
  roots: readonly NodeId[],
  { chosen, phases }: Choice,
): readonly ChainStep[] {
  const rules = phases.flatMap((p) => p.rules);
  const first = new Map<NodeId, NodeId>();
  for (const node of originals) {
    const root = egraph.find(node);
    if (!first.has(root)) first.set(root, node);
  }
  const uses = new Map<string, number>();
  const seen = new Set<NodeId>();
  const pending = [...roots];
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    const root = egraph.find(id);
    if (seen.has(root)) continue;
    seen.add(root);
    const node = chosen(root);
    pending.push(...egraph.children(node));
    const origin = first.get(root);
    const proof = origin === undefined ? undefined : explain(egraph, rules, origin, node);
    for (const lemma of proof?.lemmas ?? []) {
      if (lemma.kind === "rule") uses.set(lemma.rule, (uses.get(lemma.rule) ?? 0) + 1);
    }
  }
  return [...uses].map(([rule, count]) => ({ rule, uses: count }));
}
