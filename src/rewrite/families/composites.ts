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

export const composites: readonly RuleRow[] = [
  row("silu", "exact", "(mul ?x (sigmoid ?x))", "(silu ?x)"),
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
    "(mul (mul ?x ?h) (add (tanh (mul (add ?x (mul (mul (mul ?x ?x) ?x) ?k)) ?r)) ?o))",
    "(gelu[?g] ?x)",
    "near(r, 0.7978845608028654); near(k, 0.044715); all(o, 1); all(h, 0.5); whole(x); float(x); g = geluForm(tanh)",
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
];
