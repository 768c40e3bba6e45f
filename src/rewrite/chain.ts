/**
 * Why a candidate equals the part that it came from: for every chosen e-node the proof that joins it to
 * the first node of its class, as the rules that the proofs use, with how often and where first, in the order
 * in which they first appear. Computed constants and congruences are no steps. Each proof is replayed by
 * the judge (check-proof.ts), which knows nothing of the e-graph; side conditions and computed constants are
 * what it takes as given.
 */
import {
  checkProof,
  type EGraph,
  explain,
  type NodeId,
  type Phase,
  type Proof,
  type Rule,
} from "../egraph/index.ts";
import { invariant } from "../support/invariant.ts";
import type { ChosenNode } from "./extracted-graph.ts";
import type { Facts } from "./facts.ts";

export interface ChainStep {
  readonly rule: string;
  readonly uses: number;
  /** The node of the model whose value the first use is a step for; absent where it has no name. */
  readonly at?: string;
}

/** A node of the part as it was, and what it is called. */
export interface Original {
  readonly node: NodeId;
  readonly origin?: string | undefined;
}

interface Choice {
  readonly chosen: ChosenNode;
  readonly phases: readonly Phase<Facts>[];
}

export function chainOf(
  egraph: EGraph<Facts>,
  originals: readonly Original[],
  roots: readonly NodeId[],
  { chosen, phases }: Choice,
): readonly ChainStep[] {
  const rules = phases.flatMap((p) => p.rules);
  const first = new Map<NodeId, Original>();
  for (const original of originals) {
    const root = egraph.find(original.node);
    if (!first.has(root)) first.set(root, original);
  }
  const steps = new Map<string, ChainStep>();
  const seen = new Set<NodeId>();
  const pending = [...roots];
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    const root = egraph.find(id);
    if (seen.has(root)) continue;
    seen.add(root);
    const node = chosen(root);
    pending.push(...egraph.children(node));
    const from = first.get(root);
    const proof = from && explain(egraph, rules, from.node, node);
    if (proof) replay(proof, rules);
    for (const lemma of proof?.lemmas ?? []) {
      if (lemma.kind !== "rule") continue;
      const { rule } = lemma;
      const step = steps.get(rule) ?? { rule, uses: 0, ...(from!.origin && { at: from!.origin }) };
      steps.set(rule, { ...step, uses: step.uses + 1 });
    }
  }
  return [...steps.values()];
}

function replay(proof: Proof, rules: readonly Rule<Facts>[]): void {
  const result = checkProof(proof, { rules, holds: ({ kind }) => kind === "evaluated" });
  invariant(result.ok, () => `a proof does not replay: ${result.ok ? "" : result.fault}`);
}
