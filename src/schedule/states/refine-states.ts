/**
 * A region's best states priced again, by the code that they become. The coarse price decides which
 * tiles are worth making the code of; for these the fine one, injected, takes its place. A tile's other states
 * (orders, blocks, threads around it) move with it. In: what narrowing left, cheapest first. Out: the states of
 * those tiles under their new prices; the others go.
 */
import type { Region } from "../../region/nest.ts";
import { regionHash } from "../../region/region-hash.ts";
import type { NestFigures } from "./nest-figures.ts";
import type { RegionState, RegionStates } from "./region-states.ts";

export interface Refining {
  readonly region: Region;
  /** No code of the region is faster. */
  readonly boundNs: number;
  /** Nanoseconds of one core for the code of a state; undefined where it has none. */
  readonly priceOf: (state: RegionState) => number | undefined;
  /** Tiles whose code may be made. */
  readonly mostTiles: number;
  /** What was found for tiles of equal regions: layers repeat in a model. */
  readonly known: Map<string, number>;
}

/** How much dearer than the best a tile whose code is made may seem. */
const worthMaking = 1.6;

export function refineStates(from: RegionStates, refining: Refining): RegionStates {
  const { region, boundNs, mostTiles, known, priceOf } = refining;
  const cheapest = from.states[0]!.priceNs;
  const ratios = new Map<string, number>();
  const seen = new Set<string>();
  const spelling = new TileSpelling(from.figures);
  const tileKey = (state: RegionState): string => spelling.tile(state);
  const regionKey = `${regionHash(region)} ${spelling.loops()}`;
  for (const state of from.states) {
    if (ratios.size === mostTiles || state.priceNs > worthMaking * cheapest) break;
    const tile = tileKey(state);
    if (seen.has(tile)) continue;
    seen.add(tile);
    const key = `${regionKey} ${tile}`;
    const ratio = known.get(key) ?? (priceOf(state) ?? Number.NaN) / state.serialNs;
    known.set(key, ratio);
    if (!Number.isNaN(ratio)) ratios.set(tile, ratio);
  }
  if (ratios.size === 0) return from;
  const states: RegionState[] = [];
  for (const state of from.states) {
    const ratio = ratios.get(tileKey(state));
    if (ratio === undefined) continue;
    const { serialNs, priceNs } = state;
    // A state's threads share the bound as they share its time.
    const refined = Math.max(ratio, boundNs / serialNs);
    states.push({ ...state, serialNs: serialNs * refined, priceNs: priceNs * refined });
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

/** Tiles by numbers, the same in regions that differ in names. */
class TileSpelling {
  readonly #figures: NestFigures;
  readonly #tensors: readonly string[];

  constructor(figures: NestFigures) {
    this.#figures = figures;
    this.#tensors = [...new Set(figures.accesses.map((a) => a.tensor))];
  }

  loops(): string {
    return this.#figures.loops.map((l) => `${l.kind}${l.extent}`).join();
  }

  /** What decides the code of a tile, whatever runs around it. */
  tile({ choice }: RegionState): string {
    if (!choice) return "";
    const { lane, reduceLane, rows, copied, step, packed } = choice;
    const parts = [lane?.loop, lane?.vectors, reduceLane, step, copied.join(".")];
    const unrolled = rows.map((r) => `${r.loop}x${r.count}`).join(".");
    const axes = packed.map((p) => `${this.#tensors.indexOf(p.tensor)}.${p.axis}`).join(".");
    return `${parts.join()} ${unrolled} ${axes}`;
  }
}
