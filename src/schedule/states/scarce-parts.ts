/**
 * Parts that small sizes leave to threads. Prices are those of the largest extents: a loop over blocks of 16 rows, of up
 * to 4,096, feeds any number of threads there, and one alone where a run has 16 rows. Sizes are taken to come evenly
 * by their logarithms, so that a way of dealing work out costs, over all of them, its price times as many threads
 * as there are to the power of the share of sizes that have fewer parts than threads. In: states with what their
 * dealt loop can be; out: those that none of less share is cheaper than by that.
 */

/** What is dealt out: a loop's extents and how many of its iterations are one part. */
export interface DealtLoop {
  readonly leastExtent: number;
  readonly extent: number;
  readonly unit: number;
}

/** Of the sizes of an open loop, the share that has fewer parts than there are threads; 0 where the extent is known. */
export function scarceShare({ leastExtent, extent, unit }: DealtLoop, threads: number): number {
  if (leastExtent >= extent) return 0;
  const enough = unit * (threads - 1) + 1;
  const share = Math.log(enough / leastExtent) / Math.log(extent / leastExtent);
  return Math.min(1, Math.max(0, share));
}

/** @param shareOf scarceShare of what a state deals out; undefined where it deals nothing out */
export function withoutScarce<S extends { readonly priceNs: number }>(
  states: readonly S[],
  shareOf: (state: S) => number | undefined,
  threads: number,
): readonly S[] {
  const weighed = states.map((state) => {
    const share = shareOf(state);
    return { state, share, ns: state.priceNs * threads ** (share ?? 0) };
  });
  const dealt = weighed.filter((w) => w.share !== undefined);
  const isBeaten = ({ share, ns }: (typeof weighed)[number]): boolean =>
    share !== undefined && share > 0 && dealt.some((o) => o.share! < share && o.ns < ns);
  return weighed.filter((w) => !isBeaten(w)).map((w) => w.state);
}
