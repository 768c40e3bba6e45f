/**
 * A region's superposition, narrowed in phases of which three keep their names from the systems before:
 *
 *   roofline    tiles whose time without any cache miss already passes the best schedule by more than the
 *               neighbours could ever refund: all their states go at once, unpriced
 *   symmetry    states that are the same code as another
 *   occupancy   states that are not among the best of their interface class, and ways to deal work out that
 *               leave threads without any where symbols are small, when another is as cheap
 *   code        states of tiles whose code was not made to be priced (refine-states.ts)
 *
 * The first two lose nothing. The third keeps `kept` of each class; a class of which another deals its work out
 * better and is within a hundredth as cheap goes whole, whatever its neighbours would have refunded it. In: a
 * region, prices (injected), a machine. Out: the states that are left, cheapest first, and the count of
 * everything that was removed and why. Across regions the choice is search/'s (model-problem.ts).
 */
import type { Region } from "../../region/nest.ts";
import type { Target } from "../../target/target.ts";
import type { Schedule } from "../directive.ts";
import { CheapestFirst } from "./cheapest-first.ts";
import type { LoopFigures, NestFigures, PackedAxis } from "./nest-figures.ts";
import { scarceShare, withoutScarce } from "./scarce-parts.ts";
import {
  isSameTile,
  type MicroTile,
  microLoops,
  type OuterChoice,
  outerLoops,
  type TileChoice,
} from "./tile-choice.ts";
import { TileSpace } from "./tile-space.ts";

/** The price of a tile: with every operand near, and under loops around it. */
export interface TilePrice {
  /** With every operand near; where that is beyond the limit, something beyond the limit. */
  readonly floorNs: (limitNs: number) => number;
  /** Under loops around the tile, outermost first, if every operand were near: no more than the total. */
  readonly nearNs: (outer: readonly LoopFigures[]) => number;
  /** Under loops around the tile. */
  readonly totalNs: (outer: readonly LoopFigures[]) => number;
}

/** The loops of a tile: outside in their own order, then the reduction and the tile's own. */
export interface TileLoops {
  readonly around: readonly LoopFigures[];
  readonly micro: readonly LoopFigures[];
}

/** Nanoseconds of one core. */
export interface TilePricer {
  readonly boundNs: number;
  /**
   * No more than a tile's floor, which takes far longer to find; of a tile that is beyond the limit it need not
   * be the best that can be told.
   */
  leastNs(
    figures: NestFigures,
    loops: TileLoops,
    packed: readonly PackedAxis[],
    limitNs?: number,
  ): number;
  tile(figures: NestFigures, loops: TileLoops, packed: readonly PackedAxis[]): TilePrice;
  /** What no tile without lanes stays below. */
  leastScalarNs(figures: NestFigures): number;
}

export interface RegionState {
  /** Absent where the machine's schedules are listed (block-candidates.ts). */
  readonly choice?: TileChoice;
  readonly schedule: () => Schedule;
  /** On one core, and on the threads that the program is made for. */
  readonly serialNs: number;
  readonly priceNs: number;
  /** How the region's results are dealt out to threads: what neighbours can tell. */
  readonly shares: string;
  /** The loop that is dealt out, of those that the region's figures name; of a tile its choice says it. */
  readonly parallel?: number;
}

export interface RegionFunnel {
  /** States that were named. */
  readonly generated: number;
  /** States that a constraint took away. */
  readonly removed: readonly { readonly constraint: string; readonly states: number }[];
  /** States that every hard constraint allows. */
  readonly legal: number;
  readonly roofline: number;
  readonly symmetry: number;
  readonly occupancy: number;
  readonly code: number;
  readonly kept: number;
}

export interface RegionStates {
  readonly figures: NestFigures;
  /** Cheapest first; at least one. */
  readonly states: readonly RegionState[];
  readonly funnel: RegionFunnel;
}

export interface NarrowingOptions {
  readonly threads: number;
  readonly pricer: TilePricer;
  /** The most that neighbours could make a state cheaper than its price says. */
  readonly refundNs: number;
}

/**
 * States that are dearer by so much are kept in sight: the price may be wrong by that, a measurement tells.
 * Floors are those of loops in their own order, which another order undercuts by far less than this.
 */
export const worthMeasuring = 1.15;
/** States of each interface class that the last phase keeps. */
const kept = 20;
/** Barriers that a region must outweigh before it is dealt out: its own, and what late threads cost. */
const barriersPerRegion = 4;

export function regionStates(
  region: Region,
  target: Target,
  options: NarrowingOptions,
): RegionStates {
  return new Narrowing(region, target, options).run();
}

/**
 * Tiles that were the cheapest, by the kinds of loops around them. Of the next region with such loops the
 * same tile is often the cheapest too: its price says soonest what the others are too dear for.
 */
export type CheapTiles = Map<string, MicroTile>;

/**
 * About what the cheapest state costs: the best tile under the loops in their own order. A quick guide for
 * who compares forms of a region; the price of the state that is chosen is never above it.
 * @param limitNs what another form costs: the answer where every tile is dearer
 * @param cheap where to begin; it decides how long this takes, not what comes out
 */
export function tileEstimateNs(
  region: Region,
  target: Target,
  {
    pricer,
    limitNs = Infinity,
    cheap,
  }: { readonly pricer: TilePricer; readonly limitNs?: number; readonly cheap: CheapTiles },
): number {
  const space = new TileSpace(region, target, { parallel: false, isCounted: false });
  const { figures } = space;
  const kinds = `${figures.loops.map((l) => l.kind)} ${figures.accesses.length}`;
  const seed = cheap.get(kinds);
  const inLanes = cheapestOf(space, space.tilesInLanes(), { pricer, limitNs, seed });
  if (inLanes.micro) cheap.set(kinds, inLanes.micro);
  if (pricer.leastScalarNs(figures) >= inLanes.ns) return inLanes.ns;
  return cheapestOf(space, space.scalarTiles(), { pricer, limitNs: inLanes.ns }).ns;
}

interface CheapestTile {
  readonly ns: number;
  readonly micro?: MicroTile;
}

/** The cheapest of these tiles with its price, or the limit. */
function cheapestOf(
  space: TileSpace,
  micros: readonly MicroTile[],
  {
    pricer,
    limitNs,
    seed,
  }: {
    readonly pricer: TilePricer;
    readonly limitNs: number;
    readonly seed?: MicroTile | undefined;
  },
): CheapestTile {
  const { figures, lanes } = space;
  const { outer } = space.plain();
  let best: CheapestTile = { ns: limitNs };
  const loopsOf = (micro: MicroTile): TileLoops => ({
    around: outerLoops(figures, micro, { outer }, lanes),
    micro: microLoops(figures, micro, lanes),
  });
  const consider = (micro: MicroTile): void => {
    const loops = loopsOf(micro);
    const price = pricer.tile(figures, loops, micro.packed);
    if (price.floorNs(best.ns) >= best.ns) return;
    const ns = price.totalNs(loops.around);
    if (ns < best.ns) best = { ns, micro };
  };
  const first = seed && micros.find((micro) => isSameTile(micro, seed));
  if (first) consider(first);
  // Then those that may be cheap first. Loops are made again for the few that are looked at.
  const left: { readonly micro: MicroTile; readonly leastNs: number }[] = [];
  for (const micro of micros) {
    const leastNs = pricer.leastNs(figures, loopsOf(micro), micro.packed, best.ns);
    if (leastNs < best.ns) left.push({ micro, leastNs });
  }
  left.sort((a, b) => a.leastNs - b.leastNs);
  for (const { micro, leastNs } of left) {
    if (leastNs >= best.ns) break;
    consider(micro);
  }
  return best;
}

/** The superposition of schedules that are listed one by one, each with its price. */
export function listedStates(
  figures: NestFigures,
  schedules: readonly { readonly schedule: Schedule; readonly ns: number }[],
): RegionStates {
  const states = schedules.map(({ schedule, ns }): RegionState => {
    return { schedule: () => schedule, serialNs: ns, priceNs: ns, shares: "" };
  });
  states.sort(byPrice);
  const kept = states.length;
  return {
    figures,
    states,
    funnel: {
      generated: kept,
      removed: [],
      legal: kept,
      roofline: 0,
      symmetry: 0,
      occupancy: 0,
      code: 0,
      kept,
    },
  };
}

interface PricedTile {
  readonly micro: MicroTile;
  readonly loops: readonly LoopFigures[];
  /** The same for tiles that have packed the same. */
  readonly stored: number;
  readonly price: TilePrice;
}

class Narrowing {
  readonly #space: TileSpace;
  readonly #target: Target;
  readonly #options: NarrowingOptions;
  readonly #region: Region;
  readonly #threads: number;
  readonly #byClass = new Map<string, RegionState[]>();
  readonly #seen = new Set<number>();
  /** Numbers of what tiles have packed. */
  readonly #stored = new Map<string, number>();
  /** Of states that deal work out: the share of sizes at which there are fewer parts than threads. */
  readonly #scarce = new Map<RegionState, number>();
  #bestNs = Infinity;
  #roofline = 0;
  #symmetry = 0;
  #occupancy = 0;

  constructor(region: Region, target: Target, options: NarrowingOptions) {
    const threads = target.capabilities.has("threads") ? options.threads : 1;
    this.#region = region;
    this.#target = target;
    this.#options = options;
    this.#threads = threads;
    this.#space = new TileSpace(region, target, { parallel: threads > 1 });
  }

  run(): RegionStates {
    const { figures, lanes, funnel } = this.#space;
    const { pricer, refundNs } = this.#options;
    const { outer } = this.#space.plain();
    const micros = this.#space.microTiles();
    const loopsOf = (micro: MicroTile): TileLoops => ({
      around: outerLoops(figures, micro, { outer }, lanes),
      micro: microLoops(figures, micro, lanes),
    });
    const least = micros.map((micro) => pricer.leastNs(figures, loopsOf(micro), micro.packed));
    // Most are never looked at: only those that are keep their loops.
    const tiles = new Map<number, PricedTile>();
    const order = new CheapestFirst(least, (i, limitNs) => {
      const micro = micros[i]!;
      const loops = loopsOf(micro);
      const price = pricer.tile(figures, loops, micro.packed);
      const floorNs = price.floorNs(limitNs);
      const stored = this.#storedAs(micro);
      if (floorNs <= limitNs) tiles.set(i, { micro, loops: loops.micro, stored, price });
      return floorNs;
    });
    for (;;) {
      const i = order.next(this.#threads * (this.#bestNs * worthMeasuring + refundNs));
      if (i === undefined) break;
      const tile = tiles.get(i)!;
      for (const around of this.#space.outerChoices(tile.micro)) this.#add(tile, around);
    }
    for (const i of order.rest()) this.#roofline += this.#space.outerCount(micros[i]!);
    const states = [...this.#withoutScarce([...this.#byClass.values()].flat())].sort(byPrice);
    return {
      figures,
      states,
      funnel: {
        generated: funnel.generated,
        removed: [...funnel.removed].map(([constraint, n]) => ({ constraint, states: n })),
        legal: funnel.left,
        roofline: this.#roofline,
        symmetry: this.#symmetry,
        occupancy: this.#occupancy,
        code: 0,
        kept: states.length,
      },
    };
  }

  #schedule(choice: TileChoice): Schedule {
    const directives = this.#space.speller.directives(choice);
    return { region: this.#region.name, target: this.#target.name, directives };
  }

  #storedAs({ packed }: MicroTile): number {
    const key = packed.map((p) => `${p.tensor}.${p.axis}`).join();
    const known = this.#stored.get(key) ?? this.#stored.size;
    this.#stored.set(key, known);
    return known;
  }

  #add({ micro, loops, stored, price }: PricedTile, around: OuterChoice): void {
    const { figures, lanes } = this.#space;
    const outer = outerLoops(figures, micro, around, lanes);
    const key = codeKey(stored, outer, loops);
    if (this.#seen.has(key)) {
      this.#symmetry++;
      return;
    }
    this.#seen.add(key);
    const shares = around.parallel === undefined ? "" : figures.loops[around.parallel]!.name;
    const rivals = this.#byClass.get(shares) ?? [];
    this.#byClass.set(shares, rivals);
    const isDearer = (ns: number): boolean =>
      rivals.length === kept && picoseconds(ns) >= picoseconds(rivals.at(-1)!.priceNs);
    if (isDearer(this.#onThreads(price.nearNs(outer), outer, around))) {
      this.#occupancy++;
      return;
    }
    const serialNs = price.totalNs(outer);
    const priceNs = this.#onThreads(serialNs, outer, around);
    this.#bestNs = Math.min(this.#bestNs, priceNs);
    if (isDearer(priceNs)) {
      this.#occupancy++;
      return;
    }
    const choice: TileChoice = { ...micro, ...around };
    const state = { choice, schedule: () => this.#schedule(choice), serialNs, priceNs, shares };
    const share = this.#scarceShare(outer, around);
    if (share !== undefined) this.#scarce.set(state, share);
    insertSorted(rivals, state);
    if (rivals.length > kept) {
      rivals.pop();
      this.#occupancy++;
    }
  }

  #scarceShare([first]: readonly LoopFigures[], { parallel }: OuterChoice): number | undefined {
    if (parallel === undefined || !first) return undefined;
    const { leastExtent, extent } = this.#space.figures.loops[first.origin]!;
    return scarceShare({ leastExtent, extent, unit: first.unit }, this.#threads);
  }

  #withoutScarce(states: RegionState[]): readonly RegionState[] {
    const left = withoutScarce(states, (s) => this.#scarce.get(s), this.#threads);
    this.#occupancy += states.length - left.length;
    return left;
  }

  #onThreads(serialNs: number, [first]: readonly LoopFigures[], around: OuterChoice): number {
    if (around.parallel === undefined || !first) return serialNs;
    return onThreads(serialNs, first.trips, { target: this.#target, threads: this.#threads });
  }
}

/** The slowest thread's share of so many trips, and what meeting costs. */
export function onThreads(
  serialNs: number,
  trips: number,
  { target, threads }: { readonly target: Target; readonly threads: number },
): number {
  const share = Math.ceil(trips / threads) / trips;
  return serialNs * share + barriersPerRegion * target.barrierNs.value;
}

function byPrice(a: RegionState, b: RegionState): number {
  return picoseconds(a.priceNs) - picoseconds(b.priceNs) || compareText(a.shares, b.shares);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Prices are compared as integers, so that the choice does not hang on the last bit of a sum. */
export function picoseconds(ns: number): number {
  return Math.round(ns * 1000);
}

/** Behind all that are as cheap: among equal prices the earlier candidate stays first. */
function insertSorted(states: RegionState[], state: RegionState): void {
  const price = picoseconds(state.priceNs);
  let at = states.length;
  while (at > 0 && picoseconds(states[at - 1]!.priceNs) > price) at--;
  states.splice(at, 0, state);
}

/**
 * Equal for loops that run the same code in the same order: loops of one trip are none, and a loop that
 * continues the one around it is one with it. 53 bits of a hash: for that a string takes several times as long.
 */
function codeKey(
  stored: number,
  outer: readonly LoopFigures[],
  micro: readonly LoopFigures[],
): number {
  const now = [mixed(stored, 0x9e3779b9), mixed(stored, 0x85ebca6b)] satisfies KeyHalves;
  const before: KeyHalves = [now[0], now[1]];
  let [lastOrigin, lastUnit] = [-1, 0];
  let lastMode: LoopFigures["mode"] = "serial";
  const count = outer.length + micro.length;
  for (let i = 0; i < count; i++) {
    const { origin, unit, trips, mode } = i < outer.length ? outer[i]! : micro[i - outer.length]!;
    if (trips === 1 && mode !== "vector") continue;
    const continues =
      lastOrigin === origin &&
      mode === "serial" &&
      lastMode !== "unroll" &&
      lastUnit === unit * trips;
    if (continues) [now[0], now[1]] = before;
    else lastMode = mode;
    lastOrigin = origin;
    lastUnit = unit;
    [before[0], before[1]] = now;
    mix(now, 8 * origin + modeNumbers[lastMode]);
    mix(now, unit);
    mix(now, mode === "serial" || mode === "grid" ? 0 : trips);
  }
  return (now[0] >>> 0) * 2 ** 21 + (now[1] >>> 11);
}

type KeyHalves = [high: number, low: number];

const modeNumbers: Readonly<Record<LoopFigures["mode"], number>> = {
  ...{ serial: 0, vector: 1, unroll: 2, grid: 3 },
  ...{ blocks: 4, groups: 5, threads: 6 },
};

function mix(halves: KeyHalves, value: number): void {
  halves[0] = mixed(halves[0] ^ value, 0xcc9e2d51);
  halves[1] = mixed(halves[1] ^ value, 0x1b873593);
}

/** The finalizer of MurmurHash3 (Appleby 2011) over a product. */
function mixed(value: number, factor: number): number {
  let hash = Math.imul(value + 1, factor);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return hash ^ (hash >>> 13);
}
