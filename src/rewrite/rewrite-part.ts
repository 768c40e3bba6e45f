/**
 * Equality saturation of one part of a graph: its terms with the rules' equalities, then the cheapest
 * graphs that were found by the price of single nodes. The price of whole graphs is asked later, of the
 * few that come out here (rewrite-model.ts).
 */
import {
  defaultBackoff,
  EGraph,
  type NodeId,
  type Phase,
  type SaturationReport,
  saturate,
  Vocabulary,
} from "../egraph/index.ts";
import type { AnyAttrs } from "../graph/attr-schema.ts";
import type { Graph, OpKind, TensorType, ValueId } from "../graph/graph.ts";
import { type Diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { type ChainStep, chainOf, type Original } from "./chain.ts";
import { chooseTerms } from "./choose.ts";
import { compileRows } from "./compile-rows.ts";
import { extractedGraph } from "./extracted-graph.ts";
import { type FactScope, type Facts, factsAnalysis } from "./facts.ts";
import type { RuleRow } from "./rule-row.ts";
import { addGraph, callOf, constantOp, leafOp, type ReadElements } from "./terms.ts";

/** What a single op costs by itself, in nanoseconds: a guide for extraction. */
export interface OpCost {
  readonly op: OpKind;
  readonly attrs: AnyAttrs;
  readonly inputs: readonly TensorType[];
  readonly output: TensorType;
}

export type PriceOp = (call: OpCost) => number;

export interface RulePhase {
  readonly name: string;
  readonly rules: readonly RuleRow[];
  readonly iterations: number;
}

/** What all parts of a model share. */
export interface RuleSet {
  readonly scope: FactScope;
  readonly phases: readonly Phase<Facts>[];
  /** Interned names, so that searches are compiled once. */
  readonly vocabulary: Vocabulary;
}

export interface PartOptions {
  readonly rules: RuleSet;
  readonly priceOp: PriceOp;
  /** Graphs to give. */
  readonly count: number;
  readonly budget: { readonly nodes: number; readonly work: number };
  /** Keep reasons and say by which rules the candidates came about. */
  readonly explain?: boolean;
  /** Elements of weights, for rules that look at them. */
  readonly read?: ReadElements;
}

/** Sums of the prices of single nodes, in picoseconds: of the best graph, and what no graph can be below. */
export interface ExtractionReport {
  readonly cost: number;
  readonly lowerBound: number;
}

export interface PartResult {
  /** Distinct graphs, the cheapest by the guide first; none where saturation failed. */
  readonly graphs: readonly Graph[];
  /** For each graph, when asked for, the rules that lead from the part to it. */
  readonly chains: readonly (readonly ChainStep[])[];
  readonly report: SaturationReport;
  readonly nodes: number;
  /** Absent where saturation failed. */
  readonly extraction?: ExtractionReport;
  readonly warnings: readonly Diagnostic[];
}

export function rewritePart(graph: Graph, options: PartOptions): PartResult {
  const { scope, phases, vocabulary } = options.rules;
  const proofs = options.explain === true;
  const egraph = new EGraph<Facts>({ analysis: factsAnalysis(scope), vocabulary, proofs });
  const ids = addGraph(egraph, graph, options.read);
  const given = egraph.store.used;
  const report = saturate(egraph, phases, { budget: options.budget });
  const nodes = egraph.nodeCount;
  if (egraph.inconsistency) {
    return { graphs: [], chains: [], report, nodes, warnings: report.diagnostics };
  }
  const roots = graph.outputs.map((id) => ids.get(id)!);
  const price = guide(egraph, options.priceOp);
  const best = chooseTerms(egraph, roots, { price, count: options.count, work: extractionWork });
  // The guide is rough: this one changes only what it sees to be worth it.
  const careful = (node: NodeId) =>
    node < given ? Math.round(price(node) * keptShare) : price(node);
  const kept = chooseTerms(egraph, roots, { price: careful, count: 1, work: extractionWork });
  const { cost, lowerBound } = best;
  const choices = [...best.choices, ...kept.choices];
  const graphs = choices.map((chosen) => extractedGraph({ graph, egraph, ids }, chosen));
  const chains = proofs
    ? choices.map((chosen) => chainOf(egraph, originalsOf(graph, ids), roots, { chosen, phases }))
    : [];
  // A budget that ends exploration leaves what was found, which holds.
  const warnings = report.diagnostics;
  return { graphs, chains, report, nodes, extraction: { cost, lowerBound }, warnings };
}

function originalsOf(graph: Graph, ids: ReadonlyMap<ValueId, NodeId>): readonly Original[] {
  const origins = new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n.origin])));
  return [...ids].map(([value, node]) => ({ node, origin: origins.get(value) }));
}

/** What nodes of the part itself cost of their price where little is to be changed. */
const keptShare = 0.8;

/** Effort of choosing: nodes looked at. */
const extractionWork = 400_000;

export function readRuleSet(phases: readonly RulePhase[], scope: FactScope): Result<RuleSet> {
  const compiled = compilePhases(phases, scope);
  if (!compiled.ok) return compiled;
  return ok({ scope, phases: compiled.value, vocabulary: new Vocabulary() });
}

export function compilePhases(
  phases: readonly RulePhase[],
  scope: FactScope,
): Result<readonly Phase<Facts>[]> {
  const made: Phase<Facts>[] = [];
  for (const { name, rules, iterations } of phases) {
    const compiled = compileRows(rules, scope);
    if (!compiled.ok) return fail(...compiled.diagnostics);
    made.push({ name, rules: compiled.value, iterations, backoff: defaultBackoff });
  }
  return ok(made);
}

/** Integer picoseconds of a node. */
function guide(egraph: EGraph<Facts>, priceOp: PriceOp): (node: NodeId) => number {
  const known = new Map<NodeId, number>();
  const priceOf = (node: NodeId): number => {
    const op = egraph.opName(node);
    if (op === leafOp || op === constantOp) return 0;
    const inputs = egraph.children(node).map((child) => egraph.data(child).type!);
    const value = egraph.payloadValue(node);
    const call = callOf(op, egraph.vocabulary.payloadKey(egraph.payload(node)), value)!;
    return Math.round(priceOp({ ...call, inputs, output: egraph.data(node).type! }) * 1000);
  };
  return (node) => {
    const price = known.get(node) ?? priceOf(node);
    known.set(node, price);
    return price;
  };
}
