/**
 * The n-th roots of unity, cos and sin of 2 pi j / n: to the last bit where they are 0, 1 or a half's root, and
 * symmetric. What a transform makes of a real signal at its lowest and middle frequency then has an imaginary part of 0,
 * whose sign models ask for (a phase by hand: atan plus or minus pi).
 */

/** @param j any integer; @param n at least 1 */
export function unitRoot(j: number, n: number): readonly [cos: number, sin: number] {
  const turned = 4 * (((j % n) + n) % n);
  const quarter = Math.floor(turned / n);
  const [c, s] = inFirstQuarter(turned - quarter * n, n);
  const [re, im] = [
    [c, s],
    [-s, c],
    [-c, -s],
    [s, -c],
  ][quarter] as [number, number];
  // No zero has a sign.
  return [re + 0, im + 0];
}

/** Of the angle pi / 2 * r / n, 0 <= r < n. */
function inFirstQuarter(r: number, n: number): readonly [number, number] {
  if (2 * r === n) return [Math.SQRT1_2, Math.SQRT1_2];
  const angle = ((Math.PI / 2) * Math.min(r, n - r)) / n;
  const [near, far] = [Math.cos(angle), Math.sin(angle)];
  return 2 * r < n ? [near, far] : [far, near];
}
