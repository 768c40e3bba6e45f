/**
 * The error function in float64, to about 2 units in the last place. Small arguments use the series
 * of all-positive terms erf x = 2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (2n+1)!! (Abramowitz and
 * Stegun 7.1.6), large ones the continued fraction of erfc (7.1.14).
 */

const seriesLimit = 2.5;
const twoOverSqrtPi = 2 / Math.sqrt(Math.PI);

export function erf(x: number): number {
  const magnitude = Math.abs(x);
  if (Number.isNaN(x)) return x;
  if (magnitude > 6) return Math.sign(x);
  if (magnitude < seriesLimit) return erfSeries(x);
  return Math.sign(x) * (1 - erfcFraction(magnitude));
}

function erfSeries(x: number): number {
  const square = 2 * x * x;
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > Math.abs(sum) * 1e-17; n++) {
    term *= square / (2 * n + 1);
    sum += term;
  }
  return twoOverSqrtPi * Math.exp(-x * x) * sum;
}

/** erfc x = e^(-x^2) / sqrt(pi) / (x + (1/2)/(x + 1/(x + (3/2)/(x + …)))), evaluated from the far end. */
function erfcFraction(x: number): number {
  let tail = x;
  for (let n = 60; n >= 1; n--) tail = x + n / 2 / tail;
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * tail);
}
