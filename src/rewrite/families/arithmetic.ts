/**
 * Elementwise algebra. Sums and products of constants are gathered to the right, so that chains of
 * scales and offsets become one of each; general associativity would not end. In class `exact` a zero
 * equals a zero of the other sign.
 */
import { type RuleRow, row, sampled } from "../rule-row.ts";

const commutative = ["add", "mul", "max", "min"].map((op) =>
  row(`${op}-commutes`, "exact", `(${op} ?x ?y)`, `(${op} ?y ?x)`),
);

const gathered = (["add", "mul"] as const).flatMap((op) => [
  row(
    `${op}-gathers-constants`,
    "reassociates",
    `(${op} (${op} ?x ?c) ?d)`,
    `(${op} ?x (${op} ?c ?d))`,
    "constant(c); constant(d); computed(x)",
  ),
  row(
    `${op}-moves-constant-out`,
    "reassociates",
    `(${op} (${op} ?x ?c) ?y)`,
    `(${op} (${op} ?x ?y) ?c)`,
    "constant(c); computed(x); computed(y)",
  ),
]);

const extrema = (["max", "min"] as const).map((op) =>
  row(
    `${op}-gathers-constants`,
    "exact",
    `(${op} (${op} ?x ?c) ?d)`,
    `(${op} ?x (${op} ?c ?d))`,
    "constant(c); constant(d)",
  ),
);

const scaledExtrema = (["max", "min"] as const).map((op) =>
  row(
    `${op}-of-scaled`,
    "reassociates",
    `(${op} (mul ?x ?s) ?c)`,
    `(mul (${op} ?x (div ?c ?s)) ?s)`,
    "positive(s); invertible(s); constant(c); float(x); computed(x)",
  ),
);

export const arithmetic: readonly RuleRow[] = [
  ...commutative,
  ...gathered,
  ...extrema,
  ...scaledExtrema,
  row("add-zero", "exact", "(add ?x ?c)", "?x", "all(c, 0); whole(x)"),
  row("mul-one", "exact", "(mul ?x ?c)", "?x", "all(c, 1); whole(x)"),
  row("div-one", "exact", "(div ?x ?c)", "?x", "all(c, 1); whole(x)"),
  row("mul-zero", "exact", "(mul ?x ?c)", "?c", "all(c, 0); finite(x); whole(c)"),
  row("pow-one", "exact", "(pow ?x ?c)", "?x", "all(c, 1); whole(x); float(x)"),
  row("sub-constant", "exact", "(sub ?x ?c)", "(add ?x (neg ?c))", "constant(c); signed(x)"),
  row("sub-from-constant", "exact", "(sub ?c ?x)", "(add (neg ?x) ?c)", "constant(c); signed(x)"),
  row("neg-neg", "exact", "(neg (neg ?x))", "?x", "signed(x)"),
  row(
    "neg-as-product",
    "exact",
    "(neg ?x)",
    "(mul ?x (constant[?k]))",
    "float(x); k = number(-1, x)",
  ),
  row("add-neg", "exact", "(add ?x (neg ?y))", "(sub ?x ?y)", "signed(x)"),
  row("sub-as-add", "exact", "(sub ?x ?y)", "(add ?x (neg ?y))", "signed(x)"),
  row(
    "div-power-of-two",
    "exact",
    "(div ?x ?c)",
    "(mul ?x (reciprocal ?c))",
    "powersOfTwo(c); float(x)",
  ),
  row(
    "div-constant",
    "reassociates",
    "(div ?x ?c)",
    "(mul ?x (reciprocal ?c))",
    "invertible(c); float(x)",
  ),
  row(
    "reciprocal-as-div",
    "exact",
    "(mul ?x (reciprocal ?y))",
    "(div ?x ?y)",
    "all(x, 1); float(x)",
  ),
  row("mul-reciprocal", "reassociates", "(mul ?x (reciprocal ?y))", "(div ?x ?y)", "float(x)"),
  row(
    "mul-over-constant-sum",
    "reassociates",
    "(mul (add ?x ?c) ?s)",
    "(add (mul ?x ?s) (mul ?c ?s))",
    "constant(c); constant(s); computed(x)",
  ),
  row(
    "factor-sum",
    "reassociates",
    "(add (mul ?x ?s) (mul ?y ?s))",
    "(mul (add ?x ?y) ?s)",
    "computed(x); computed(y)",
  ),
  row(
    "mul-of-quotient",
    "reassociates",
    "(mul ?x (div ?y ?z))",
    "(div (mul ?x ?y) ?z)",
    "float(x); constant(y); computed(x); computed(z)",
  ),
  row("pow-two", "reassociates", "(pow ?x ?c)", "(mul ?x ?x)", "all(c, 2); whole(x); float(x)"),
  row(
    "pow-half",
    "reassociates",
    "(pow ?x ?c)",
    "(sqrt ?x)",
    "all(c, 0.5); whole(x); float(x); nonNegative(x)",
  ),
  row(
    "pow-three",
    "reassociates",
    "(pow ?x ?c)",
    "(mul (mul ?x ?x) ?x)",
    "all(c, 3); whole(x); float(x)",
  ),
  row("max-zero", "exact", "(max ?x ?c)", "(relu ?x)", "all(c, 0); whole(x)"),
  row("relu-relu", "exact", "(relu (relu ?x))", "(relu ?x)"),
  sampled(
    row("relu-not-negative", "exact", "(relu ?x)", "?x", "nonNegative(x)"),
    "(relu (exp ?x))",
  ),
  sampled(
    row("abs-not-negative", "exact", "(abs ?x)", "?x", "nonNegative(x)"),
    "(abs (mul (relu ?x) (sigmoid ?y)))",
  ),
  row("relu-of-scaled", "exact", "(relu (mul ?x ?s))", "(mul (relu ?x) ?s)", "positive(s)"),
  row("sqrt-of-square", "reassociates", "(sqrt (mul ?x ?x))", "(abs ?x)", "float(x)"),
  row(
    "sigmoid-from-reciprocal",
    "reassociates",
    "(reciprocal (add (exp (neg ?x)) ?c))",
    "(sigmoid ?x)",
    "all(c, 1); whole(x); float(x)",
  ),
  row(
    "sigmoid-from-quotient",
    "reassociates",
    "(div ?d (add (exp (neg ?x)) ?c))",
    "(sigmoid ?x)",
    "all(c, 1); all(d, 1); whole(x); float(x)",
  ),
];
