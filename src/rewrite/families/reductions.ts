/** Reductions: nested ones at once, constant factors and monotone functions out of them. */
import { type RuleRow, row } from "../rule-row.ts";

export const reductions: readonly RuleRow[] = [
  row(
    "reduce-reduce",
    "reassociates",
    "(reduce[?p] (reduce[?q] ?x))",
    "(reduce[?r] ?x)",
    "r = joinReductions(p, q)",
  ),
  row(
    "sum-of-scaled",
    "reassociates",
    "(reduce[?r] (mul ?x ?s))",
    "(mul (reduce[?r] ?x) ?s)",
    "reduces(r, sum); constant(s); scalar(s, x); computed(x)",
  ),
  row(
    "scaled-sum",
    "reassociates",
    "(mul (reduce[?r] ?x) ?s)",
    "(reduce[?r] (mul ?x ?s))",
    "reduces(r, sum); constant(s); scalar(s, x); computed(x)",
  ),
  row(
    "max-of-relu",
    "exact",
    "(reduce[?r] (relu ?x))",
    "(relu (reduce[?r] ?x))",
    "reduces(r, max)",
  ),
  row(
    "max-of-offset",
    "exact",
    "(reduce[?r] (add ?x ?c))",
    "(add (reduce[?r] ?x) ?c)",
    "reduces(r, max); constant(c); scalar(c, x); computed(x)",
  ),
  row(
    "softmax-of-offset",
    "reassociates",
    "(softmax[?a] (add ?x ?c))",
    "(softmax[?a] ?x)",
    "constant(c); finite(c); scalar(c, x); computed(x)",
  ),
];
