/**
 * What the model table says in a line: beside the mean of all families those that are asked about by themselves,
 * where a row of them was run. In: rows, named `family/model/case`. Out: figures.
 */
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import { type BenchRow, type SuiteSummary, summarise } from "../report.ts";

export const transformerFamilies: ReadonlySet<string> = new Set([
  "sentence-encoder",
  "text-encoder",
  "text-decoder",
  "text-decoder-step",
  "vision-transformer",
  "speech-encoder",
  "speech-decoder",
  "decoder-block",
  "mixture-block",
]);

const [familyAt, modelAt] = [0, 1] as const;
const partOf = ({ case: name }: BenchRow, at: number): string => name.split("/")[at] ?? "";

/** Which rows a mean is of, and what counts once in it. */
const means: Readonly<
  Record<string, { readonly has: (row: BenchRow) => boolean; readonly by: number }>
> = {
  transformers: { has: (row) => transformerFamilies.has(partOf(row, familyAt)), by: familyAt },
  int8Dynamic: { has: (row) => partOf(row, modelAt).endsWith("-dynamic"), by: modelAt },
  int8Qdq: { has: (row) => partOf(row, modelAt).endsWith("-int8"), by: modelAt },
};

/** The usual figures, the upper end of the worst case's interval, and the means of what was run. */
export function summariseModels(rows: readonly BenchRow[]): SuiteSummary {
  const worst = rows.reduce((a, b) => (b.ratio < a.ratio ? b : a));
  const found = Object.entries(means).flatMap(([name, { has, by }]) => {
    const own = rows.filter(has);
    return own.length === 0 ? [] : [[name, meanBy(own, by)] as const];
  });
  return { ...summarise(rows)!, worstHigh: worst.high, ...Object.fromEntries(found) };
}

function meanBy(rows: readonly BenchRow[], part: number): number {
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const key = partOf(row, part);
    groups.set(key, [...(groups.get(key) ?? []), row.ratio]);
  }
  return geometricMean([...groups.values()].map(geometricMean));
}
