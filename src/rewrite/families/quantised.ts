/**
 * Quantised values: reading what was just written, movement on the stored integers instead of the
 * numbers that they stand for (a quarter of the bytes), products of integers instead of numbers, and
 * zero points out of products, where they meet the sums of constant weights.
 */
import { type RuleRow, row, sampled } from "../rule-row.ts";

const moves = ["transpose", "reshape", "slice", "reverse"].flatMap((op) => [
  row(
    `${op}-of-dequantized`,
    "exact",
    `(${op}[?p] (dequantize[?q] ?x ?s ?z))`,
    `(dequantize[?q] (${op}[?p] ?x) ?s ?z)`,
    "perTensor(q); single(s); single(z)",
  ),
  row(
    `${op}-of-quantized`,
    "exact",
    `(quantize[?q] (${op}[?p] ?x) ?s ?z)`,
    `(${op}[?p] (quantize[?q] ?x ?s ?z))`,
    "perTensor(q); single(s); single(z)",
  ),
]);

/** A stored value and its zero point in 32 bits. */
const centred = (x: string, zero: string) => `(sub (cast[?j] ?${x}) (cast[?j] ?${zero}))`;

export const quantised: readonly RuleRow[] = [
  row(
    "quantize-dequantized",
    "exact",
    "(quantize[?p] (dequantize[?q] ?x ?s ?z) ?s ?z)",
    "?x",
    "perTensor(p); perTensor(q); positive(s); invertible(s); whole(x); single(s); single(z)",
  ),
  ...moves,
  sampled(
    row(
      "transpose-of-dequantized-by-axis",
      "exact",
      "(transpose[?p] (dequantize[?q] ?x ?s ?z))",
      "(dequantize[?r] (transpose[?p] ?x) ?s ?z)",
      "r = scalesBehind(q, p)",
    ),
    "#scales-by-axis",
  ),
  row(
    "concat-of-dequantized",
    "exact",
    "(concat[?a] (dequantize[?q] ?x ?s ?z) (dequantize[?q] ?y ?s ?z))",
    "(dequantize[?q] (concat[?a] ?x ?y) ?s ?z)",
    "perTensor(q); single(s); single(z)",
  ),
  row(
    "relu-of-dequantized",
    "exact",
    "(relu (dequantize[?q] ?x ?s ?z))",
    "(dequantize[?q] (max ?x ?z) ?s ?z)",
    "perTensor(q); single(z); positive(s); single(s); sameDType(x, z)",
  ),
  row(
    "extremum-of-dequantized",
    "exact",
    "(reduce[?r] (dequantize[?q] ?x ?s ?z))",
    "(dequantize[?q] (reduce[?r] ?x) ?s ?z)",
    "perTensor(q); single(s); single(z); positive(s); isExtremum(r)",
  ),
  sampled(
    row(
      "product-of-dequantized",
      "reassociates",
      "(contract[?a] (dequantize[?p] ?x ?s ?z) (dequantize[?q] ?w ?t ?y))",
      `(mul (cast[?f] (contract[?i] ${centred("x", "z")} ${centred("w", "y")})) (mul ?s ?t))`,
      "perTensor(p); perTensor(q); single(s); single(t); single(z); single(y); i = integerProduct(a, x, w); j = toInteger(); f = toWhole()",
    ),
    "#dequantized-product",
  ),
  row(
    "zero-point-out-of-product",
    "exact",
    "(contract[?a] (sub ?x ?z) ?w)",
    "(sub (contract[?a] ?x ?w) (mul (reshape[?q] (reduce[?r] ?w)) ?z))",
    "integer(x); constant(w); single(z); ownAccumulator(a, x); r = sumOfRight(a); q = placeOfRight(a, w)",
  ),
];
