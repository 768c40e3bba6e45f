/**
 * Scales and offsets with constant factors go into the weights of the linear op beside them: inference
 * batch norm, layer scales, the divisor of an activation. Offsets pass a convolution only where no
 * padding is seen.
 */
import { type RuleRow, row } from "../rule-row.ts";

export const scales: readonly RuleRow[] = [
  row(
    "scale-into-convolution",
    "reassociates",
    "(mul ?y@(convolution[?a] ?x ?w) ?s)",
    "(convolution[?a] ?x (mul ?w (reshape[?r] ?s)))",
    "constant(w); constant(s); covers(y, s); r = outputScale(s, w)",
  ),
  row(
    "scale-through-convolution",
    "reassociates",
    "(convolution[?a] (mul ?x ?s) ?w)",
    "(convolution[?a] ?x (mul ?w (reshape[?r] ?s)))",
    "constant(w); constant(s); covers(x, s); r = inputScale(s, w, a)",
  ),
  row(
    "offset-through-convolution",
    "reassociates",
    "(convolution[?a] (add ?x ?c) ?w)",
    "(add (convolution[?a] ?x ?w) (reshape[?q] (reduce[?m] (mul ?w (reshape[?r] ?c)))))",
    "constant(w); constant(c); unpadded(a); covers(x, c); r = inputScale(c, w, a); m = sumFilter(w); q = biasShape(w)",
  ),
  row(
    "scale-into-product",
    "reassociates",
    "(mul ?y@(contract[?a] ?x ?w) ?s)",
    "(contract[?a] ?x (mul ?w (reshape[?r] ?s)))",
    "constant(w); constant(s); covers(y, s); ownAccumulator(a, w); r = outputToRhs(a, s)",
  ),
  row(
    "scale-through-product",
    "reassociates",
    "(contract[?a] (mul ?x ?s) ?w)",
    "(contract[?a] ?x (mul ?w (reshape[?r] ?s)))",
    "constant(w); constant(s); ownAccumulator(a, w); covers(x, s); r = lhsToRhs(a, s)",
  ),
  row(
    "scale-through-right-of-product",
    "reassociates",
    "(contract[?a] ?w (mul ?x ?s))",
    "(contract[?a] (mul ?w (reshape[?r] ?s)) ?x)",
    "constant(w); constant(s); ownAccumulator(a, w); covers(x, s); r = rhsToLhs(a, s)",
  ),
  row(
    "offset-through-product",
    "reassociates",
    "(contract[?a] (add ?x ?c) ?w)",
    "(add (contract[?a] ?x ?w) (reshape[?q] (contract[?b] (reshape[?r] ?c) ?w)))",
    "constant(w); constant(c); covers(x, c); r = flat(c); b = biasLabels(a, c); q = biasPlace(a, c, w)",
  ),
  row(
    "scalar-out-of-product",
    "reassociates",
    "(contract[?a] (mul ?x ?s) ?y)",
    "(mul (contract[?a] ?x ?y) ?s)",
    "scalar(s, x); constant(s); computed(x); computed(y); ownAccumulator(a, x); float(x)",
  ),
  row(
    "scalar-out-of-right-of-product",
    "reassociates",
    "(contract[?a] ?x (mul ?y ?s))",
    "(mul (contract[?a] ?x ?y) ?s)",
    "scalar(s, y); constant(s); computed(x); computed(y); ownAccumulator(a, x); float(x)",
  ),
  row(
    "scalar-into-left-of-product",
    "reassociates",
    "(mul ?p@(contract[?a] ?x ?y) ?s)",
    "(contract[?a] (mul ?x ?s) ?y)",
    "scalar(s, x); covers(p, s); constant(s); computed(x); computed(y); ownAccumulator(a, x); float(x)",
  ),
];
