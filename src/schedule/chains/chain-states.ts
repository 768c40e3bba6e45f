/**
 * The states of a chain narrowed like a region's (region-states.ts): every cut by a quick estimate of its
 * pieces, the best cuts by their statements' own superpositions, and those by the code that the chain
 * becomes. In: a chain, prices (injected). Out: states, cheapest first, and what was removed on the way.
 */
import type { ChainRegion } from "../../region/chains.ts";
import type { Region } from "../../region/nest.ts";
import { regionClass } from "../../region/region-hash.ts";
import type { Target } from "../../target/target.ts";
import { applySchedule } from "../apply.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { refineStates } from "../states/refine-states.ts";
import type { RegionMemory } from "../states/region-memory.ts";
import {
  onThreads,
  picoseconds,
  type RegionState,
  type RegionStates,
  type TilePricer,
  tileEstimateNs,
} from "../states/region-states.ts";
import { scarceShare, withoutScarce } from "../states/scarce-parts.ts";
import type { TileChoice } from "../states/tile-choice.ts";
import { TileSpace } from "../states/tile-space.ts";
import { type ChainCut, ChainSpace, type ChainState } from "./chain-space.ts";

export interface ChainPricing {
  readonly target: Target;
  readonly threads: number;
  readonly memory: RegionMemory;
  readonly pricerOf: (region: Region) => TilePricer;
  /** The price of a schedule by the code that it becomes; undefined where it has none. */
  readonly codePriceOf: (scheduled: ScheduledRegion) => number | undefined;
}

/** Cuts whose statements' tiles are chosen with care, and tiles whose code is made of each and of a region by itself. */
const mostCuts = 2;
const tilesRefined = 4;

/** A line that is written and does not stay: brought in, put back, fetched by its reader. */
const movesOfDisplaced = 3;

/**
 * What a result costs beside the time of who makes and reads it: by the share of a core's own cache that it
 * takes up it is gone from there when it is read, so it was brought in to be written, put back and
 * fetched again.
 */
export function displacedNs(bytes: number, { memory }: Target): number {
  const [, own, shared] = memory;
  if (!own?.capacityBytes || !shared) return 0;
  const gone = Math.min(1, bytes / own.capacityBytes.value);
  return (movesOfDisplaced * gone * bytes) / shared.bytesPerNsPerCore.value;
}

/** About what the cheapest cut costs; undefined where no cut fits. */
export function cheapestCut(chain: ChainRegion, pricing: ChainPricing): RankedCut | undefined {
  return rankedCuts(new ChainSpace(chain, pricing.target), pricing)[0];
}

/** What was found of a chain, whatever its names: cuts in order, as few as are looked at with care. */
export interface KnownChain {
  /** Cuts that fit. */
  readonly fitting: number;
  /** Those that have code, with the tile of each statement and nanoseconds of one core. */
  readonly cuts: readonly {
    readonly cut: ChainCut;
    readonly tiles: readonly TileChoice[];
    readonly serialNs: number;
  }[];
}

/** Undefined where no cut has code. */
export function chainStates(chain: ChainRegion, pricing: ChainPricing): RegionStates | undefined {
  const { target, memory } = pricing;
  const space = new ChainSpace(chain, target);
  const key = `${chain.sharedLoops} ${regionClass(chain).key}`;
  const known = memory.chainStates.get(key) ?? narrowed(space, pricing);
  memory.chainStates.set(key, known);
  const states: RegionState[] = [];
  const scarce = new Map<RegionState, number>();
  const parallels = parallelLoops(space, pricing);
  for (const { cut, tiles: choices, serialNs } of known.cuts) {
    const tiles = choices.map((choice, at) => spelledTile(space, { at, cut, choice }, target));
    for (const parallel of parallels) {
      const state = { cut, tiles, ...(parallel !== undefined && { parallel }) };
      const made = stateOf(space, state, serialNs, pricing);
      states.push(made);
      const share = shareOf(space, state, pricing.threads);
      if (share !== undefined) scarce.set(made, share);
    }
  }
  if (states.length === 0) return undefined;
  const left = [...withoutScarce(states, (s) => scarce.get(s), pricing.threads)].sort(
    (a, b) => picoseconds(a.priceNs) - picoseconds(b.priceNs),
  );
  const legal = known.fitting * parallels.length;
  const kept = left.length;
  return {
    figures: space.figures,
    states: left,
    funnel: {
      generated: legal,
      removed: [],
      legal,
      roofline: 0,
      symmetry: 0,
      occupancy: legal - kept,
      code: 0,
      kept,
    },
  };
}

function narrowed(space: ChainSpace, pricing: ChainPricing): KnownChain {
  const ranked = rankedCuts(space, pricing);
  const cuts = ranked.slice(0, mostCuts).flatMap(({ cut }) => {
    const tiles = space.region.statements.map((_, at) => bestTile(space, at, cut, pricing));
    const applied = applySchedule(space.region, space.schedule({ cut, tiles }));
    const serialNs = applied.ok ? pricing.codePriceOf(applied.value) : undefined;
    return serialNs === undefined ? [] : [{ cut, tiles: tiles.map((t) => t.choice!), serialNs }];
  });
  return { fitting: ranked.length, cuts };
}

/** The tile of a statement's piece in the chain's own names; nothing is packed for a piece. */
function spelledTile(
  space: ChainSpace,
  { at, cut, choice }: { readonly at: number; readonly cut: ChainCut; readonly choice: TileChoice },
  target: Target,
): ChainState["tiles"][number] {
  return {
    schedule: () => {
      const region = space.statementRegion(at, cut);
      const { speller } = new TileSpace(region, target, { parallel: false });
      return { region: region.name, target: target.name, directives: speller.directives(choice) };
    },
  };
}

function stateOf(
  space: ChainSpace,
  state: ChainState,
  serialNs: number,
  { target, threads }: ChainPricing,
): RegionState {
  const { cut, parallel } = state;
  const trips = parallel === undefined ? undefined : space.trips(cut, parallel);
  return {
    schedule: () => space.schedule(state),
    serialNs,
    priceNs: trips === undefined ? serialNs : onThreads(serialNs, trips, { target, threads }),
    shares: parallel === undefined ? "" : space.figures.loops[parallel]!.name,
    ...(parallel !== undefined && { parallel }),
  };
}

/** Of the sizes, those that leave threads without a part: the problems of a batch of one do, its heads do not. */
function shareOf(
  space: ChainSpace,
  { cut, parallel }: Pick<ChainState, "cut" | "parallel">,
  threads: number,
): number | undefined {
  if (parallel === undefined) return undefined;
  const { leastExtent, extent } = space.figures.loops[parallel]!;
  return scarceShare({ leastExtent, extent, unit: parallel === cut.loop ? cut.rows : 1 }, threads);
}

/** Common loops that may be dealt out; none of them first. */
function parallelLoops(
  space: ChainSpace,
  { target, threads }: ChainPricing,
): readonly (number | undefined)[] {
  if (!target.capabilities.has("threads") || threads < 2) return [undefined];
  return [undefined, ...Array.from({ length: space.shared }, (_, i) => i)];
}

interface RankedCut {
  readonly cut: ChainCut;
  /** Of one core, by the pieces alone. */
  readonly ns: number;
  /** What the memory of the pieces costs beside that. */
  readonly heldNs: number;
}

function rankedCuts(space: ChainSpace, pricing: ChainPricing): readonly RankedCut[] {
  const ranked = space.cuts().map((cut) => {
    const pieceNs = space.region.statements.reduce(
      (ns, _, at) => ns + estimateOf(space.statementRegion(at, cut), pricing),
      0,
    );
    const pieces = space.pieces(cut);
    const heldNs = pieces * displacedNs(space.pieceBytes(cut), pricing.target);
    return { cut, ns: pieceNs * pieces, heldNs };
  });
  return ranked.sort((a, b) => picoseconds(a.ns + a.heldNs) - picoseconds(b.ns + b.heldNs));
}

/** By the class of the piece: layers and sub-chains ask the same. */
function estimateOf(region: Region, { target, memory, pricerOf }: ChainPricing): number {
  const key = `piece ${regionClass(region).key}`;
  const known = memory.prices.get(key);
  if (known !== undefined) return known;
  const asked = { pricer: pricerOf(region), cheap: memory.cheap };
  const ns = tileEstimateNs(region, target, asked);
  memory.prices.set(key, ns);
  return ns;
}

function bestTile(
  space: ChainSpace,
  at: number,
  cut: ChainCut,
  pricing: ChainPricing,
): RegionState {
  return bestState(space.statementRegion(at, cut), { threads: 1, refundNs: 0 }, pricing);
}

/** The cheapest state by code of a region by itself: chains and what they replace are refined alike. */
export function bestState(
  region: Region,
  { threads, refundNs }: { readonly threads: number; readonly refundNs: number },
  { target, memory, pricerOf, codePriceOf }: ChainPricing,
): RegionState {
  const pricer = () => pricerOf(region);
  const found = memory.states.statesOf(region, target, { threads, pricer, refundNs });
  const priceOf = (state: RegionState): number | undefined => {
    const applied = applySchedule(region, state.schedule());
    return applied.ok ? codePriceOf(applied.value) : undefined;
  };
  const { boundNs } = pricer();
  const refined = refineStates(found, {
    region,
    boundNs,
    priceOf,
    mostTiles: tilesRefined,
    known: memory.tiles,
  });
  return refined.states[0]!;
}
