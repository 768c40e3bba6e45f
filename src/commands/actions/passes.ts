/** Passes over memory that are left in a program, and why, as `explain` prints them. */
import type { SearchReport } from "../../artifact/artifact.ts";
import { printTable } from "./table.ts";

type Pass = NonNullable<SearchReport["passes"]>[number];
type Reason = Pass["why"][number];

/** @param region only that one; absent: all */
export function passesOf({ passes = [] }: SearchReport, region?: string): readonly Pass[] {
  return region === undefined ? passes : passes.filter((p) => p.region === region);
}

/** The longest first. Nothing of an artifact that says nothing of them. */
export function printPasses(search: SearchReport, region?: string): readonly string[] {
  if (!search.passes) return [];
  const shown = [...passesOf(search, region)].sort((a, b) => b.estimateNs - a.estimateNs);
  if (shown.length === 0) return region === undefined ? ["", "no pass over memory is left"] : [];
  return [
    "",
    ...(region === undefined ? [summaryOf(search, shown)] : []),
    printTable(
      ["pass", "kind", "KB", "estimate ms", "share"],
      shown.map((p) => [
        p.region,
        p.kind,
        (p.bytes / 1024).toFixed(1),
        ms(p.estimateNs),
        shareOf(p.estimateNs, search),
      ]),
    ),
    "",
    ...shown.flatMap((p) => [`${p.region}, ${p.kind}:`, ...reasonsOf(p).map((r) => `  ${r}`)]),
  ];
}

const ms = (ns: number): string => (ns / 1e6).toFixed(4);

function shareOf(ns: number, { regions }: SearchReport): string {
  const all = regions.reduce((sum, r) => sum + r.estimateNs, 0);
  return all === 0 ? "-" : `${((100 * ns) / all).toFixed(1)} %`;
}

function summaryOf(search: SearchReport, shown: readonly Pass[]): string {
  const bytes = shown.reduce((sum, p) => sum + p.bytes, 0);
  const ns = shown.reduce((sum, p) => sum + p.estimateNs, 0);
  return (
    `passes over memory that are left: ${shown.length}, ${(bytes / 2 ** 20).toFixed(2)} MB, ` +
    `${ms(ns)} ms as priced, ${shareOf(ns, search)} of all regions`
  );
}

/** Neighbours with one reason in one line. */
function reasonsOf({ why }: Pass): readonly string[] {
  const lines = new Map<string, string[]>();
  for (const reason of why) {
    const key = `${reason.side ?? ""} ${textOf(reason)}`;
    lines.set(key, [...(lines.get(key) ?? []), ...(reason.regions ?? [])]);
  }
  return [...lines].map(([key, regions]) => {
    const at = key.indexOf(" ");
    const [side, text] = [key.slice(0, at), key.slice(at + 1)];
    const named = [...new Set(regions)].join(", ");
    if (side === "") return text;
    const of = named === "" ? "the caller" : named;
    return `${side === "producer" ? "behind" : "before"} ${of}: ${text}`;
  });
}

function textOf({ kind, reason, prices }: Reason): string {
  if (!prices) return `${reason} (${kind})`;
  const { fusedNs, apartNs } = prices;
  const [without, as] = [fusedNs, apartNs].map((ns) => `${ms(ns)} ms`);
  const least = kind === "layout" ? "at least " : "";
  return `${reason} (${kind}: ${least}${without} without the pass, ${as} with it)`;
}
