/** The rules by family, in the order in which they are applied. */
import type { RulePhase } from "../rewrite-part.ts";
import type { RuleRow } from "../rule-row.ts";
import { approximate } from "./approximate.ts";
import { arithmetic } from "./arithmetic.ts";
import { composites } from "./composites.ts";
import { joins, sumsOfParts } from "./joins.ts";
import { movement } from "./movement.ts";
import { online } from "./online.ts";
import { merges, products } from "./products.ts";
import { quantised } from "./quantised.ts";
import { reductions } from "./reductions.ts";
import { scales } from "./scales.ts";
import { enlargements, partialEquivalences } from "./windows.ts";
import { winograd } from "./winograd.ts";

export const families: Readonly<Record<string, readonly RuleRow[]>> = {
  arithmetic,
  scales,
  movement,
  products,
  reductions,
  quantised,
  joins,
  sumsOfParts,
  composites,
  enlargements,
  merges,
  winograd,
  partialEquivalences,
  online,
  approximate,
};

/** What a caller may ask of rewriting: identities alone, or also rules that approximate. */
export type RewriteMode = "on" | "off" | "approximate";

/** Identities first to the end of their news or budget, then sums of products as products of joined
 * operands, then merges, then what those make possible. */
export const defaultPhases: readonly RulePhase[] = [
  {
    name: "explore",
    rules: [
      ...arithmetic,
      ...scales,
      ...movement,
      ...joins,
      ...products,
      ...reductions,
      ...quantised,
      ...composites,
    ],
    iterations: 7,
  },
  { name: "enlarge", rules: enlargements, iterations: 1 },
  { name: "sum", rules: sumsOfParts, iterations: 1 },
  { name: "merge", rules: merges, iterations: 1 },
  { name: "settle", rules: [...arithmetic, ...scales, ...movement, ...joins], iterations: 3 },
];

/** With rules that give other numbers, each within its bound. */
export const approximatePhases: readonly RulePhase[] = [
  ...defaultPhases,
  { name: "approximate", rules: approximate, iterations: 1 },
];
