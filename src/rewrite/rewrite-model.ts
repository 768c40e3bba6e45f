/**
 * The rewriter: a model in, the cheapest equal model that was found out, with why. The graph is cut
 * into segments (segment.ts), equal segments are saturated once (rewrite-part.ts), the candidates of
 * each are priced as graphs by the injected pricer, then the whole graphs that they make. The import
 * itself is always among the candidates, so nothing comes out that is priced above it. A part whose
 * rules contradict each other stays as it was, and with rules that cannot be used all of the graph does,
 * with a diagnostic that names the rule.
 */
import type { SaturationReport } from "../egraph/index.ts";
import { rangesOf } from "../graph/counts.ts";
import type { Graph, Model } from "../graph/graph.ts";
import { printGraph } from "../graph/graph-text.ts";
import { eliminateDeadCode } from "../graph/transforms/clean.ts";
import { type Diagnostic, ok, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { ChainStep } from "./chain.ts";
import { deriveConstants } from "./derive-constants.ts";
import { scopeOf } from "./facts.ts";
import { defaultPhases } from "./families/index.ts";
import { filterConvolutions } from "./filter-convolutions.ts";
import { withOwnRules } from "./own-rules.ts";
import { askParts, type Part, type PartQuestion } from "./part.ts";
import {
  type ExtractionReport,
  type RulePhase,
  type RuleSet,
  readRuleSet,
  rewritePart,
} from "./rewrite-part.ts";
import type { RuleRow } from "./rule-row.ts";
import {
  countRegions,
  expand,
  type Pricer,
  picoseconds,
  type RegionCounts,
  savedNs,
  totalNs,
} from "./savings.ts";
import type { Segment } from "./segment.ts";
import { type Replacement, spliceParts } from "./splice.ts";
import type { ReadElements } from "./terms.ts";
import { weightsFirst } from "./weights-first.ts";

export type { Pricer } from "./savings.ts";

export interface RewriteOptions {
  readonly pricer: Pricer;
  readonly phases?: readonly RulePhase[];
  /** Further rules that nobody has proved yet (own-rules.ts). */
  readonly ownRules?: readonly RuleRow[];
  /** Candidates of each part. */
  readonly count?: number;
  /** Whole graphs to price beside the import: of the best parts, of the second best, and so on. */
  readonly wholes?: number;
  /**
   * Which of two graphs of one price is taken: composites that were recognised cost what they stand for,
   * and are worth having where the graph goes on to others.
   */
  readonly onTie?: "import" | "rewritten";
  /**
   * Whether whole graphs are priced, with the regions that reach across the bounds of parts. Without, the
   * savings of the parts are added up: for who prices whole graphs anyway.
   */
  readonly wholePrices?: boolean;
  /** Say by which rules each candidate came about: keeps proofs, which takes time. */
  readonly explain?: boolean;
  /** Whether convolutions may become Winograd's filterings: a whole graph more, which is priced alone. */
  readonly filters?: boolean;
  /** Nodes and units of work for the saturation of one part. */
  readonly budget?: { readonly nodes: number; readonly work: number };
}

/**
 * Graphs that the search is given beside the import, and candidates that their parts are made of. All graphs
 * are scheduled and priced whole behind rewriting.
 */
export const forSearch = { wholes: 3, count: 2, wholePrices: false };

/** A graph that computes what the import does. */
export interface Candidate {
  /** Composites stand as they were recognised; constants are weights. */
  readonly model: Model;
  /** By how much it is priced below the import; 0 for the import itself. */
  readonly savedNs: number;
  /** Which of each part's candidates it is made of, 0 the best; a part with fewer gives its last. Not of the import. */
  readonly rank?: number;
  /**
   * What rules that approximate may have added up to, relative to the largest element of an output: the
   * bounds of all their uses. 0 where there are none; how an error grows on its way is for the verdict.
   */
  readonly errorBound: number;
  /** Convolutions that are computed by Winograd's filtering (filter-convolutions.ts); absent: none. */
  readonly filtered?: number;
}

/** What became of one distinct part. */
export interface PartReport {
  readonly segments: readonly Segment[];
  readonly nodes: number;
  readonly eNodes: number;
  readonly stop: SaturationReport["stop"];
  /** How near extraction came to the best term that saturation found; absent where rules contradict each other. */
  readonly extraction?: ExtractionReport;
  /** The price of the part as it was: asked for where it is shown. */
  readonly priceNs: () => number;
  /** By how much each candidate of other regions is priced below it, in the order of extraction. */
  readonly savedNs: readonly number[];
  /** When asked for: the rules that lead to each candidate. */
  readonly chains: readonly (readonly ChainStep[])[];
  /** Origins of the first of its segments. */
  readonly origins: readonly string[];
  /** Rules that changed the e-graph, with how often. */
  readonly rules: readonly { readonly rule: string; readonly changes: number }[];
}

export interface Rewritten {
  readonly best: Candidate;
  /** The price of the import: no decision needs it, so it is worked out where it is shown. */
  readonly importPriceNs: () => Result<number>;
  /** All candidates, the cheapest first; the import is the last of its price. */
  readonly candidates: readonly Candidate[];
  readonly parts: readonly PartReport[];
}

/** Candidates and budget of a part where nothing else is asked for. */
export const defaultSearch = { count: 1, budget: { nodes: 12_000, work: 3_000_000 } };

const defaults = {
  ...defaultSearch,
  ownRules: [],
  wholes: 1,
  explain: false,
  onTie: "import" as const,
  wholePrices: true,
  filters: false,
};

export function rewriteModel(source: Model, options: RewriteOptions): Result<Rewritten> {
  const settings = { phases: defaultPhases, ...defaults, ...options };
  const phases = withOwnRules(settings.phases, settings.ownRules);
  if (!phases.ok) return unharmed(source, settings, phases.diagnostics);
  const model = { ...source, graph: weightsFirst(source.graph) };
  const rules = readRuleSet(phases.value, scopeOf(model.graph));
  if (!rules.ok) return unharmed(source, settings, rules.diagnostics);
  const bounds = boundsOf(phases.value);
  const answers: Answer[] = [];
  const warnings = new Map<string, Diagnostic>();
  const warn = (found: Diagnostic): void => {
    warnings.set(`${found.code} ${found.at}`, asWarning(found));
  };
  for (const question of askParts(model.graph)) {
    const asked = { ...settings, bounds, read: readerFor(question, model) };
    const answer = answerPart(question, rules.value, asked);
    if (!answer.ok) return answer;
    answer.warnings.forEach(warn);
    answers.push(answer.value);
  }
  const others = wholeGraphs(model, answers, settings);
  if (!others.ok) return others;
  const unchanged = importItself(source);
  // Sorting is stable, and the import stands last.
  const bySaving = (a: Candidate, b: Candidate): number =>
    picoseconds(b.savedNs) - picoseconds(a.savedNs);
  const written = [...others.value, unchanged].sort(bySaving);
  const candidates = [...withFilters(written[0]!, settings), ...written].sort(bySaving);
  const [first] = candidates as [Candidate, ...Candidate[]];
  const found: Rewritten = {
    best: isTaken(first.savedNs, settings) ? first : unchanged,
    importPriceNs: () => priceOf(model, settings),
    candidates,
    parts: answers.map((a) => a.report),
  };
  return ok(found, [...warnings.values()]);
}

/** A candidate with its convolutions filtered, if that is cheaper. */
function withFilters(from: Candidate, { filters, pricer }: Settings): readonly Candidate[] {
  const found = filters ? filterConvolutions(from.model, pricer) : undefined;
  if (!found) return [];
  const { model, count, savedNs } = found;
  return [{ ...from, model, filtered: count, savedNs: from.savedNs + savedNs }];
}

/** The import, with what is wrong with the rules. */
function unharmed(
  source: Model,
  settings: Settings,
  faults: readonly Diagnostic[],
): Result<Rewritten> {
  const best = importItself(source);
  const importPriceNs = () => priceOf(source, settings);
  return ok({ best, importPriceNs, candidates: [best], parts: [] }, faults.map(asWarning));
}

function importItself(model: Model): Candidate {
  return { model, savedNs: 0, errorBound: 0 };
}

function priceOf(model: Model, { pricer }: Settings): Result<number> {
  const all = countRegions(model, pricer);
  return all.ok ? ok(totalNs(all.value, pricer)) : all;
}

function asWarning(found: Diagnostic): Diagnostic {
  return { ...found, severity: "warning" };
}

/** Graphs of the best of each part, of the second best, and so on. */
function wholeGraphs(
  model: Model,
  answers: readonly Answer[],
  settings: Settings,
): Result<readonly Candidate[]> {
  const candidates: Candidate[] = [];
  const seen = new Set([printGraph(model.graph)]);
  const most = Math.max(0, ...answers.map(({ graphs }) => graphs.length));
  // Beyond the candidates of all parts, graphs repeat.
  for (let rank = 0; rank < Math.min(settings.wholes, most); rank++) {
    const replacements = answers.flatMap((answer) => replacementsOf(answer, rank));
    const spliced = spliceParts(model, replacements);
    const text = printGraph(spliced.graph);
    if (seen.has(text)) continue;
    seen.add(text);
    const saved = settings.wholePrices
      ? savedByWhole(model, spliced, settings.pricer)
      : ok(sumOfParts(answers, rank, "savings"));
    if (!saved.ok) return saved;
    const errorBound = sumOfParts(answers, rank, "errors");
    candidates.push({ model: spliced, savedNs: saved.value, rank, errorBound });
  }
  return ok(candidates);
}

function savedByWhole(before: Model, after: Model, pricer: Pricer): Result<number> {
  const imported = countRegions(before, pricer);
  if (!imported.ok) return imported;
  const counts = countRegions(after, pricer);
  return counts.ok ? ok(savedNs(imported.value, counts.value, pricer)) : counts;
}

/** Over all segments, of the candidates of one rank or the last that there is. */
function sumOfParts(answers: readonly Answer[], rank: number, what: "savings" | "errors"): number {
  return answers.reduce((sum, { question, [what]: list }) => {
    const each = list[Math.min(rank, list.length - 1)] ?? 0;
    return sum + each * question.segments.length;
  }, 0);
}

/** Whether a graph that is priced below another by so much takes its place. */
function isTaken(ns: number, { onTie }: Settings): boolean {
  const saved = picoseconds(ns);
  return onTie === "rewritten" ? saved >= 0 : saved > 0;
}

/** The graph with its composites, what weights alone decide as weights: for others to run. */
export function settleConstants(model: Model): Model {
  const { graph, weights } = deriveConstants(model);
  return { graph: eliminateDeadCode(graph), weights };
}

/** Core ops alone, constants as weights, equal nodes once: what the passes behind this one take. */
export function lowerToCore(model: Model): Model {
  return settleConstants(expand(model));
}

interface Answer {
  readonly question: PartQuestion;
  /** Better than the part as it was, the best first. */
  readonly graphs: readonly Graph[];
  /** By how much each of these is cheaper, and its error bound. */
  readonly savings: readonly number[];
  readonly errors: readonly number[];
  readonly report: PartReport;
}

type Settings = Required<RewriteOptions>;

/** Error bounds by rule, of the rules that approximate. */
type Bounds = ReadonlyMap<string, number>;

function boundsOf(phases: readonly RulePhase[]): Bounds {
  const rules = phases.flatMap((phase) => phase.rules);
  return new Map(rules.flatMap((r) => (r.errorBound ? [[r.name, r.errorBound] as const] : [])));
}

function answerPart(
  question: PartQuestion,
  rules: RuleSet,
  settings: Settings & { readonly bounds: Bounds; readonly read: ReadElements },
): Result<Answer> {
  const { graph } = question.parts[0]!;
  const { pricer, bounds } = settings;
  const ranges = rangesOf(graph);
  const rewritten = rewritePart(graph, {
    rules,
    priceOp: (call) => pricer.op(call, ranges),
    count: settings.count,
    budget: settings.budget,
    // Which rules a candidate owes itself to is what its error bound is made of.
    explain: settings.explain || bounds.size > 0,
    read: settings.read,
  });
  const before = countRegions(withoutStore(graph), pricer);
  if (!before.ok) return before;
  const priced: PricedGraph[] = [];
  const unpriced: Diagnostic[] = [];
  const known = new Set([textOfCounts(before.value)]);
  for (const [i, candidate] of rewritten.graphs.entries()) {
    const after = countRegions(withoutStore(candidate), pricer);
    // What cannot be priced is left out: the part itself is still there.
    if (!after.ok) {
      unpriced.push(...after.diagnostics);
      continue;
    }
    // The same regions in another order are no other candidate, but composites may be worth having.
    const text = textOfCounts(after.value);
    if (settings.onTie === "import" && known.has(text)) continue;
    known.add(text);
    const saved = savedNs(before.value, after.value, pricer);
    const chain = rewritten.chains[i] ?? [];
    priced.push({ graph: candidate, saved, chain, error: boundOf(chain, bounds) });
  }
  const better = priced
    .filter((p) => isTaken(p.saved, settings))
    .sort((a, b) => picoseconds(b.saved) - picoseconds(a.saved));
  const { report, nodes, warnings, extraction } = rewritten;
  const told: PartReport = {
    segments: question.segments,
    nodes: graph.nodes.length,
    eNodes: nodes,
    stop: report.stop,
    ...(extraction && { extraction }),
    priceNs: () => totalNs(before.value, pricer),
    savedNs: priced.map((p) => p.saved),
    chains: rewritten.chains.length > 0 ? priced.map((p) => p.chain) : [],
    origins: question.origins,
    rules: report.rules
      .filter((r) => r.changes > 0)
      .map(({ rule, changes }) => ({ rule, changes })),
  };
  const answer: Answer = {
    question,
    graphs: better.map((p) => p.graph),
    savings: better.map((p) => p.saved),
    errors: better.map((p) => p.error),
    report: told,
  };
  return ok(answer, [...warnings, ...unpriced]);
}

function textOfCounts(counts: RegionCounts): string {
  return [...counts]
    .map(([name, count]) => `${count} ${name}`)
    .sort()
    .join("\n");
}

/** A candidate of a part. */
interface PricedGraph {
  readonly graph: Graph;
  readonly saved: number;
  readonly error: number;
  readonly chain: readonly ChainStep[];
}

function boundOf(chain: readonly ChainStep[], bounds: Bounds): number {
  return chain.reduce((sum, { rule, uses }) => sum + uses * (bounds.get(rule) ?? 0), 0);
}

function noStore(key: string): never {
  invariant(false, () => `a price reads no weight, but "${key}" was asked for`);
}

function withoutStore(graph: Graph): Model {
  return { graph, weights: { read: noStore } };
}

/** Elements of a part's weights, where it stands for one segment alone: others have other elements. */
function readerFor({ parts }: PartQuestion, { graph, weights }: Model): ReadElements {
  const [part, ...others] = parts as readonly [Part, ...Part[]];
  if (others.length > 0) return () => undefined;
  return (value) => {
    const own = part.graph.weights.find((w) => w.value === value)?.source;
    const outer = own?.kind === "stored" ? part.weights.get(own.key) : undefined;
    const source = graph.weights.find((w) => w.value === outer)?.source;
    if (!source) return undefined;
    return () => (source.kind === "inline" ? source.tensor : weights.read(source.key));
  };
}

function replacementsOf({ question, graphs }: Answer, rank: number): readonly Replacement[] {
  const graph = graphs[Math.min(rank, graphs.length - 1)];
  if (!graph) return [];
  const { segments, parts } = question;
  const first = segments[0]!;
  return segments.map((segment, i) => ({ segment, part: parts[i]!, graph, first }));
}
