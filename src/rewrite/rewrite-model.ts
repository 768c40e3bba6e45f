/**
 * The rewriter: a model in, the cheapest equal model that was found out, with why. The graph is cut
 * into segments (segment.ts), equal segments are saturated once (rewrite-part.ts), the candidates of
 * each are priced as graphs by the injected pricer, then the whole graphs that they make. The import
 * itself is always among the candidates, so nothing comes out that is priced above it. A part whose
 * rules contradict each other stays as it was, with a diagnostic that names the rule.
 */
import type { SaturationReport } from "../egraph/index.ts";
import { rangesOf } from "../graph/counts.ts";
import type { Graph, Model } from "../graph/graph.ts";
import { printGraph } from "../graph/graph-text.ts";
import { isComposite } from "../graph/op-table.ts";
import { eliminateCommonSubexpressions, eliminateDeadCode } from "../graph/transforms/clean.ts";
import { expandComposites } from "../graph/transforms/expand-composites.ts";
import type { IndexRanges } from "../semantics/index-range.ts";
import { type Diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { ChainStep } from "./chain.ts";
import { deriveConstants } from "./derive-constants.ts";
import { scopeOf } from "./facts.ts";
import { defaultPhases } from "./families/index.ts";
import { contextOf, formOf, type Part, partOf, unifyParts } from "./part.ts";
import {
  type OpCost,
  type RulePhase,
  type RuleSet,
  readRuleSet,
  rewritePart,
} from "./rewrite-part.ts";
import { type Segment, segmentGraph } from "./segment.ts";
import { type Replacement, spliceParts } from "./splice.ts";
import { weightsFirst } from "./weights-first.ts";

export interface Pricer {
  /** A guide for one op. */
  op(call: OpCost, ranges: IndexRanges): number;
  /** Nanoseconds of a graph of core ops whose constants are weights. */
  graph(graph: Graph): Result<number>;
}

export interface RewriteOptions {
  readonly pricer: Pricer;
  readonly phases?: readonly RulePhase[];
  /** Candidates of each part. */
  readonly count?: number;
  /** Whole graphs to price beside the import: of the best parts, of the second best, and so on. */
  readonly wholes?: number;
  /**
   * Which of two graphs of one price is taken: composites that were recognised cost what they stand for,
   * and are worth having where the graph goes on to others.
   */
  readonly onTie?: "import" | "rewritten";
  /** Say by which rules each candidate came about: keeps proofs, which takes time. */
  readonly explain?: boolean;
  /** Nodes and units of work for the saturation of one part. */
  readonly budget?: { readonly nodes: number; readonly work: number };
}

/** A graph that computes what the import does. */
export interface Candidate {
  /** Composites stand as they were recognised; constants are weights. */
  readonly model: Model;
  readonly priceNs: number;
}

/** What became of one distinct part. */
export interface PartReport {
  readonly segments: readonly Segment[];
  readonly nodes: number;
  readonly eNodes: number;
  readonly stop: SaturationReport["stop"];
  /** Prices of the part as it was and of its candidates, in the order of extraction. */
  readonly before: number;
  readonly prices: readonly number[];
  /** When asked for: the rules that lead to each candidate. */
  readonly chains: readonly (readonly ChainStep[])[];
  /** Origins of the first of its segments. */
  readonly origins: readonly string[];
  /** Rules that changed the e-graph, with how often. */
  readonly rules: readonly { readonly rule: string; readonly changes: number }[];
}

export interface Rewritten {
  readonly best: Candidate;
  readonly importPriceNs: number;
  /** All candidates, the cheapest first; the import is the last of its price. */
  readonly candidates: readonly Candidate[];
  readonly parts: readonly PartReport[];
}

/** Candidates and budget of a part where nothing else is asked for. */
export const defaultSearch = { count: 2, budget: { nodes: 12_000, work: 3_000_000 } };

const defaults = { ...defaultSearch, wholes: 1, explain: false, onTie: "import" as const };

export function rewriteModel(source: Model, options: RewriteOptions): Result<Rewritten> {
  const model = { ...source, graph: weightsFirst(source.graph) };
  const settings = { phases: defaultPhases, ...defaults, ...options };
  const imported = priceWhole(model, options.pricer);
  if (!imported.ok) return imported;
  const rules = readRuleSet(settings.phases, scopeOf(model.graph));
  if (!rules.ok) return rules;
  const questions = askedParts(model.graph);
  const answered: Answer[] = [];
  const warnings: Diagnostic[] = [];
  for (const question of questions) {
    const answer = answerPart(question, rules.value, settings);
    if (!answer.ok) return answer;
    warnings.push(...answer.warnings.map((d): Diagnostic => ({ ...d, severity: "warning" })));
    answered.push(answer.value);
  }
  const candidates: Candidate[] = [];
  const seen = new Set([printGraph(model.graph)]);
  for (let rank = 0; rank < settings.wholes; rank++) {
    const replacements = answered.flatMap((answer) => replacementsOf(answer, rank));
    if (replacements.length === 0) continue;
    const spliced = spliceParts(model, replacements);
    const text = printGraph(spliced.graph);
    if (seen.has(text)) continue;
    seen.add(text);
    const priced = priceWhole(spliced, options.pricer);
    if (!priced.ok) return priced;
    candidates.push(priced.value);
  }
  candidates.push({ model: source, priceNs: imported.value.priceNs });
  const importPriceNs = imported.value.priceNs;
  // Sorting is stable, and the import stands last.
  const ranked = candidates.sort((a, b) => picoseconds(a.priceNs) - picoseconds(b.priceNs));
  const best = isTaken(ranked[0]!.priceNs, importPriceNs, settings)
    ? ranked[0]!
    : candidates.find((c) => c.model === source)!;
  const parts = answered.map((a) => a.report);
  return ok({ best, importPriceNs, candidates: ranked, parts }, warnings);
}

/** Whether a graph of this price takes the place of another. */
function isTaken(ns: number, before: number, { onTie }: Settings): boolean {
  const saved = picoseconds(before) - picoseconds(ns);
  return onTie === "rewritten" ? saved >= 0 : saved > 0;
}

function picoseconds(ns: number): number {
  return Math.round(ns * 1000);
}

/** The graph with its composites, what weights alone decide as weights: for others to run. */
export function settleConstants(model: Model): Model {
  const { graph, weights } = deriveConstants(model);
  return { graph: eliminateDeadCode(graph), weights };
}

/** Core ops alone, constants as weights, equal nodes once: what the passes behind this one take. */
export function lowerToCore(model: Model): Model {
  const { graph, weights } = deriveConstants(expand(model));
  return { graph: eliminateDeadCode(graph), weights };
}

function expand(model: Model): Model {
  const { graph, weights } = model;
  if (!graph.nodes.some((node) => isComposite(node.op))) return model;
  const expanded = expandComposites(graph);
  const merged = eliminateCommonSubexpressions(expanded.graph);
  const read = (key: string) =>
    merged.constants.get(key) ?? expanded.constants.get(key) ?? weights.read(key);
  return { graph: merged.graph, weights: { read } };
}

function priceWhole(model: Model, pricer: Pricer): Result<Candidate> {
  const priced = pricer.graph(deriveConstants(expand(model)).graph);
  return priced.ok ? ok({ model, priceNs: priced.value }) : priced;
}

/** Segments that ask the same question. */
interface Question {
  readonly origins: readonly string[];
  readonly parts: readonly { readonly segment: Segment; readonly part: Part }[];
}

function askedParts(graph: Graph): readonly Question[] {
  const context = contextOf(graph);
  const byForm = new Map<string, { segment: Segment; part: Part }[]>();
  for (const segment of segmentGraph(graph)) {
    const part = partOf(context, segment);
    const form = formOf(part);
    const known = byForm.get(form);
    if (known) known.push({ segment, part });
    else byForm.set(form, [{ segment, part }]);
  }
  return [...byForm.values()].map((asked) => {
    const parts = unifyParts(asked.map((a) => a.part));
    const { start, end } = asked[0]!.segment;
    const origins = graph.nodes.slice(start, end).flatMap((n) => n.origin ?? []);
    return {
      origins: [...new Set(origins)],
      parts: asked.map(({ segment }, i) => ({ segment, part: parts[i]! })),
    };
  });
}

interface Answer {
  readonly question: Question;
  /** Better than the part as it was, the best first. */
  readonly graphs: readonly Graph[];
  readonly report: PartReport;
}

type Settings = Required<RewriteOptions>;

function answerPart(question: Question, rules: RuleSet, settings: Settings): Result<Answer> {
  const { graph } = question.parts[0]!.part;
  const { pricer } = settings;
  const ranges = rangesOf(graph);
  const rewritten = rewritePart(graph, {
    rules,
    priceOp: (call) => pricer.op(call, ranges),
    count: settings.count,
    budget: settings.budget,
    explain: settings.explain,
  });
  const before = pricePart(graph, pricer);
  if (!before.ok) return before;
  const priced: { readonly graph: Graph; readonly ns: number }[] = [];
  for (const candidate of rewritten.graphs) {
    const price = pricePart(candidate, pricer);
    if (!price.ok) return fail(...price.diagnostics);
    priced.push({ graph: candidate, ns: price.value });
  }
  const better = priced
    .filter((p) => isTaken(p.ns, before.value, settings))
    .sort((a, b) => picoseconds(a.ns) - picoseconds(b.ns));
  const { report, nodes, warnings } = rewritten;
  return ok(
    {
      question,
      graphs: better.map((p) => p.graph),
      report: {
        segments: question.parts.map((p) => p.segment),
        nodes: graph.nodes.length,
        eNodes: nodes,
        stop: report.stop,
        before: before.value,
        prices: priced.map((p) => p.ns),
        chains: rewritten.chains,
        origins: question.origins,
        rules: report.rules
          .filter((r) => r.changes > 0)
          .map(({ rule, changes }) => ({ rule, changes })),
      },
    },
    warnings,
  );
}

function noStore(key: string): never {
  invariant(false, () => `a price reads no weight, but "${key}" was asked for`);
}

function pricePart(graph: Graph, pricer: Pricer): Result<number> {
  const model = { graph, weights: { read: noStore } };
  return pricer.graph(deriveConstants(expand(model)).graph);
}

function replacementsOf({ question, graphs }: Answer, rank: number): readonly Replacement[] {
  const graph = graphs[Math.min(rank, graphs.length - 1)];
  if (!graph) return [];
  return question.parts.map(({ segment, part }) => ({ segment, part, graph }));
}
