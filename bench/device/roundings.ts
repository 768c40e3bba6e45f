/**
 * How far results may be from float64 where every operator rounds, in roundings (half a unit in the last
 * place of a number just above a power of two).
 */

/** Roundings of results and of what they are made of, which are as large as a line's results. */
export const resultRoundings = 4;

/**
 * Of each result of a softmax: power, sum and quotient are rounded once, and so is x - max, whose rounding
 * is as many times larger as it is itself and a relative error of the power. Rows that are longer have
 * a larger maximum.
 */
export function softmaxRoundings(x: Float64Array): Float64Array {
  const largest = x.reduce((a, b) => Math.max(a, b));
  return x.map((v) => 3 + largest - v);
}
