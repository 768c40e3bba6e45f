/**
 * Softmax in blocks: from these identities saturation derives the online form, in which a block knows
 * only its own maximum m, its sum l of exp(x - m) and its part o of the result, and two blocks join by
 * scaling both to the larger maximum (Milakov and Gimelshein, 2018). A block of minus infinities alone
 * (all masked) has a maximum from which nothing can be subtracted, so maxima are kept above the lowest
 * number: nothing else changes, as softmax of such a row is NaN either way.
 */
import { type RuleRow, row } from "../rule-row.ts";

const floored = "(exp (sub ?x (max (reduce[?m] ?x) (constant[?k]))))";

export const online: readonly RuleRow[] = [
  row(
    "softmax-above-lowest",
    "exact",
    "(softmax[?a] ?x)",
    `(div ${floored} (reduce[?s] ${floored}))`,
    "float(x); m = along(a, max); s = along(a, sum); k = lowest(x)",
  ),
  row(
    "max-shares-floor",
    "exact",
    "(max (max ?x ?y) ?c)",
    "(max (max ?x ?c) (max ?y ?c))",
    "constant(c)",
  ),
  row(
    "map-of-concat-and-row",
    "exact",
    "(map[?f] (concat[?a] ?x ?y) ?m)",
    "(concat[?a] (map[?f] ?x ?m) (map[?f] ?y ?m))",
    "covers(x, m); covers(y, m); oneAlong(m, a)",
  ),
  row(
    "sum-of-exp-rescaled",
    "reassociates",
    "(reduce[?r] (exp (sub ?x (max ?m ?n))))",
    "(mul (reduce[?r] (exp (sub ?x ?m))) (exp (sub ?m (max ?m ?n))))",
    "reduces(r, sum); keepsDims(r); covers(x, m); covers(x, n); oneReduced(m, r, x); oneReduced(n, r, x); aboveLowest(m)",
  ),
  row(
    "product-of-exp-rescaled",
    "reassociates",
    "(contract[?a] (exp (sub ?x (max ?m ?n))) ?v)",
    "(mul (contract[?a] (exp (sub ?x ?m)) ?v) (reshape[?q] (exp (sub ?m (max ?m ?n)))))",
    "covers(x, m); covers(m, n); aboveLowest(m); q = rowsOfProduct(a, m)",
  ),
  row(
    "quotient-out-of-product",
    "reassociates",
    "(contract[?a] (div ?p ?l) ?v)",
    "(div (contract[?a] ?p ?v) (reshape[?q] ?l))",
    "float(p); covers(p, l); q = rowsOfProduct(a, l)",
  ),
  row(
    "product-of-two-concats",
    "reassociates",
    "(contract[?a] (concat[?k] ?x ?y) (concat[?l] ?v ?w))",
    "(add (contract[?a] ?x ?v) (contract[?a] ?y ?w))",
    "joinedAlike(a, k, l); sameSeam(k, l, x, v)",
  ),
];
