/**
 * Composites recognised from primitives, as their definitions and common exports spell them: who takes
 * the graph (an exporter, a kernel library) sees what was meant. A composite is its definition, so the
 * price of the compiled program does not change.
 */
import { type RuleRow, row, sampled } from "../rule-row.ts";

const centred = "(sub ?x (div (reduce[?m] ?x) ?n))";
const deviation = `(sqrt (add (div (reduce[?v] (mul ${centred} ${centred})) ?n) ?e))`;
const root = "(sqrt (add (div (reduce[?v] (mul ?x ?x)) ?n) ?e))";
const low = "(sub ?x (reduce[?m] ?x))";
const tanhOfSum = "(tanh (mul (add ?x (mul (mul (mul ?x ?x) ?x) ?k)) ?r))";
const tanhOfProduct = "(tanh (mul (mul ?x (add (mul (mul ?x ?x) ?k) ?o)) ?r))";
const tanhConstants =
  "near(r, 0.7978845608028654); near(k, 0.044715); all(o, 1); all(h, 0.5); whole(x); float(x); g = geluForm(tanh)";
const turned = "(concat[?k] (neg (slice[?p] ?x)) ?h@(slice[?q] ?x))";
const first = "?h@(slice[?q] ?x)";
const second = "(slice[?p] ?x)";
const real = `(sub (mul ${first} ?c) (mul ${second} ?s))`;
const imaginary = "(add (mul (slice[?q] ?x) ?s) (mul (slice[?p] ?x) ?c))";

export const composites: readonly RuleRow[] = [
  row("silu", "exact", "(mul ?x (sigmoid ?x))", "(silu ?x)"),
  row(
    "silu-from-quotient",
    "reassociates",
    "(div ?x (add (exp (neg ?x)) ?c))",
    "(silu ?x)",
    "all(c, 1); whole(x); float(x)",
  ),
  row(
    "hard-swish",
    "reassociates",
    "(mul ?x (max (min (add (mul ?x ?a) ?b) ?o) ?z))",
    "(hardSwish ?x)",
    "near(a, 0.16666666666666666); all(b, 0.5); all(o, 1); all(z, 0); whole(x); float(x)",
  ),
  row(
    "clip",
    "exact",
    "(min (max ?x ?l) ?h)",
    "(clip[?k] ?x ?l ?h)",
    "single(l); single(h); float(x); k = bothBounds()",
  ),
  sampled(
    row(
      "clip-from-above",
      "exact",
      "(max (min ?x ?h) ?l)",
      "(clip[?k] ?x ?l ?h)",
      "single(l); single(h); ordered(l, h); float(x); k = bothBounds()",
    ),
    "#clamped",
  ),
  row(
    "clip-of-relu",
    "exact",
    "(min (relu ?x) ?h)",
    "(clip[?k] ?x (constant[?z]) ?h)",
    "single(h); float(x); z = number(0, x); k = bothBounds()",
  ),
  sampled(
    row(
      "softmax",
      "exact",
      `(div (exp ${low}) (reduce[?s] (exp ${low})))`,
      "(softmax[?a] ?x)",
      "a = softmaxAxis(m, s); float(x)",
    ),
    "(softmax[?a] ?x)",
  ),
  sampled(
    row(
      "log-softmax",
      "exact",
      `(sub ${low} (log (reduce[?s] (exp ${low}))))`,
      "(logSoftmax[?a] ?x)",
      "a = softmaxAxis(m, s); float(x)",
    ),
    "(logSoftmax[?a] ?x)",
  ),
  row(
    "gelu",
    "reassociates",
    "(mul (mul ?x (add (erf (mul ?x ?r)) ?o)) ?h)",
    "(gelu[?g] ?x)",
    "near(r, 0.7071067811865476); all(o, 1); all(h, 0.5); whole(x); float(x); g = geluForm(none)",
  ),
  row(
    "gelu-of-halved",
    "reassociates",
    "(mul (mul ?x ?h) (add (erf (mul ?x ?r)) ?o))",
    "(gelu[?g] ?x)",
    "near(r, 0.7071067811865476); all(o, 1); all(h, 0.5); whole(x); float(x); g = geluForm(none)",
  ),
  row(
    "gelu-tanh",
    "reassociates",
    `(mul (mul ?x ?h) (add ${tanhOfSum} ?o))`,
    "(gelu[?g] ?x)",
    tanhConstants,
  ),
  row(
    "gelu-tanh-halved-last",
    "reassociates",
    `(mul (mul ?x (add ${tanhOfSum} ?o)) ?h)`,
    "(gelu[?g] ?x)",
    tanhConstants,
  ),
  row(
    "gelu-tanh-factored",
    "reassociates",
    `(mul (mul ?x ?h) (add ${tanhOfProduct} ?o))`,
    "(gelu[?g] ?x)",
    tanhConstants,
  ),
  row(
    "gelu-tanh-factored-halved-last",
    "reassociates",
    `(mul (mul ?x (add ${tanhOfProduct} ?o)) ?h)`,
    "(gelu[?g] ?x)",
    tanhConstants,
  ),
  sampled(
    row(
      "rope-of-turned",
      "exact",
      `(add (mul ?x (concat[?k] ?c ?c)) (mul ${turned} (concat[?k] ?s ?s)))`,
      "(rotaryEmbedding[?f] ?x ?c ?s)",
      "f = ropeOfHalves(p, q, x); lastAxis(k, c); lastAxis(k, s); covers(h, c); covers(h, s)",
    ),
    "#rope-of-turned",
  ),
  sampled(
    row(
      "rope-of-halves",
      "exact",
      `(concat[?k] ${real} ${imaginary})`,
      "(rotaryEmbedding[?f] ?x ?c ?s)",
      "f = ropeOfHalves(p, q, x); lastAxis(k, x); covers(h, c); covers(h, s)",
    ),
    "#rope-of-halves",
  ),
  sampled(
    row(
      "rope-of-pairs",
      "exact",
      `(reshape[?r] (concat[?k] (reshape[?u] ${real}) (reshape[?u] ${imaginary})))`,
      "(rotaryEmbedding[?f] ?x ?c ?s)",
      "f = ropeOfPairs(p, q, x, u, k); whole(x); covers(h, c); covers(h, s)",
    ),
    "#rope-of-pairs",
  ),
  sampled(
    row(
      "layer-norm",
      "exact",
      `(add (mul (div ${centred} ${deviation}) ?s) ?b)`,
      "(layerNorm[?a] ?x ?s ?b)",
      "a = normForm(m, v, n, e, x); wide(x)",
    ),
    "(layerNorm[?a] ?x ?s ?b)",
  ),
  sampled(
    row(
      "layer-norm-without-bias",
      "exact",
      `(mul (div ${centred} ${deviation}) ?s)`,
      "(layerNorm[?a] ?x ?s)",
      "a = normForm(m, v, n, e, x); wide(x)",
    ),
    "(layerNorm[?a] ?x ?s)",
  ),
  sampled(
    row(
      "rms-norm",
      "exact",
      `(mul (div ?x ${root}) ?s)`,
      "(rmsNorm[?a] ?x ?s)",
      "a = normForm(v, v, n, e, x); wide(x)",
    ),
    "(rmsNorm[?a] ?x ?s)",
  ),
  sampled(
    row(
      "attention",
      "exact",
      "(contract[?b] (softmax[?s] (contract[?a] (mul ?q ?c) ?k)) ?v)",
      "(attention[?f] ?q ?k ?v)",
      "uniform(c); float(q); f = attentionForm(a, b, s, c)",
    ),
    "(attention[?f] ?q ?k ?v)",
  ),
  sampled(
    row(
      "attention-with-mask",
      "exact",
      "(contract[?b] (softmax[?s] (add ?p@(contract[?a] (mul ?q ?c) ?k) ?m)) ?v)",
      "(attention[?f] ?q ?k ?v ?m)",
      "uniform(c); float(q); covers(p, m); f = maskedAttentionForm(a, b, s, c)",
    ),
    "(attention[?f] ?q ?k ?v ?m)",
  ),
  sampled(
    row(
      "attention-unscaled",
      "exact",
      "(contract[?b] (softmax[?s] (contract[?a] ?q ?k)) ?v)",
      "(attention[?f] ?q ?k ?v)",
      "float(q); f = attentionForm(a, b, s)",
    ),
    "(attention[?f] ?q ?k ?v)",
  ),
];
