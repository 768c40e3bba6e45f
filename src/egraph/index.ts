/**
 * Equality saturation, usable alone: this folder knows terms, rules and costs, nothing of tensors.
 *
 * ```ts
 * const rules = readRules([
 *   { name: "commute", left: "(+ ?a ?b)", right: "(+ ?b ?a)" },
 *   { name: "zero", left: "(* ?a 0)", right: "0", when: (m) => m.data("a").isFinite },
 *   { name: "compose", left: "(transpose[?p] (transpose[?q] ?x))", right: "(transpose[?r] ?x)",
 *     compute: { r: (m) => payloadOf(m.value("p"), m.value("q")) } },
 *   { name: "merge", left: ["(matmul ?x ?a)", "(matmul ?x ?b)"], right: [ … one for each left … ] },
 *   { name: "widen", left: "(concat[?axis] ...)", right: (match, build) => build.add(…) },
 * ]);                                                     // Result: EGR001, EGR002 name the rule
 * const graph = new EGraph({ analysis, proofs: true });
 * const x = graph.add("input", [], "x");                  // op, children, payload (key or {key, value})
 * const y = graph.add("split", [x], { key: "axis=1", value: { axis: 1 } });
 * const first = graph.add("out", [y], "0");               // several results: a projection node each
 * const report = saturate(graph, [{ name: "explore", rules: rules.value, backoff: defaultBackoff }],
 *   { budget: { nodes: 50_000, work: 10_000_000 } });     // report.stop, .diagnostics, .rules
 * graph.equal(first, x); graph.nodes(x); graph.data(x);   // read the classes
 *
 * const why = explain(graph, rules.value, first, x);       // with `proofs: true`: a Proof
 * checkProof(why, { rules: rules.value });                // the judge: ok, or the fault
 * flattenProof(why);                                      // single rewrites, for people
 *
 * const { value } = problemOf(graph, [first], (node) => price(node));   // Result: EGR005
 * const best = extractDag(value.problem);                 // choice, dagCost, lowerBound, gap
 * const some = extractDistinct(value.problem, 8);         // k different terms, cheapest first
 * value.nodeIds[best.choice[value.classOf.get(graph.find(first))]]      // the chosen e-node of a class
 * ```
 *
 * - Nodes have any number of children and a payload: any value under a key; equal keys are one payload.
 *   A class is named by the id of any of its nodes; `find` gives the canonical one.
 * - An analysis (analysis.ts) keeps a lattice value a class: shape, dtype, constant, range. `make` from
 *   a node, `join` over a class, `modify` to add what is known. Contradictions stop with EGR003.
 * - Conditions and built right sides get a `Match` (match.ts): names, payload values, data. What is
 *   written must be a function of those: then searching only news is exact.
 * - The same input gives the same graph, ids and report on every machine.
 * - Budgets are work units; a stop by one is EGR004 and names the busiest rule.
 */
export { type Analysis, Contradiction, noAnalysis } from "./analysis.ts";
export { type BackoffOptions, defaultBackoff } from "./backoff.ts";
export {
  type CheckableRule,
  type CheckOptions,
  type CheckResult,
  checkProof,
  replaySteps,
} from "./check-proof.ts";
export { EGraph, type EGraphOptions, type Inconsistency } from "./e-graph.ts";
export { explain } from "./explain.ts";
export { type Evaluation, evaluateChoice } from "./extract/evaluate.ts";
export {
  type Extraction,
  type ExtractionResult,
  type ExtractOptions,
  extractDag,
  extractDistinct,
  extractTree,
} from "./extract/extract.ts";
export { chooseGreedily } from "./extract/greedy-dag.ts";
export type { MilpAnswer, SolveMilp } from "./extract/milp.ts";
export {
  type Choice,
  type ExtractionProblem,
  type GraphProblem,
  makeProblem,
  type ProblemNode,
  problemOf,
} from "./extract/problem.ts";
export type { Builder, Match } from "./match.ts";
export type { NodeId } from "./node-store.ts";
export {
  classNames,
  literalOp,
  type NodePattern,
  type Pattern,
  type PayloadPattern,
  parsePattern,
  payloadNames,
  printPattern,
  term,
  type VariablePattern,
  variable,
} from "./pattern.ts";
export {
  flattenProof,
  type Lemma,
  type Proof,
  type ProofTerm,
  printTerm,
  type RewriteStep,
  type RuleLemma,
  type StatedLemma,
} from "./proof.ts";
export { type Build, bothWays, type Rule, type RuleText, readRules } from "./rule.ts";
export {
  type Budget,
  defaultBudget,
  type IterationReport,
  type Phase,
  type RuleReport,
  type SaturateOptions,
  type SaturationReport,
  type StopReason,
  saturate,
} from "./saturate.ts";
export { addPattern } from "./term.ts";
export { type HeadId, type OpId, type Payload, type PayloadId, Vocabulary } from "./vocabulary.ts";
