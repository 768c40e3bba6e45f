/**
 * What rewriting does to an ONNX model's graph on a target, and why it is the same graph: for each
 * distinct part the rules that lead to the candidate taken, prices before and after, the runners-up.
 */
import { prepareFor, rewriteFor } from "../../compile.ts";
import type { PartReport, Rewritten } from "../../rewrite/rewrite-model.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { CommandContext, CommandResult } from "../command.ts";
import type { OpenModel } from "../library/open-model.ts";
import { printTable } from "./table.ts";

/** Candidates that are shown of each part and of the whole. */
const shown = 4;

export function explainRewrite(
  { origin, target }: OpenModel,
  context: CommandContext,
): Result<CommandResult> {
  if (!origin) {
    return fail(
      diagnostic("CLI001", "an artifact holds the graph after rewriting alone", {
        at: "--rewrite",
        help: "give the ONNX model that it was made from",
      }),
    );
  }
  const rewritten = rewriteFor(prepareFor(origin.imported, target), target, context.progress, {
    explain: true,
    count: shown,
    wholes: shown,
  });
  if (!rewritten.ok) return rewritten;
  const whole = rewritten.value.importPriceNs();
  if (!whole.ok) return whole;
  const shownWhole = pricesOf(rewritten.value, whole.value);
  const parts = rewritten.value.parts.map(describedPart);
  const text = describe(shownWhole, parts);
  const data = { ...shownWhole, parts };
  return ok({ data, text, target: target.name }, rewritten.warnings);
}

interface WholePrices {
  readonly importPriceNs: number;
  readonly bestPriceNs: number;
  readonly candidatePricesNs: readonly number[];
}

function pricesOf({ best, candidates }: Rewritten, whole: number): WholePrices {
  return {
    importPriceNs: whole,
    bestPriceNs: whole - best.savedNs,
    candidatePricesNs: candidates.map((c) => whole - c.savedNs),
  };
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

function describe(whole: WholePrices, parts: readonly DescribedPart[]): string {
  const { importPriceNs, bestPriceNs, candidatePricesNs } = whole;
  const saved = 100 * (1 - bestPriceNs / importPriceNs);
  return [
    `import ${milliseconds(importPriceNs)} ms, rewritten ${milliseconds(bestPriceNs)} ms (${saved.toFixed(1)} % less) by the target's prices`,
    `candidates for the whole graph, ms: ${candidatePricesNs.map(milliseconds).join(", ")}`,
    "",
    ...parts.map(describePart),
  ].join("\n");
}

function describePart(part: DescribedPart): string {
  const { segments, nodes, eNodes, stop, before, prices, chains, origins } = part;
  const taken = prices.reduce((best, ns, i) => (ns < prices[best]! ? i : best), 0);
  const isBetter = prices[taken] !== undefined && prices[taken] < before;
  const others = prices.filter((_, i) => i !== taken).map(milliseconds);
  const times = segments.length === 1 ? "" : `, ${segments.length} times alike`;
  const head = `nodes ${segments[0]!.start}..${segments[0]!.end - 1}${times} (${origins[0] ?? "no name"} and on): ${nodes} nodes, ${eNodes} e-nodes, ${stop}`;
  const price = isBetter
    ? `  ${milliseconds(before)} -> ${milliseconds(prices[taken]!)} ms; runners-up ${others.join(", ") || "none"}`
    : `  stays at ${milliseconds(before)} ms; candidates ${prices.map(milliseconds).join(", ") || "none"}`;
  const chain = isBetter ? (chains[taken] ?? []) : [];
  const table = printTable(
    ["  rule", "uses"],
    chain.map(({ rule, uses }) => [`  ${rule}`, String(uses)]),
  );
  return [head, price, ...(chain.length > 0 ? [table] : []), ""].join("\n");
}
