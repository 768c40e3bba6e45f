/** The rules by family, in the order in which they are applied. */
import type { RulePhase } from "../rewrite-part.ts";
import type { RuleRow } from "../rule-row.ts";
import { arithmetic } from "./arithmetic.ts";
import { composites } from "./composites.ts";
import { movement } from "./movement.ts";
import { merges, products } from "./products.ts";
import { quantised } from "./quantised.ts";
import { reductions } from "./reductions.ts";
import { scales } from "./scales.ts";

export const families: Readonly<Record<string, readonly RuleRow[]>> = {
  arithmetic,
  scales,
  movement,
  products,
  reductions,
  quantised,
  composites,
  merges,
};

/** Identities first to the end of their news or budget, then merges, then what those make possible. */
export const defaultPhases: readonly RulePhase[] = [
  {
    name: "explore",
    rules: [
      ...arithmetic,
      ...scales,
      ...movement,
      ...products,
      ...reductions,
      ...quantised,
      ...composites,
    ],
    iterations: 7,
  },
  { name: "merge", rules: merges, iterations: 1 },
  { name: "settle", rules: [...arithmetic, ...scales, ...movement], iterations: 3 },
];
