/**
 * Congruence closure: random ground equations, stated one by one with rebuilds between, against a naive
 * closure that compares all pairs, and against z3's theory of uninterpreted functions; with every
 * equality explained and the proof checked.
 */
import { init } from "z3-solver";
import { checkProof, EGraph, explain, type NodeId } from "../../src/egraph/index.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";

/** A function symbol over earlier terms. */
interface Term {
  readonly op: string;
  readonly children: readonly number[];
}

interface Puzzle {
  readonly terms: readonly Term[];
  readonly equations: readonly (readonly [number, number])[];
}

export const congruence: Campaign = {
  name: "congruence",
  summary: "random ground equations against a naive closure and z3, all explained",
  targets: ["naive", "z3"],
  defaultCount: 2000,
  open: async (target) => {
    const askZ3 = target === "z3" ? await loadZ3() : undefined;
    return async (seed) => {
      const puzzle = drawPuzzle(new Rng(seed));
      const labels = closeNaively(puzzle);
      const found = compareGraph(puzzle, labels);
      if (found.kind !== "passed" || !askZ3) return found;
      return askZ3(puzzle, labels, new Rng(seed));
    };
  },
};

function drawPuzzle(rng: Rng): Puzzle {
  const terms: Term[] = [];
  const leaves = rng.integer(2, 5);
  for (let i = 0; i < leaves; i++) terms.push({ op: `c${i}`, children: [] });
  const count = rng.integer(5, 40);
  for (let i = 0; i < count; i++) {
    const arity = rng.integer(1, 4);
    const pick = () => rng.integer(Math.max(0, terms.length - 12), terms.length - 1);
    const op = `f${arity}${rng.integer(0, 1)}`;
    terms.push({ op, children: Array.from({ length: arity }, pick) });
  }
  const some = () => rng.integer(0, terms.length - 1);
  const equations = Array.from({ length: rng.integer(1, 8) }, () => [some(), some()] as const);
  return { terms, equations };
}

/** A label a term, equal for equal terms: merges pairs until nothing changes. */
function closeNaively({ terms, equations }: Puzzle): number[] {
  const labels = terms.map((_, i) => i);
  const merge = (a: number, b: number): boolean => {
    const [from, to] = [labels[a]!, labels[b]!];
    if (from === to) return false;
    for (const [i, label] of labels.entries()) if (label === from) labels[i] = to;
    return true;
  };
  for (const [a, b] of equations) merge(a, b);
  const congruent = (a: Term, b: Term) =>
    a.op === b.op && a.children.every((child, i) => labels[child] === labels[b.children[i]!]);
  for (let changed = true; changed; ) {
    changed = false;
    for (const [i, a] of terms.entries()) {
      for (const [j, b] of terms.entries()) if (congruent(a, b) && merge(i, j)) changed = true;
    }
  }
  return labels;
}

function compareGraph({ terms, equations }: Puzzle, labels: readonly number[]): Finding {
  const graph = new EGraph({ proofs: true });
  const ids: NodeId[] = [];
  for (const { op, children } of terms)
    ids.push(
      graph.add(
        op,
        children.map((c) => ids[c]!),
      ),
    );
  for (const [i, [a, b]] of equations.entries()) {
    graph.union(ids[a]!, ids[b]!, "equation");
    if (i % 2 === 0) graph.rebuild();
  }
  graph.rebuild();
  for (const i of ids.keys()) {
    for (let j = 0; j < i; j++) {
      const isEqual = labels[i] === labels[j];
      if (graph.equal(ids[i]!, ids[j]!) !== isEqual) {
        return { kind: "failed", reason: `terms ${i} and ${j}: naively equal is ${isEqual}` };
      }
      const fault = isEqual ? proofFault(graph, ids[i]!, ids[j]!) : undefined;
      if (fault !== undefined) return { kind: "failed", reason: `terms ${i} and ${j}: ${fault}` };
    }
  }
  return passed;
}

function proofFault(graph: EGraph, a: NodeId, b: NodeId): string | undefined {
  const proof = explain(graph, [], a, b);
  if (!proof) return "not explained";
  const result = checkProof(proof, { rules: [], holds: ({ name }) => name === "equation" });
  return result.ok ? undefined : result.fault;
}

type AskZ3 = (puzzle: Puzzle, labels: readonly number[], rng: Rng) => Promise<Finding>;

/** Whether z3 finds the negation of an equality unsatisfiable exactly when we have the equality. */
async function loadZ3(): Promise<AskZ3> {
  const { Context } = await init();
  const { Solver, Function: FunctionSymbol, Sort, Const, Not } = Context("congruence");
  const sort = Sort.declare("T");
  return async ({ terms, equations }, labels, rng) => {
    const values: ReturnType<typeof Const>[] = [];
    for (const { op, children } of terms) {
      const domain = children.map(() => sort);
      const symbol = FunctionSymbol.declare(op, ...domain, sort);
      values.push(
        children.length === 0 ? Const(op, sort) : symbol.call(...children.map((c) => values[c]!)),
      );
    }
    const solver = new Solver();
    for (const [a, b] of equations) solver.add(values[a]!.eq(values[b]!));
    for (let trial = 0; trial < 10; trial++) {
      const [i, j] = [rng.integer(0, terms.length - 1), rng.integer(0, terms.length - 1)];
      solver.push();
      solver.add(Not(values[i]!.eq(values[j]!)));
      const answer = await solver.check();
      solver.pop();
      const isEqual = labels[i] === labels[j];
      if ((answer === "unsat") !== isEqual) {
        return { kind: "failed", reason: `terms ${i} and ${j}: z3 says ${answer}` };
      }
    }
    return passed;
  };
}
