/**
 * What rewriting did to an ONNX model's graph on a target, and why it is the same graph: the graphs that the
 * search was given with their prices as scheduled, and for each distinct part the rules that lead to the
 * candidate taken, prices before and after, the runners-up. Prices of parts are those that rewriting goes by.
 * A model that runs in stages is rewritten stage by stage, and so it is told.
 */
import type { Competitor } from "../../compile.ts";
import type { Graph } from "../../graph/graph.ts";
import type { PartReport } from "../../rewrite/rewrite-model.ts";
import type { ExtractionReport } from "../../rewrite/rewrite-part.ts";
import { fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Target } from "../../target/target.ts";
import type { CommandContext, CommandResult } from "../command.ts";
import { findTarget } from "../library/choose-target.ts";
import { importModel, type OpenModel, openModel } from "../library/open-model.ts";
import { type OpenStages, openStages } from "../library/stages.ts";
import { type OpenArgs, readRequest } from "./open.ts";
import { printTable } from "./table.ts";

export function explainRewriting(
  args: Omit<OpenArgs, "rewrite">,
  context: CommandContext,
): Result<CommandResult> {
  const request = readRequest({ ...args, rewrite: "on", explainRewrite: true }, context);
  if (!request.ok) return request;
  const { source, options } = request.value;
  const opened = openModel(source, options);
  if (opened.ok) return ok(explainRewrite(opened.value), opened.warnings);
  if (opened.diagnostics.some((d) => d.code !== "SCH015")) return opened;
  const target = findTarget(args.target);
  if (!target.ok) return target;
  const imported = importModel(source, options);
  if (!imported.ok) return imported;
  const stages = openStages(imported.value, target.value, options);
  if (!stages) return fail(...opened.diagnostics);
  if (!stages.ok) return stages;
  const warnings = [...target.warnings, ...imported.warnings, ...stages.warnings];
  return ok(explainStages(stages.value, target.value), warnings);
}

function explainStages({ stages }: OpenStages, target: Target): CommandResult {
  const told = stages.map(({ graph, opened }, i) =>
    opened
      ? explainStage(graph, explainRewrite(opened), i + 1)
      : { data: { op: graph.nodes[0]!.op, origin: graph.nodes[0]!.origin } },
  );
  const asTheyAre = stages.filter((s) => !s.opened).map((s) => s.graph.nodes[0]!.op);
  const text = [
    `data decide sizes: ${stages.length} stages run one after another, each rewritten by itself; ${asTheyAre.length} are as they are (${[...new Set(asTheyAre)].join(", ")})`,
    ...told.flatMap((t) => ("text" in t ? [t.text] : [])),
  ].join("\n\n");
  return { data: { stages: told.map((t) => t.data) }, text, target: target.name };
}

function explainStage({ nodes }: Graph, { data, text }: CommandResult, at: number) {
  return { data, text: `stage ${at}, ${nodes.length} nodes:\n${text}` };
}

function explainRewrite({ origin, target }: OpenModel): CommandResult {
  const compiled = origin?.compiled;
  invariant(compiled?.rewritten, () => "the model was not rewritten");
  const { competitors, rewritten, threads } = compiled;
  const parts = rewritten.parts.map(describedPart);
  const rank = competitors.find((c) => c.isKept)!.rank;
  const described = parts.map((part) => describePart(part, rank));
  const pricedFor = target.blocks ? "as scheduled" : `as scheduled for ${threads} threads`;
  const onOne = target.blocks ? "" : " on one core";
  const head = [
    ...describeGraphs(competitors, pricedFor),
    `parts, each by itself${onOne} at the price that rewriting goes by, before it is scheduled:`,
  ];
  const text = [...head, "", ...described].join("\n");
  const importPriceNs = competitors.at(-1)!.estimateNs;
  const keptPriceNs = competitors.find((c) => c.isKept)!.estimateNs;
  const data = { importPriceNs, keptPriceNs, graphs: competitors, parts };
  return { data, text, target: target.name };
}

function describeGraphs(competitors: readonly Competitor[], pricedFor: string): readonly string[] {
  const others = competitors.slice(0, -1);
  const unchanged = competitors.at(-1)!;
  const kept = competitors.find((c) => c.isKept)!;
  const [before, after] = [unchanged.estimateNs!, kept.estimateNs!];
  const saved = `${(100 * (1 - after / before)).toFixed(1)} % less`;
  const outcome =
    kept === unchanged
      ? `import ${milliseconds(before)} ms (${pricedFor}), which is kept: no other graph is cheaper by more than prices tell apart`
      : `import ${milliseconds(before)} ms, rewritten ${milliseconds(after)} ms (${saved}), ${pricedFor}`;
  const listed = others.map(({ estimateNs, isKept, filtered }) => {
    const price = estimateNs === undefined ? "refused" : milliseconds(estimateNs);
    const how = filtered === undefined ? "" : `, ${filtered} convolutions by Winograd's filtering`;
    return isKept ? `${price} (kept${how})` : `${price}${how}`;
  });
  return [outcome, `graphs beside the import, ms: ${listed.join(", ") || "none"}`];
}

/** A part with prices in place of differences. */
type DescribedPart = Omit<PartReport, "priceNs" | "savedNs"> & {
  readonly before: number;
  readonly prices: readonly number[];
};

function describedPart({ priceNs, savedNs, ...rest }: PartReport): DescribedPart {
  const before = priceNs();
  return { ...rest, before, prices: savedNs.map((saved) => before - saved) };
}

const milliseconds = (ns: number): string => (ns / 1e6).toFixed(4);

/** The candidate of a part that the kept graph has; undefined where it has the part as it was. */
function takenOf({ before, prices }: DescribedPart, rank: number | undefined): number | undefined {
  if (rank === undefined) return undefined;
  const better = [...prices.keys()].filter((i) => picoseconds(prices[i]!) < picoseconds(before));
  better.sort((a, b) => picoseconds(prices[a]!) - picoseconds(prices[b]!));
  return better[Math.min(rank, better.length - 1)];
}

const picoseconds = (ns: number): number => Math.round(1000 * ns);

function describePart(part: DescribedPart, rank: number | undefined): string {
  const { segments, nodes, eNodes, stop, extraction, before, prices, chains, origins } = part;
  const taken = takenOf(part, rank);
  const others = prices.filter((_, i) => i !== taken).map(milliseconds);
  const times = segments.length === 1 ? "" : `, ${segments.length} times alike`;
  const head = `nodes ${segments[0]!.start}..${segments[0]!.end - 1}${times} (${origins[0] ?? "no name"} and on): ${nodes} nodes, ${eNodes} e-nodes, ${stop}`;
  const price =
    taken !== undefined
      ? `  ${milliseconds(before)} -> ${milliseconds(prices[taken]!)} ms; runners-up ${others.join(", ") || "none"}`
      : `  stays at ${milliseconds(before)} ms; candidates ${others.join(", ") || "none"}`;
  // Of a part that stays: how the cheapest of the others came about.
  const shown = taken ?? cheapestOf(prices);
  const chain = shown === undefined ? [] : (chains[shown] ?? []);
  const title =
    taken === undefined ? `  rule (to ${milliseconds(prices[shown ?? 0] ?? 0)})` : "  rule";
  const table = printTable(
    [title, "uses", "first for"],
    chain.map(({ rule, uses, at = "" }) => [`  ${rule}`, String(uses), at]),
    [1],
  );
  const found = extraction === undefined ? [] : [describeExtraction(extraction)];
  return [head, ...found, price, ...(chain.length > 0 ? [table] : []), ""].join("\n");
}

function describeExtraction({ cost, lowerBound }: ExtractionReport): string {
  const gap = cost === lowerBound ? 0 : (cost - lowerBound) / cost;
  const [found, least] = [cost, lowerBound].map((ps) => milliseconds(ps / 1000));
  return `  cheapest term ${found} ms by prices of single nodes, none is below ${least} (gap ${(100 * gap).toFixed(1)} %)`;
}

function cheapestOf(prices: readonly number[]): number | undefined {
  return prices.length === 0 ? undefined : prices.indexOf(Math.min(...prices));
}
