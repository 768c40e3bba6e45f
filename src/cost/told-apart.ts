/** Whether two programs are told apart by their prices, which err by a share of what they price. */

/** A region by what it computes, and its price on one core. */
export interface PricedRegion {
  readonly key: string;
  readonly ns: number;
}

/** Share of a program's price that prices do not tell apart: a graph that saves no more is not worth it. */
const leastSaving = 0.002;
/**
 * The same of the regions that differ. Measured on the models of the benches: what was priced lower by less
 * came out between 1 % slower and 1 % faster, what was priced lower by more up to 4 % faster.
 */
const leastOfChanged = 0.01;
/**
 * Whether prices tell a program from one that saves a share of its price: a price errs by a share of what
 * it prices, so what counts is how much is saved of the regions that the other does not have.
 */
export function isToldApart(
  saved: number,
  before: readonly PricedRegion[],
  after: readonly PricedRegion[],
): boolean {
  const left = new Map<string, number>();
  for (const { key } of after) left.set(key, (left.get(key) ?? 0) + 1);
  let [all, changed] = [0, 0];
  for (const { key, ns } of before) {
    all += ns;
    const others = left.get(key) ?? 0;
    if (others > 0) left.set(key, others - 1);
    else changed += ns;
  }
  return saved > Math.max(leastSaving, leastOfChanged * (changed / all));
}
