/** How alike two lists order the same things: Spearman's rho. In: two lists of numbers. Out: -1 to 1. */
import { invariant } from "./invariant.ts";

/** Rank correlation (Spearman's rho; equal values share the mean of their ranks); 0 where one side is constant. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  invariant(a.length === b.length && a.length > 1, () => `ranks of ${a.length} and ${b.length}`);
  const [x, y] = [ranksOf(a), ranksOf(b)];
  const mean = (a.length - 1) / 2;
  let [both, own, other] = [0, 0, 0];
  for (let i = 0; i < x.length; i++) {
    const [dx, dy] = [x[i]! - mean, y[i]! - mean];
    both += dx * dy;
    own += dx * dx;
    other += dy * dy;
  }
  return own === 0 || other === 0 ? 0 : both / Math.sqrt(own * other);
}

function ranksOf(values: readonly number[]): Float64Array {
  const order = values.map((_, i) => i).sort((i, j) => values[i]! - values[j]!);
  const ranks = new Float64Array(values.length);
  for (let from = 0; from < order.length; ) {
    let to = from;
    while (to + 1 < order.length && values[order[to + 1]!] === values[order[from]!]) to++;
    for (let k = from; k <= to; k++) ranks[order[k]!] = (from + to) / 2;
    from = to + 1;
  }
  return ranks;
}
