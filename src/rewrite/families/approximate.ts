/**
 * Rules that give other numbers, each with a bound of what an element may be off, relative to the
 * largest element or to 1, whichever is more. No phase has them unless it is asked for (rewrite-model.ts),
 * and what they may have added up to goes with the graph to the verdict.
 */
import { type RuleRow, row, sampled } from "../rule-row.ts";

export const approximate: readonly RuleRow[] = [
  {
    ...sampled(
      row(
        "gelu-by-tanh",
        "approximates",
        "(gelu[?g] ?x)",
        "(gelu[?h] ?x)",
        "isExactGelu(g); h = geluForm(tanh)",
      ),
      "#gelu",
    ),
    errorBound: 4.74e-4,
  },
  {
    ...sampled(
      row(
        "gelu-by-sigmoid",
        "approximates",
        "(gelu[?g] ?x)",
        "(mul ?x (sigmoid (mul ?x (constant[?k]))))",
        "isExactGelu(g); k = number(1.702, x)",
      ),
      "#gelu",
    ),
    errorBound: 0.0204,
  },
];
