/**
 * A region's best states priced again, by the code that they become. The coarse price decides which
 * tiles are worth making the code of; for these the fine one, injected, takes its place. A tile's other states
 * (orders, blocks, threads around it) move with it. In: what narrowing left, cheapest first. Out: the states of
 * those tiles under their new prices; the others go.
 */
import type { RegionState, RegionStates } from "./region-states.ts";

/** Nanoseconds of one core for the code of a state; undefined where it has none. */
export type FinePrice = (state: RegionState) => number | undefined;

/** Tiles of a region whose code is made, and how much dearer than the best they may seem. */
const mostTiles = 5;
const worthMaking = 1.6;

export function refineStates(from: RegionStates, finePrice: FinePrice): RegionStates {
  const cheapest = from.states[0]!.priceNs;
  const ratios = new Map<string, number>();
  const seen = new Set<string>();
  for (const state of from.states) {
    if (ratios.size === mostTiles || state.priceNs > worthMaking * cheapest) break;
    const tile = tileKey(state);
    if (seen.has(tile)) continue;
    seen.add(tile);
    const fine = finePrice(state);
    if (fine !== undefined) ratios.set(tile, fine / state.serialNs);
  }
  if (ratios.size === 0) return from;
  const states: RegionState[] = [];
  for (const state of from.states) {
    const ratio = ratios.get(tileKey(state));
    if (ratio === undefined) continue;
    const { serialNs, priceNs } = state;
    states.push({ ...state, serialNs: serialNs * ratio, priceNs: priceNs * ratio });
  }
  states.sort((a, b) => Math.round(1000 * a.priceNs) - Math.round(1000 * b.priceNs));
  const dropped = from.states.length - states.length;
  const { funnel } = from;
  return {
    ...from,
    states,
    funnel: { ...funnel, code: dropped, kept: states.length },
  };
}

/** What decides the code of a tile, whatever runs around it. */
function tileKey({ choice }: RegionState): string {
  if (!choice) return "";
  const { lane, reduceLane, rows, copied, step, packed } = choice;
  const parts = [lane?.loop, lane?.vectors, reduceLane, step, copied.join(".")];
  const unrolled = rows.map((r) => `${r.loop}x${r.count}`).join(".");
  return `${parts.join()} ${unrolled} ${packed.map((p) => `${p.tensor}.${p.axis}`).join(".")}`;
}
