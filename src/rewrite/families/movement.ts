/**
 * Algebra of transpose, reshape, slice, concat, pad and broadcast: they compose, cancel, pass
 * elementwise operators, and are absorbed by contractions (as labels) and convolutions (as padding).
 */
import { type RuleRow, row } from "../rule-row.ts";

const composition: readonly RuleRow[] = [
  row(
    "transpose-transpose",
    "exact",
    "(transpose[?p] (transpose[?q] ?x))",
    "(transpose[?r] ?x)",
    "r = compose(p, q)",
  ),
  row("transpose-identity", "exact", "(transpose[?p] ?x)", "?x", "inOrder(p)"),
  row("reshape-reshape", "exact", "(reshape[?p] (reshape[?q] ?x))", "(reshape[?p] ?x)"),
  row("reshape-identity", "exact", "(reshape[?p] ?x)", "?x", "whole(x)"),
  row("broadcast-identity", "exact", "(broadcast[?p] ?x)", "?x", "whole(x)"),
  row(
    "slice-slice",
    "exact",
    "(slice[?p] (slice[?q] ?x))",
    "(slice[?r] ?x)",
    "r = composeSlices(p, q)",
  ),
  row("slice-identity", "exact", "(slice[?p] ?x)", "?x", "whole(x); unitSteps(p); fromStart(p)"),
  row("reverse-reverse", "exact", "(reverse[?p] (reverse[?p] ?x))", "?x"),
  row(
    "reverse-composes",
    "exact",
    "(reverse[?p] (reverse[?q] ?x))",
    "(reverse[?r] ?x)",
    "r = joinReversals(p, q)",
  ),
  row("broadcast-broadcast", "exact", "(broadcast[?p] (broadcast[?q] ?x))", "(broadcast[?p] ?x)"),
  row("pad-pad", "exact", "(pad[?p] (pad[?q] ?x ?c) ?c)", "(pad[?r] ?x ?c)", "r = joinPads(p, q)"),
  row("pad-nothing", "exact", "(pad[?p] ?x ?c)", "?x", "padsNothing(p)"),
  row("cast-identity", "exact", "(cast[?p] ?x)", "?x", "whole(x)"),
  row("cast-back", "exact", "(cast[?p] (cast[?q] ?x))", "?x", "whole(x); widens(q, x)"),
  row(
    "transpose-of-ones",
    "exact",
    "(transpose[?p] ?x)",
    "(reshape[?r] ?x)",
    "movesOnes(p, x); r = wholeShape()",
  ),
];

const joins: readonly RuleRow[] = [
  row(
    "slice-of-first",
    "exact",
    "(slice[?p] (concat[?a] ?x ?y))",
    "(slice[?r] ?x)",
    "r = sliceWithinFirst(p, a, x, y)",
  ),
  row(
    "slice-of-second",
    "exact",
    "(slice[?p] (concat[?a] ?x ?y))",
    "(slice[?r] ?y)",
    "r = sliceWithinSecond(p, a, x, y)",
  ),
  row(
    "concat-of-slices",
    "exact",
    "(concat[?a] (slice[?p] ?x) (slice[?q] ?x))",
    "(slice[?r] ?x)",
    "r = joinSlices(a, p, q)",
  ),
  row(
    "concat-of-products",
    "exact",
    "(concat[?k] (contract[?a] ?x ?v) (contract[?a] ?x ?w))",
    "(contract[?a] ?x (concat[?m] ?v ?w))",
    "constant(v); constant(w); m = joinedRight(a, k)",
  ),
  row(
    "concat-of-maps",
    "exact",
    "(concat[?a] (map[?f] ?x) (map[?f] ?y))",
    "(map[?f] (concat[?a] ?x ?y))",
  ),
  row(
    "map-of-concat",
    "exact",
    "(map[?f] (concat[?a] ?x ?y))",
    "(concat[?a] (map[?f] ?x) (map[?f] ?y))",
  ),
];

const throughMaps: readonly RuleRow[] = [
  row("transpose-of-map", "exact", "(transpose[?p] (map[?f] ?x))", "(map[?f] (transpose[?p] ?x))"),
  row("map-of-transpose", "exact", "(map[?f] (transpose[?p] ?x))", "(transpose[?p] (map[?f] ?x))"),
  row(
    "transpose-of-map-of-two",
    "exact",
    "(transpose[?p] (map[?f] ?x ?y))",
    "(map[?f] (transpose[?p] ?x) (transpose[?p] ?y))",
    "sameRank(x, y)",
  ),
  row(
    "map-of-two-transposes",
    "exact",
    "(map[?f] (transpose[?p] ?x) (transpose[?p] ?y))",
    "(transpose[?p] (map[?f] ?x ?y))",
  ),
  row(
    "map-of-transpose-and-scalar",
    "exact",
    "(map[?f] (transpose[?p] ?x) ?c)",
    "(transpose[?p] (map[?f] ?x ?c))",
    "scalar(c, x)",
  ),
  row("reshape-of-map", "exact", "(reshape[?p] (map[?f] ?x))", "(map[?f] (reshape[?p] ?x))"),
  row(
    "map-of-reshape",
    "exact",
    "(map[?f] (reshape[?p] ?x))",
    "(reshape[?q] (map[?f] ?x))",
    "q = wholeShape()",
  ),
  row(
    "reshape-of-map-of-two",
    "exact",
    "(reshape[?p] (map[?f] ?x ?y))",
    "(map[?f] (reshape[?p] ?x) (reshape[?p] ?y))",
    "sameShape(x, y)",
  ),
  row(
    "map-of-two-reshapes",
    "exact",
    "(map[?f] (reshape[?p] ?x) (reshape[?p] ?y))",
    "(reshape[?q] (map[?f] ?x ?y))",
    "sameShape(x, y); q = wholeShape()",
  ),
  row(
    "map-of-reshape-and-scalar",
    "exact",
    "(map[?f] (reshape[?p] ?x) ?c)",
    "(reshape[?q] (map[?f] ?x ?c))",
    "scalar(c, x); q = wholeShape()",
  ),
  row("slice-of-map", "exact", "(slice[?p] (map[?f] ?x))", "(map[?f] (slice[?p] ?x))"),
  row(
    "slice-of-map-of-two",
    "exact",
    "(slice[?p] (map[?f] ?x ?y))",
    "(map[?f] (slice[?p] ?x) (slice[?p] ?y))",
    "sameShape(x, y)",
  ),
  row(
    "slice-of-map-and-scalar",
    "exact",
    "(slice[?p] (map[?f] ?x ?c))",
    "(map[?f] (slice[?p] ?x) ?c)",
    "scalar(c, x)",
  ),
  row("reverse-of-map", "exact", "(reverse[?p] (map[?f] ?x))", "(map[?f] (reverse[?p] ?x))"),
  row(
    "transpose-of-cast",
    "exact",
    "(transpose[?p] (cast[?c] ?x))",
    "(cast[?c] (transpose[?p] ?x))",
  ),
  row(
    "map-of-broadcast",
    "exact",
    "(map[?f] (broadcast[?p] ?x) ?y)",
    "(map[?f] ?x ?y)",
    "spans(y)",
  ),
  row(
    "map-of-broadcast-right",
    "exact",
    "(map[?f] ?y (broadcast[?p] ?x))",
    "(map[?f] ?y ?x)",
    "spans(y)",
  ),
];

const absorbed: readonly RuleRow[] = [
  row(
    "transpose-into-left",
    "exact",
    "(contract[?a] (transpose[?p] ?x) ?y)",
    "(contract[?b] ?x ?y)",
    "b = lhsBefore(a, p)",
  ),
  row(
    "transpose-into-right",
    "exact",
    "(contract[?a] ?x (transpose[?p] ?y))",
    "(contract[?b] ?x ?y)",
    "b = rhsBefore(a, p)",
  ),
  row(
    "transpose-into-result",
    "exact",
    "(transpose[?p] (contract[?a] ?x ?y))",
    "(contract[?b] ?x ?y)",
    "b = outputLabels(a, p)",
  ),
  row(
    "pad-into-convolution",
    "exact",
    "(convolution[?a] (pad[?p] ?x ?c) ?w)",
    "(convolution[?b] ?x ?w)",
    "all(c, 0); b = padInto(a, p)",
  ),
  row(
    "slice-of-transpose",
    "exact",
    "(slice[?s] (transpose[?p] ?x))",
    "(transpose[?p] (slice[?r] ?x))",
    "r = slicedBefore(s, p)",
  ),
  row(
    "transpose-of-concat",
    "exact",
    "(transpose[?p] (concat[?a] ?x ?y))",
    "(concat[?b] (transpose[?p] ?x) (transpose[?p] ?y))",
    "b = movedAxis(a, p)",
  ),
  row(
    "reduce-of-transpose",
    "reassociates",
    "(reduce[?r] (transpose[?p] ?x))",
    "(reduce[?q] ?x)",
    "dropsDims(r); q = reducedBefore(r, p)",
  ),
  row(
    "reduce-of-transpose-keeping",
    "reassociates",
    "(reduce[?r] (transpose[?p] ?x))",
    "(transpose[?p] (reduce[?q] ?x))",
    "keepsDims(r); q = reducedBefore(r, p)",
  ),
];

export const movement: readonly RuleRow[] = [...composition, ...joins, ...throughMaps, ...absorbed];
