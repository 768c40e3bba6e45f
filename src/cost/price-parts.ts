/**
 * What the price of a region's code is made of: the time of each run of code under what limits it, and the part of
 * the memory's time that the core does not hide. In: code and figures. Out: nanoseconds by cause, which add up to
 * the price of mix-price.ts.
 */
import type { CoreFigures } from "./core-figures.ts";
import { type CodeWork, priceCode, priceRun } from "./mix-price.ts";

export const priceCauses = [
  "instructions",
  "arithmetic",
  "loads",
  "stores",
  "latency",
  "loop ends",
  "memory",
] as const;

export type PriceParts = Readonly<Record<(typeof priceCauses)[number], number>>;

export function priceParts(work: CodeWork, core: CoreFigures): PriceParts {
  const parts = Object.fromEntries(priceCauses.map((c) => [c, 0])) as Record<
    (typeof priceCauses)[number],
    number
  >;
  for (const run of work.runs) {
    const { issue, arithmetic, loads, stores, chain, total } = priceRun(run, core);
    const limits = [
      ["instructions", issue],
      ["arithmetic", arithmetic],
      ["loads", loads],
      ["stores", stores],
      ["latency", chain],
    ] as const;
    const [cause, each] = limits.reduce((a, b) => (b[1] > a[1] ? b : a));
    const straight = run.executions * each;
    parts[cause] += straight;
    parts["loop ends"] += total - straight;
  }
  const price = priceCode(work, core);
  parts.memory = price.total - price.core;
  return parts;
}
