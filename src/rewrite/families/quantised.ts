/**
 * Quantised values with one scale: reading what was just written, and movement on the stored integers
 * instead of the numbers that they stand for (a quarter of the bytes).
 */
import { type RuleRow, row } from "../rule-row.ts";

const moves = ["transpose", "reshape", "slice"].flatMap((op) => [
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

export const quantised: readonly RuleRow[] = [
  row(
    "quantize-dequantized",
    "exact",
    "(quantize[?p] (dequantize[?q] ?x ?s ?z) ?s ?z)",
    "?x",
    "perTensor(p); perTensor(q); positive(s); invertible(s); whole(x); single(s); single(z)",
  ),
  ...moves,
];
