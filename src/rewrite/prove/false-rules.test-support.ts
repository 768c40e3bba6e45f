/**
 * Rules that are false, or true only under a guard that they lack: what the proofs must refuse. The
 * first five are equalities that an earlier system proved.
 */
import type { NodeId } from "../../egraph/index.ts";
import { constantValue, floorDiv, toIndex } from "../../semantics/index-expr.ts";
import { fromRef, refTensor } from "../../semantics/tensor.ts";
import { partOfAxis } from "../attributes-joins.ts";
import { type RuleRow, row, sampled } from "../rule-row.ts";
import type { Site } from "../site.ts";

/** Two halves of a batch one below the other, cut apart again as if the seam had been zeros. */
function joinedHalves(site: Site): NodeId | undefined {
  const [shape, result] = [site.shape("x"), site.rootType().shape];
  const half = floorDiv(shape[0]!, 2);
  const { padLow, padHigh } = site.attrs<"convolution">("a");
  const [given, made] = [constantValue(shape[2]!)!, constantValue(result[2]!)!];
  if (padLow[0]! + padHigh[0]! === 0) return undefined;
  const cut = (axis: number, value: NodeId, [from, size]: readonly [number, number]) => {
    const whole = value === site.id("x") ? shape : result;
    const attrs = partOfAxis(whole, axis, [toIndex(from), toIndex(size)]);
    const sizes = attrs.sizes.map((d, i) => (i === 0 ? half : d));
    return site.add("slice", [value], { ...attrs, sizes });
  };
  const count = constantValue(half)!;
  const pictures = [0, count].map((start) => cut(0, site.id("x"), [start, count]));
  const tall = site.add("concat", pictures, { axis: 2 });
  const joined = site.add("convolution", [tall, site.id("w")], site.attrs<"convolution">("a"));
  const parts = [0, given].map((start) => cut(2, joined, [start, made]));
  return site.add("concat", parts, { axis: 0 });
}

/** Pairs of groups as one, with the zeros where the filter's own channels are. */
function pairsTheWrongWay(site: Site): NodeId | undefined {
  const attrs = site.attrs<"convolution">("a");
  const [filters, inner, ...kernel] = site.shape("w").map((d) => constantValue(d)!);
  if (attrs.groups % 2 !== 0) return undefined;
  const extents = [attrs.groups / 2, 2, filters! / attrs.groups, inner!, ...kernel].map(toIndex);
  const apart = site.add("reshape", [site.id("w")], { shape: extents });
  const zero = site.constant(fromRef(refTensor(site.type("w").dtype, [], [0])));
  const halves = [0, 1].map((half) => {
    const part = partOfAxis(extents, 1, [toIndex(half), toIndex(1)]);
    const own = site.add("slice", [apart], part);
    const zeros = (n: number) => extents.map((_, i) => toIndex(i === 3 ? n : 0));
    const [low, high] = [zeros((1 - half) * inner!), zeros(half * inner!)];
    return site.add("pad", [own, zero], { low, high, mode: "constant" });
  });
  const joined = site.add("concat", halves, { axis: 1 });
  const shape = [filters!, 2 * inner!, ...kernel].map(toIndex);
  const filter = site.add("reshape", [joined], { shape });
  return site.add("convolution", [site.id("x"), filter], { ...attrs, groups: attrs.groups / 2 });
}

export const falseRules: readonly RuleRow[] = [
  row(
    "ab-plus-ca-as-a-times-sum",
    "reassociates",
    "(add (contract[?a] ?x ?v) (contract[?a] ?w ?x))",
    "(contract[?a] ?x (add ?v ?w))",
  ),
  row(
    "ba-plus-ca-as-a-times-sum",
    "reassociates",
    "(add (contract[?a] ?v ?x) (contract[?a] ?w ?x))",
    "(contract[?a] ?x (add ?v ?w))",
  ),
  row(
    "scaled-product-plus-c",
    "reassociates",
    "(add (mul (contract[?a] ?x ?y) ?s) ?c)",
    "(add (contract[?a] ?x ?y) ?c)",
  ),
  row("centring-dropped", "reassociates", "(div (sub ?x ?m) ?d)", "(div ?x ?d)"),
  row("zero-times-tensor", "exact", "(mul ?x ?c)", "(constant[?k])", "all(c, 0); k = number(0, x)"),
  // Guards left out.
  row("zero-product-of-infinity", "exact", "(mul ?x ?c)", "?c", "all(c, 0); whole(c)"),
  row("add-zero-broadcast", "exact", "(add ?x ?c)", "?x", "all(c, 0)"),
  row("mul-one-broadcast", "exact", "(mul ?x ?c)", "?x", "all(c, 1)"),
  row(
    "div-as-exact-product",
    "exact",
    "(div ?x ?c)",
    "(mul ?x (reciprocal ?c))",
    "invertible(c); float(x)",
  ),
  row("div-of-integers", "reassociates", "(mul (div ?x ?c) ?c)", "?x", "whole(x); all(c, 3)"),
  row("sum-reassociated-exactly", "exact", "(add (add ?x ?y) ?z)", "(add ?x (add ?y ?z))"),
  row("distribution-exactly", "exact", "(mul (add ?x ?y) ?s)", "(add (mul ?x ?s) (mul ?y ?s))"),
  row("relu-of-any-scale", "exact", "(relu (mul ?x ?s))", "(mul (relu ?x) ?s)", "constant(s)"),
  row(
    "max-of-any-scale",
    "reassociates",
    "(max (mul ?x ?s) ?c)",
    "(mul (max ?x (div ?c ?s)) ?s)",
    "constant(s); constant(c); invertible(s); float(x)",
  ),
  row("relu-dropped", "exact", "(relu ?x)", "?x"),
  row("abs-dropped", "exact", "(abs ?x)", "?x"),
  row("sqrt-of-square-signed", "reassociates", "(sqrt (mul ?x ?x))", "?x", "float(x)"),
  row("sub-commutes", "exact", "(sub ?x ?y)", "(sub ?y ?x)"),
  row("div-commutes", "reassociates", "(div ?x ?y)", "(div ?y ?x)", "float(x)"),
  row("exp-of-sum", "reassociates", "(exp (add ?x ?y))", "(add (exp ?x) (exp ?y))"),
  row(
    "square-of-sum",
    "reassociates",
    "(pow ?x ?c)",
    "(add ?x ?x)",
    "all(c, 2); whole(x); float(x)",
  ),
  row(
    "sigmoid-without-sign",
    "reassociates",
    "(reciprocal (add (exp ?x) ?c))",
    "(sigmoid ?x)",
    "all(c, 1); whole(x); float(x)",
  ),
  row(
    "transposes-in-the-wrong-order",
    "exact",
    "(transpose[?p] (transpose[?q] ?x))",
    "(transpose[?r] ?x)",
    "r = compose(q, p)",
  ),
  row("transpose-dropped", "exact", "(transpose[?p] ?x)", "?x"),
  row(
    "transpose-as-reshape",
    "exact",
    "(transpose[?p] ?x)",
    "(reshape[?r] ?x)",
    "r = wholeShape()",
  ),
  row(
    "transpose-of-ranks",
    "exact",
    "(transpose[?p] (map[?f] ?x ?y))",
    "(map[?f] (transpose[?p] ?x) (transpose[?p] ?y))",
  ),
  row(
    "reshape-of-broadcast",
    "exact",
    "(reshape[?p] (map[?f] ?x ?y))",
    "(map[?f] (reshape[?p] ?x) (reshape[?p] ?y))",
  ),
  row(
    "slice-of-broadcast",
    "exact",
    "(slice[?p] (map[?f] ?x ?y))",
    "(map[?f] (slice[?p] ?x) (slice[?p] ?y))",
  ),
  row("reverse-dropped", "exact", "(reverse[?p] ?x)", "?x", "whole(x)"),
  row(
    "slices-in-the-wrong-order",
    "exact",
    "(slice[?p] (slice[?q] ?x))",
    "(slice[?r] ?x)",
    "r = composeSlices(q, p)",
  ),
  row("concat-commutes", "exact", "(concat[?a] ?x ?y)", "(concat[?a] ?y ?x)"),
  row(
    "slice-of-either",
    "exact",
    "(slice[?p] (concat[?a] ?x ?y))",
    "(slice[?r] ?x)",
    "r = sliceWithinSecond(p, a, x, y)",
  ),
  row(
    "scale-everywhere",
    "reassociates",
    "(mul (contract[?a] ?x ?w) ?s)",
    "(contract[?a] ?x (mul ?w ?s))",
  ),
  row(
    "scale-into-convolution-unguarded",
    "reassociates",
    "(mul (convolution[?a] ?x ?w) ?s)",
    "(convolution[?a] ?x (mul ?w ?s))",
    "constant(w); constant(s)",
  ),
  row(
    "offset-through-padding",
    "reassociates",
    "(convolution[?a] (add ?x ?c) ?w)",
    "(add (convolution[?a] ?x ?w) (reshape[?q] (reduce[?m] (mul ?w (reshape[?r] ?c)))))",
    "constant(w); constant(c); covers(x, c); r = inputScale(c, w, a); m = sumFilter(w); q = biasShape(w)",
  ),
  row(
    "pad-of-anything",
    "exact",
    "(convolution[?a] (pad[?p] ?x ?c) ?w)",
    "(convolution[?b] ?x ?w)",
    "b = padInto(a, p)",
  ),
  row("product-commutes", "exact", "(contract[?a] ?x ?y)", "(contract[?a] ?y ?x)"),
  row(
    "chain-with-old-labels",
    "reassociates",
    "(contract[?a] (contract[?b] ?x ?y) ?z)",
    "(contract[?a] ?x (contract[?b] ?y ?z))",
  ),
  row(
    "factor-of-different-products",
    "reassociates",
    "(add (contract[?a] ?x ?v) (contract[?b] ?x ?w))",
    "(contract[?a] ?x (add ?v ?w))",
  ),
  row(
    "reduce-of-transpose-dropped",
    "reassociates",
    "(reduce[?r] (transpose[?p] ?x))",
    "(reduce[?r] ?x)",
  ),
  row(
    "kept-axes-out-of-order",
    "reassociates",
    "(reduce[?r] (transpose[?p] ?x))",
    "(reduce[?q] ?x)",
    "q = reducedBefore(r, p)",
  ),
  row(
    "nested-reductions-of-any-kind",
    "reassociates",
    "(reduce[?p] (reduce[?q] ?x))",
    "(reduce[?q] (reduce[?p] ?x))",
  ),
  row(
    "max-over-sum",
    "reassociates",
    "(max (add ?x ?c) (add ?y ?c))",
    "(add (max ?x ?y) (add ?c ?c))",
  ),
  sampled(
    row(
      "clip-of-bounds-out-of-order",
      "exact",
      "(max (min ?x ?h) ?l)",
      "(clip[?k] ?x ?l ?h)",
      "single(l); single(h); float(x); k = bothBounds()",
    ),
    "#clamped",
  ),
  row("min-as-max", "exact", "(min ?x ?y)", "(max ?x ?y)"),
  row("negated-extremum", "exact", "(neg (max ?x ?y))", "(max (neg ?x) (neg ?y))", "signed(x)"),
  // Of joins and reductions.
  row(
    "sum-over-concat-elsewhere",
    "reassociates",
    "(reduce[?r] (concat[?a] ?x ?y))",
    "(add (reduce[?r] ?x) (reduce[?r] ?y))",
    "reduces(r, sum)",
  ),
  row(
    "max-over-concat-as-sum",
    "exact",
    "(reduce[?r] (concat[?a] ?x ?y))",
    "(add (reduce[?r] ?x) (reduce[?r] ?y))",
    "reduces(r, max); reducesAxis(r, a)",
  ),
  row(
    "product-of-concats-with-other-seams",
    "reassociates",
    "(contract[?a] (concat[?k] ?x ?y) (concat[?l] ?v ?w))",
    "(add (contract[?a] ?x ?v) (contract[?a] ?y ?w))",
    "joinedAlike(a, k, l)",
  ),
  row(
    "concat-of-maps-of-broadcasts",
    "exact",
    "(concat[?a] (map[?f] ?x ?y) (map[?f] ?u ?v))",
    "(map[?f] (concat[?a] ?x ?u) (concat[?a] ?y ?v))",
  ),
  row("cast-back-from-narrow", "exact", "(cast[?p] (cast[?q] ?x))", "?x", "whole(x)"),
  row(
    "pad-pad-of-two-values",
    "exact",
    "(pad[?p] (pad[?q] ?x ?c) ?d)",
    "(pad[?r] ?x ?c)",
    "r = joinPads(p, q)",
  ),
  row(
    "max-of-any-factor",
    "exact",
    "(reduce[?r] (mul ?x ?s))",
    "(mul (reduce[?r] ?x) ?s)",
    "reduces(r, max); scalar(s, x); float(x)",
  ),
  row(
    "extremum-kept-through-neg",
    "exact",
    "(reduce[?r] (neg ?x))",
    "(neg (reduce[?r] ?x))",
    "signed(x); isExtremum(r)",
  ),
  // Of composites and the online form.
  sampled(
    row(
      "rope-with-the-other-sign",
      "exact",
      "(concat[?k] (add (mul ?h@(slice[?q] ?x) ?c) (mul (slice[?p] ?x) ?s)) (add (mul (slice[?q] ?x) ?s) (mul (slice[?p] ?x) ?c)))",
      "(rotaryEmbedding[?f] ?x ?c ?s)",
      "f = ropeOfHalves(p, q, x); lastAxis(k, x); covers(h, c); covers(h, s)",
    ),
    "#rope-without-sign",
  ),
  sampled(
    row(
      "rope-with-sine-for-cosine",
      "exact",
      "(add (mul ?x (concat[?k] ?c ?c)) (mul (concat[?k] (neg (slice[?p] ?x)) ?h@(slice[?q] ?x)) (concat[?k] ?s ?s)))",
      "(rotaryEmbedding[?f] ?x ?s ?c)",
      "f = ropeOfHalves(p, q, x); lastAxis(k, c); lastAxis(k, s); covers(h, c); covers(h, s)",
    ),
    "#rope-of-turned",
  ),
  sampled(
    row(
      "mask-dropped",
      "exact",
      "(contract[?b] (softmax[?s] (add ?p@(contract[?a] (mul ?q ?c) ?k) ?m)) ?v)",
      "(attention[?f] ?q ?k ?v)",
      "uniform(c); float(q); covers(p, m); f = attentionForm(a, b, s, c)",
    ),
    "(attention[?f] ?q ?k ?v ?m)",
  ),
  row(
    "exp-not-rescaled",
    "reassociates",
    "(reduce[?r] (exp (sub ?x (max ?m ?n))))",
    "(reduce[?r] (exp (sub ?x ?m)))",
    "reduces(r, sum); keepsDims(r)",
  ),
  row(
    "quotient-of-summed-out-of-product",
    "reassociates",
    "(contract[?a] (div ?p ?l) ?v)",
    "(div (contract[?a] ?p ?v) ?l)",
    "float(p); covers(p, l)",
  ),
  // Of windows.
  sampled(
    row(
      "enlarged-without-zeros-in-place",
      "reassociates",
      "(convolution[?a] ?x ?w)",
      "(convolution[?b] ?x (reverse[?v] (pad[?p] ?w (constant[?z]))))",
      "constant(w); b = enlargedWindow(a, w); p = enlargingZeros(a, w); z = number(0, w); v = spatialAxes()",
    ),
    "#two-windows",
  ),
  sampled(
    row("halves-uncorrected", "exact", "(convolution[?a] ?x ?w)", (site) => joinedHalves(site)),
    "#even-batch",
  ),
  // Of quantised values.
  row(
    "zero-point-dropped",
    "exact",
    "(contract[?a] (sub ?x ?z) ?w)",
    "(contract[?a] ?x ?w)",
    "integer(x); single(z)",
  ),
  row(
    "concat-of-dequantized-by-first",
    "exact",
    "(concat[?a] (dequantize[?q] ?x ?s ?z) (dequantize[?q] ?y ?t ?z))",
    "(dequantize[?q] (concat[?a] ?x ?y) ?s ?z)",
    "perTensor(q); single(s); single(t); single(z)",
  ),
  row(
    "relu-of-stored",
    "exact",
    "(relu (dequantize[?q] ?x ?s ?z))",
    "(dequantize[?q] (relu ?x) ?s ?z)",
    "perTensor(q); single(z); positive(s); single(s)",
  ),
  // Approximations that claim too much.
  sampled(
    row(
      "gelu-by-tanh-as-rounding",
      "reassociates",
      "(gelu[?g] ?x)",
      "(gelu[?h] ?x)",
      "isExactGelu(g); h = geluForm(tanh)",
    ),
    "#gelu",
  ),
  {
    ...sampled(
      row(
        "gelu-by-sigmoid-within-little",
        "approximates",
        "(gelu[?g] ?x)",
        "(mul ?x (sigmoid (mul ?x (constant[?k]))))",
        "isExactGelu(g); k = number(1.702, x)",
      ),
      "#gelu",
    ),
    errorBound: 1e-3,
  },
  sampled(
    row("reverse-twice-elsewhere", "exact", "(reverse[?p] (reverse[?q] ?x))", "?x"),
    "(reverse[?p] (reverse[?q] ?x))",
  ),
  row(
    "groups-joined-the-wrong-way",
    "reassociates",
    "(convolution[?a] ?x ?w)",
    pairsTheWrongWay,
    "constant(w); computed(x)",
  ),
];
