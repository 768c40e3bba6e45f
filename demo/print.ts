/** The demo's findings as text. No printing here: each function returns what main.ts writes. */
import type { RegionRow } from "../bench/sessions/session.ts";
import { type Agreement, agrees } from "./agreement.ts";
import { isReadRight, isSameText, type PageReading } from "./read-pages.ts";

/** Regions of a model that are shown one by one. */
const shownRegions = 12;
const opsColumns = 70;

export function describeReading(reading: PageReading): string {
  const { page, lines, widths, ms } = reading;
  const verdict = isReadRight(reading) ? "right" : "WRONG";
  return [
    `${page.file}: ${page.title}`,
    ...lines.map((line) => `  | ${line}`),
    `  text ${verdict}: ${percent(reading.errorShare)} of the characters misread (allowed ` +
      `${percent(page.errorShare)}), ${lines.length} lines of ${widths[0]} to ${widths[1]} columns, ` +
      `${ms.toFixed(0)} ms\n`,
  ].join("\n");
}

export function describeSameText(ours: PageReading, reference: PageReading): string {
  if (isSameText(ours, reference))
    return `  same text as the reference (${reference.ms.toFixed(0)} ms)\n`;
  const lines = reference.lines.filter((line) => !ours.lines.includes(line));
  return ["  NOT the reference's text, which has", ...lines.map((line) => `  | ${line}`), ""].join(
    "\n",
  );
}

/** One character a window: the higher, the likelier speech. */
export function describeSpeech(probabilities: readonly number[]): string {
  const levels = " .:-=+*#%@";
  const bar = probabilities.map((p) => levels[Math.min(9, Math.floor(p * 10))]).join("");
  return `speech in a synthetic sound, one column each 32 ms:\n  [${bar}]\n`;
}

export function describeWakeWord(name: string, scores: readonly number[]): string {
  const low = Math.min(...scores).toExponential(2);
  const high = Math.max(...scores).toExponential(2);
  return `${name}: ${scores.length} random inputs, scores ${low} to ${high}`;
}

/** The slowest regions, and all others in one row. */
export function describeRegions(model: string, regions: readonly RegionRow[]): string {
  const total = regions.reduce((sum, row) => sum + row.medianNs, 0);
  const slowest = [...regions].sort((a, b) => b.medianNs - a.medianNs);
  const [shown, rest] = [slowest.slice(0, shownRegions), slowest.slice(shownRegions)];
  const restNs = rest.reduce((sum, row) => sum + row.medianNs, 0);
  const others = { region: "others", ops: `${rest.length} regions`, medianNs: restNs };
  const rows = [...shown, ...(rest.length > 0 ? [others] : [])].map((row) => [
    row.region,
    `${(row.medianNs / 1000).toFixed(1)} µs`,
    percent(row.medianNs / total),
    row.ops.length > opsColumns ? `${row.ops.slice(0, opsColumns)}…` : row.ops,
  ]);
  const head = ["region", "median", "share", "computes"];
  return `\n${model}, time by region (${regions.length}):\n${table([head, ...rows])}`;
}

export function describeAgreement(agreements: readonly Agreement[]): string {
  const rows = agreements.map((a) => [
    a.model,
    String(a.runs),
    a.worst.toExponential(2),
    a.tolerance.toExponential(2),
    agrees(a) ? "agrees" : "DISAGREES",
    `${a.candidateMs.toFixed(1)} ms`,
    `${a.referenceMs.toFixed(1)} ms`,
  ]);
  const head = ["model", "runs", "worst difference", "tolerance", "", "ours", "reference"];
  return `\nagreement with the reference:\n${table([head, ...rows])}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Columns aligned left, two spaces apart. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, c) => Math.max(...rows.map((row) => row[c]!.length)));
  return rows
    .map((row) => `  ${row.map((cell, c) => cell.padEnd(widths[c]!)).join("  ")}`.trimEnd())
    .join("\n");
}
