/**
 * Algebra of concatenation: what passes it, what sums over it, and what a slice leaves of it. A product
 * or convolution of joined data is the sum over the parts, and back; a slice of a product is a product
 * of slices.
 */
import { type RuleRow, row } from "../rule-row.ts";

const throughJoins: readonly RuleRow[] = [
  row(
    "concat-nests-left",
    "exact",
    "(concat[?a] ?x (concat[?a] ?y ?z))",
    "(concat[?a] (concat[?a] ?x ?y) ?z)",
  ),
  row(
    "slice-across",
    "exact",
    "(slice[?p] (concat[?a] ?x ?y))",
    "(concat[?a] (slice[?q] ?x) (slice[?r] ?y))",
    "q = sliceAcrossFirst(p, a, x); r = sliceAcrossSecond(p, a, x)",
  ),
  row(
    "concat-of-transposes",
    "exact",
    "(concat[?a] (transpose[?p] ?x) (transpose[?p] ?y))",
    "(transpose[?p] (concat[?b] ?x ?y))",
    "b = axisBefore(a, p)",
  ),
  row(
    "concat-of-maps-of-two",
    "exact",
    "(concat[?a] (map[?f] ?x ?y) (map[?f] ?u ?v))",
    "(map[?f] (concat[?a] ?x ?u) (concat[?a] ?y ?v))",
    "sameShape(x, y); sameShape(u, v)",
  ),
  row(
    "concat-of-maps-with-scalar",
    "exact",
    "(concat[?a] (map[?f] ?x ?c) (map[?f] ?y ?c))",
    "(map[?f] (concat[?a] ?x ?y) ?c)",
    "scalar(c, x); scalar(c, y)",
  ),
  row(
    "map-of-two-concats",
    "exact",
    "(map[?f] (concat[?a] ?x ?u) (concat[?a] ?y ?v))",
    "(concat[?a] (map[?f] ?x ?y) (map[?f] ?u ?v))",
    "sameShape(x, y); sameShape(u, v)",
  ),
];

const sumsOverJoins: readonly RuleRow[] = [
  row(
    "sum-over-concat",
    "reassociates",
    "(reduce[?r] (concat[?a] ?x ?y))",
    "(add (reduce[?r] ?x) (reduce[?r] ?y))",
    "reduces(r, sum); reducesAxis(r, a)",
  ),
  row(
    "max-over-concat",
    "exact",
    "(reduce[?r] (concat[?a] ?x ?y))",
    "(max (reduce[?r] ?x) (reduce[?r] ?y))",
    "reduces(r, max); reducesAxis(r, a)",
  ),
  row(
    "min-over-concat",
    "exact",
    "(reduce[?r] (concat[?a] ?x ?y))",
    "(min (reduce[?r] ?x) (reduce[?r] ?y))",
    "reduces(r, min); reducesAxis(r, a)",
  ),
  row(
    "reduce-beside-concat",
    "exact",
    "(reduce[?r] (concat[?a] ?x ?y))",
    "(concat[?b] (reduce[?r] ?x) (reduce[?r] ?y))",
    "b = axisBehindReduction(a, r)",
  ),
];

const productsOfJoins: readonly RuleRow[] = [
  row(
    "product-of-concat-beside",
    "exact",
    "(contract[?a] (concat[?k] ?x ?y) ?w)",
    "(concat[?m] (contract[?a] ?x ?w) (contract[?a] ?y ?w))",
    "m = resultAxisOfLeft(a, k)",
  ),
  row(
    "concat-of-products-left",
    "exact",
    "(concat[?k] (contract[?a] ?x ?w) (contract[?a] ?y ?w))",
    "(contract[?a] (concat[?m] ?x ?y) ?w)",
    "m = leftAxisOfResult(a, k)",
  ),
  row(
    "slice-of-product",
    "exact",
    "(slice[?p] (contract[?a] ?x ?w))",
    "(contract[?a] (slice[?q] ?x) (slice[?r] ?w))",
    "q = slicedLeft(p, a, x); r = slicedRight(p, a, w)",
  ),
  row(
    "concat-of-convolutions",
    "exact",
    "(concat[?k] (convolution[?a] ?x ?v) (convolution[?a] ?x ?w))",
    "(convolution[?a] ?x (concat[?m] ?v ?w))",
    "constant(v); constant(w); ungrouped(a); sameWindow(v, w); m = outputAxis(k)",
  ),
];

/**
 * There and back, in another order each time that a sum commutes: for one iteration, or a network whose
 * branches are joined again and again fills the graph with nothing else.
 */
export const sumsOfParts: readonly RuleRow[] = [
  row(
    "product-of-concat",
    "reassociates",
    "(contract[?a] (concat[?k] ?x ?y) ?w)",
    "(add (contract[?a] ?x (slice[?p] ?w)) (contract[?a] ?y (slice[?q] ?w)))",
    "constant(w); p = partOfRightFirst(a, k, x, w); q = partOfRightSecond(a, k, x, w)",
  ),
  row(
    "sum-of-products",
    "reassociates",
    "(add (contract[?a] ?x ?v) (contract[?a] ?y ?w))",
    "(contract[?a] (concat[?k] ?x ?y) (concat[?m] ?v ?w))",
    "constant(v); constant(w); k = summedOfLeft(a, x, y); m = summedOfRight(a, v, w)",
  ),
  row(
    "convolution-of-concat",
    "reassociates",
    "(convolution[?a] (concat[?k] ?x ?y) ?w)",
    "(add (convolution[?a] ?x (slice[?p] ?w)) (convolution[?a] ?y (slice[?q] ?w)))",
    "constant(w); ungrouped(a); p = partOfFilterFirst(k, x, w); q = partOfFilterSecond(k, x, w)",
  ),
  row(
    "sum-of-convolutions",
    "reassociates",
    "(add (convolution[?a] ?x ?v) (convolution[?a] ?y ?w))",
    "(convolution[?a] (concat[?k] ?x ?y) (concat[?k] ?v ?w))",
    "constant(v); constant(w); ungrouped(a); sameButChannels(v, w); sameButChannels(x, y); k = channelAxis()",
  ),
];

export const joins: readonly RuleRow[] = [...throughJoins, ...sumsOverJoins, ...productsOfJoins];
