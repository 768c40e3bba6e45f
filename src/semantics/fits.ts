/**
 * Coefficients of the polynomials by which emitters spell transcendental functions of f32: numbers that
 * belong to the functions, not to a machine.
 */
const factorials = [1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800];

/** 1 / k! for k from 0: the Taylor series of e^x. */
export const inverseFactorials: readonly number[] = factorials.map((k) => 1 / k);

/**
 * (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, from the constant up: the least largest error of e^r, 3.1e-9 of it,
 * computed for this project by weighted least squares.
 */
export const expFit: readonly number[] = [
  ...[0.49999993447786656, 0.1666652063148831, 0.04166838804590721, 0.008368716900273004],
  0.0013814598680810905,
];

/** erf x = x * sum over n of erfSeries[n] * x^(2 n): its Taylor series, good below 1. */
export const erfSeries: readonly number[] = factorials.map(
  (k, n) => ((n % 2 ? -2 : 2) / k / (2 * n + 1)) * Math.sqrt(1 / Math.PI),
);

/** erf on [1, 4] in u = (x - 2.5) / 1.5: a Chebyshev fit computed for this project, error 1e-8. */
export const erfFit: readonly number[] = [
  ...[0.9995930476, 0.003267276919, -0.01225279947, 0.02818722266, -0.04365193425, 0.04639105124],
  ...[-0.03186589638, 0.009574278349, 0.006630969947, -0.01040347252, 0.004676661908],
  ...[0.001536217156, -0.002039517805, 0.00009703090589, 0.000259857074],
];
