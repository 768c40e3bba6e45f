/**
 * The analytical price of a statement under a schedule, from figures alone: what one trip of the
 * innermost loop issues, what the ragged ends of every tile run instead, the edges where padding is
 * tested element by element, and the traffic between each two levels of memory from the footprints of
 * the loops. Nothing is measured for the workload and nothing is lowered, but the terms follow what lower/
 * makes of a schedule: full tiles, shorter trips of a ragged loop, padded lanes, guarded edges.
 *
 *   time = max(core, traffic) + overlapLoss x min(core, traffic) + stalls + what surrounds the tiles
 */
import { distinctElements, laneOrder } from "../schedule/states/footprint.ts";
import {
  type AccessFigures,
  type LoopFigures,
  type NestFigures,
  type PackedAxis,
  packedAccess,
} from "../schedule/states/nest-figures.ts";
import { partsOf } from "../schedule/states/tile-parts.ts";
import type { Target } from "../target/target.ts";
import {
  type CoreFigures,
  foreseenTrips,
  type TrafficNs,
  together,
  trafficNs,
} from "./core-figures.ts";
import {
  edgeShare,
  leastScalarNs,
  leastTileNs,
  type PointWork,
  pointWork,
  roundings,
} from "./least-tile.ts";
import { dotArithmetic, type RunMix, widenedLoadArithmetic } from "./program-work.ts";
import { keptVectors, putAway } from "./put-away.ts";
import { Traffic } from "./traffic.ts";

/** Nanoseconds of one core by cause; `total` is what they come to together. */
export interface PriceTerms {
  readonly core: number;
  readonly around: number;
  readonly traffic: readonly number[];
  readonly total: number;
}

/** The loops of a statement, split into those of the tile and the reduction and those outside. */
interface SplitLoops {
  readonly outer: readonly LoopFigures[];
  readonly reduce: readonly LoopFigures[];
  readonly tile: readonly LoopFigures[];
}

/** One kind of tile that a schedule runs: whole, or what is left at a ragged end. */
interface TileVariant {
  readonly tile: readonly LoopFigures[];
  readonly count: number;
  /** One lane at a time. */
  readonly scalar: boolean;
}

/** Accesses under one packing, and what hangs on no tile. */
interface StoredAccesses {
  readonly accesses: readonly AccessFigures[];
  /** By loop: how many accesses it moves, and whether what it reads may be padded to whole lanes. */
  readonly moving: readonly number[];
  readonly padded: readonly boolean[];
  /** Tiles that were priced before: the ragged parts of many are the same. */
  readonly tileNs: Map<string, number>;
}

/** Nanoseconds of the tiles, and of the loops around them. */
export type CoreTerms = Pick<PriceTerms, "core" | "around">;

/** Prices schedules of one statement; figures of the packed accesses are kept. */
export class NestPricer {
  readonly #figures: NestFigures;
  readonly #core: CoreFigures;
  readonly #target: Target;
  readonly #fused: boolean;
  readonly #packed = new Map<string, StoredAccesses>();
  readonly #stores = new Map<readonly PackedAxis[], StoredAccesses>();
  readonly #traffic = new Map<readonly AccessFigures[], Traffic>();
  readonly #work: PointWork;
  readonly #extents: readonly number[];

  constructor(figures: NestFigures, target: Target, core: CoreFigures) {
    this.#figures = figures;
    this.#core = core;
    this.#target = target;
    this.#fused = target.capabilities.has("fma");
    this.#work = pointWork(figures, core, target);
    this.#extents = figures.loops.map((l) => l.extent);
  }

  price(loops: readonly LoopFigures[], packed: readonly PackedAxis[]): PriceTerms {
    const split = splitLoops(this.#figures, loops);
    const { core, around } = this.#coreTerms(split, packed);
    return this.combine(core, around, this.traffic(loops, packed));
  }

  combine(core: number, around: number, traffic: TrafficNs): PriceTerms {
    const total = together(core, traffic, this.#core) + around;
    return { core, around, traffic: traffic.levels, total };
  }

  /**
   * Time of the tiles and of the loops around them when every operand is in the nearest cache; where that
   * is beyond the limit, no more than is needed to see it.
   */
  coreTerms(
    loops: readonly LoopFigures[],
    packed: readonly PackedAxis[],
    limitNs = Infinity,
  ): CoreTerms {
    return this.#coreTerms(splitLoops(this.#figures, loops), packed, limitNs);
  }

  /** What `coreTerms` is never below, at a fraction of the work; beyond the limit at less of it. */
  leastNs(
    { around, micro }: Record<"around" | "micro", readonly LoopFigures[]>,
    packed: readonly PackedAxis[],
    limitNs = Infinity,
  ): number {
    const tile = { micro, packed, core: this.#core, limitNs };
    const core = leastTileNs(this.#figures, this.#work, tile);
    return core + roundings * this.aroundNs(around, packed);
  }

  /** What `coreTerms` of tiles without lanes is never below. */
  leastScalarNs(): number {
    return leastScalarNs(this.#figures, this.#work, this.#core);
  }

  accesses(packed: readonly PackedAxis[]): readonly AccessFigures[] {
    return this.#stored(packed).accesses;
  }

  #stored(packed: readonly PackedAxis[]): StoredAccesses {
    // Tiles that are stored alike share the list.
    const same = this.#stores.get(packed) ?? this.#storedAlike(packed);
    this.#stores.set(packed, same);
    return same;
  }

  #storedAlike(packed: readonly PackedAxis[]): StoredAccesses {
    const key = packed.map((p) => `${p.tensor} ${p.axis} ${p.width} ${p.depth ?? ""}`).join();
    const known = this.#packed.get(key);
    if (known) return known;
    const made = this.#storedAnew(packed);
    this.#packed.set(key, made);
    return made;
  }

  #storedAnew(packed: readonly PackedAxis[]): StoredAccesses {
    const { loops, reduces } = this.#figures;
    const accesses = this.#figures.accesses.map((a) => {
      const by = packed.find((p) => p.tensor === a.tensor);
      return by ? packedAccess(a, by) : a;
    });
    const isPacked = (a: AccessFigures): boolean => packed.some((p) => p.tensor === a.tensor);
    return {
      accesses,
      moving: loops.map((_, origin) => accesses.filter((a) => moves(a, origin)).length),
      padded: loops.map(
        (_, origin) =>
          reduces && accesses.every((a) => a.use !== "read" || !moves(a, origin) || isPacked(a)),
      ),
      tileNs: new Map(),
    };
  }

  #coreTerms(split: SplitLoops, packed: readonly PackedAxis[], limitNs = Infinity): CoreTerms {
    const stored = this.#stored(packed);
    const around = this.aroundNs(split.outer, packed);
    const timeOf = (variant: TileVariant, ns: (variant: TileVariant, edge: boolean) => number) => {
      const edges = edgeShare(this.#figures, this.#work.tested, variant.tile);
      const edge = edges > 0 ? ns(variant, true) : 0;
      return variant.count * (ns(variant, false) * (1 - edges) + edge * edges);
    };
    // No other tile has this one's whole variant, but many have its ragged ones.
    const anew = (v: TileVariant, edge: boolean) => this.#tileNs(v, split, stored.accesses, edge);
    const whole = wholeVariant(this.#figures, split);
    let core = whole ? timeOf(whole, anew) : 0;
    if (core + around > limitNs) return { core, around };
    const reduction = loopsKey(split.reduce);
    const known = (v: TileVariant, edge: boolean): number => {
      const key = `${edge ? "e" : ""}${v.scalar ? "s" : ""}${reduction}|${loopsKey(v.tile)}`;
      const ns = stored.tileNs.get(key) ?? anew(v, edge);
      stored.tileNs.set(key, ns);
      return ns;
    };
    const variants = tileVariants(this.#figures, split, stored.padded);
    for (let i = whole ? 1 : 0; i < variants.length; i++) core += timeOf(variants[i]!, known);
    return { core, around };
  }

  /** Time of the loops outside the tiles. */
  aroundNs(outer: readonly LoopFigures[], packed: readonly PackedAxis[]): number {
    const { loopInstructions, setupInstructions, issuePerNs } = this.#core;
    const { moving } = this.#stored(packed);
    let trips = 1;
    let around = 0;
    for (let depth = 0; depth < outer.length; depth++) {
      const l = outer[depth]!;
      trips *= l.trips;
      const setup = depth === outer.length - 1 ? setupInstructions : 0;
      around += (trips * (loopInstructions * (2 + moving[l.origin]!) + setup)) / issuePerNs;
    }
    return around;
  }

  #tileNs(
    variant: TileVariant,
    split: SplitLoops,
    accesses: readonly AccessFigures[],
    edge: boolean,
  ): number {
    const c = this.#core;
    const { reduces, combine, bodyCalls, finishCalls, isProduct } = this.#figures;
    const body = this.#figures.body + bodyCalls * (c.callFactor - 1);
    const finish = this.#figures.finish + finishCalls * (c.callFactor - 1);
    const still: LoopFigures[] = [];
    let vector: LoopFigures | undefined;
    let points = 1;
    for (const l of variant.tile) {
      if (l.mode === "vector") vector ??= l;
      else {
        still.push(l);
        points *= l.trips;
      }
    }
    let reduceLane: LoopFigures | undefined;
    let inner = still;
    let copies = 1;
    for (const l of split.reduce) {
      if (l.mode === "vector") reduceLane ??= l;
      else if (l.mode === "unroll") {
        inner = [...inner, l];
        copies *= l.trips;
      }
    }
    const lane = vector?.origin;
    const laneOf = lane ?? reduceLane?.origin;
    const lanes = vector?.trips ?? reduceLane?.trips ?? 1;
    const step = new InstructionMix();
    const end = new InstructionMix();
    const context = { laneOf, lanes, edge, variant };
    const kept = keptVectors(points, this.#figures);
    let narrowest = Infinity;
    let loaded = 0;
    // Lanes of results and of the depth together: dot products, of pairs where the depth has two.
    const isDot = lane !== undefined && reduceLane !== undefined;
    const arePairs = isDot && reduceLane?.trips === 2;
    // Those of bytes, which are widened.
    let weights = 0;
    // What a later copy of the step uses again is kept until then.
    let again = 0;
    for (const a of accesses) {
      if (a.use !== "read") continue;
      const count = this.#load(a, inner, context, step);
      const each = inner === still ? count : distinctElements(a, still);
      loaded += count;
      const isUniform = laneOrder(a, laneOf) === "uniform";
      // A group of bytes is as many as its terms.
      if (!isUniform && a.bytes === reduceLane?.trips) weights += count;
      if (a.widening > 0 && !isDot)
        step.arithmetic += count * (isUniform ? widenedScalar : a.widening);
      again += (copies * each - count) / Math.max(1, copies - 1);
      narrowest = Math.min(narrowest, each);
    }
    const near = Math.min(narrowest, points) + (this.#target.compiledByEngine ? 0 : again);
    const ahead = near + c.loadsAhead * Math.max(0, loaded - near);
    const loadsFirst = this.#target.compiledByEngine === true;
    if (arePairs) step.arithmetic += widenedLoadArithmetic({ loadsFirst }) * weights;
    const dot = arePairs ? dotArithmetic({ loadsFirst }) : 1;
    const product = isDot ? dot : body - 1 + (this.#fused ? 1 : 2);
    const perPoint = isProduct ? product : body + combine;
    step.arithmetic += copies * points * (reduces ? perPoint : body);
    for (const a of accesses) {
      if (a.use === "finish") this.#load(a, still, { ...context, laneOf: lane }, end);
      else if (a.use === "write") this.#store(a, points, { ...context, laneOf: lane }, end);
    }
    end.arithmetic += points * finish;
    if (reduces) end.other += points * Math.max(1, this.#figures.components);
    if (reduceLane && !isDot) end.other += points * lanes * 3;
    const spills = putAway({ kept, ahead, copies, reduces }, this.#work.room);
    step.memory += spills * c.spillInstructions;
    if (!reduces) {
      step.add(end);
      return step.ns(c) + 0;
    }
    // Chains of one accumulator: each copy waits for the one before.
    const chain = combine > 0 ? this.#chainNs(copies, spills) : 0;
    let ns = Math.max(step.ns(c), chain);
    let isInner = true;
    for (let i = split.reduce.length - 1; i >= 0; i--) {
      const loop = split.reduce[i]!;
      if (loop.mode !== "serial") continue;
      let pointers = 0;
      for (const a of accesses) {
        if (a.use === "read" && moves(a, loop.origin)) pointers += this.#pointers(a, inner);
      }
      const control = c.loopInstructions * (2 + pointers);
      // A short loop's end is foreseen.
      const unforeseen = Math.min(1, loop.trips / foreseenTrips);
      const setup = (pointers * c.setupInstructions) / c.issuePerNs + c.loopEndNs * unforeseen;
      // Loop control issues beside arithmetic that waits for its operands.
      ns =
        (isInner ? Math.max(step.nsWith(c, control), chain) : ns + control / c.issuePerNs) *
          loop.trips +
        setup;
      isInner = false;
    }
    return ns + end.ns(c) + c.latencyNs;
  }

  /** A step's links of a chain: multiply-adds where they are fused, additions elsewhere. */
  #chainNs(copies: number, spills: number): number {
    const additions = this.#work.isFusedProduct ? 0 : copies;
    return chainNs({ chain: copies, additions, spills }, this.#core);
  }

  /** Pointers that an access needs: copies whose distance is known only at run time have one each. */
  #pointers(a: AccessFigures, copies: readonly LoopFigures[]): number {
    let pointers = 1;
    for (const l of copies) {
      if (a.axes.some((x) => x.open && x.steps[l.origin] !== 0)) pointers *= l.trips;
    }
    return pointers;
  }

  /** Adds the loads of an access over copied loops to the mix; gives their number. */
  #load(
    a: AccessFigures,
    copies: readonly LoopFigures[],
    { laneOf, lanes, edge }: LoadContext,
    mix?: InstructionMix,
  ): number {
    const c = this.#core;
    const count = distinctElements(a, copies);
    const order = a.scattered ? "apart" : laneOrder(a, laneOf);
    const guarded = edge && a.guarded;
    const apart =
      order === "apart" || (guarded && laneOf !== undefined && a.guardLoops.includes(laneOf));
    const each = laneOf === undefined ? 1 : lanes;
    if (!mix) return count;
    if (apart && each > 1) {
      mix.loads += count * each;
      mix.other += count * each * (c.gatherInstructions - 1);
      if (guarded) mix.other += count * each * c.guardInstructions;
      return count;
    }
    mix.loads += count;
    if (order === "uniform" && each > 1) mix.other += count * c.splatInstructions;
    if (guarded) mix.other += count * c.guardInstructions;
    return count;
  }

  #store(
    a: AccessFigures,
    points: number,
    { laneOf, lanes, variant }: LoadContext,
    mix: InstructionMix,
  ): void {
    const apart = laneOf !== undefined && (a.scattered || laneOrder(a, laneOf) !== "contiguous");
    if (apart && !variant.scalar) {
      mix.stores += points * lanes;
      mix.other += points * lanes;
    } else mix.stores += points;
  }

  traffic(loops: readonly LoopFigures[], packed: readonly PackedAxis[]): TrafficNs {
    const accesses = this.accesses(packed);
    const known = this.#traffic.get(accesses);
    const model = known ?? new Traffic(accesses, this.#extents, this.#target);
    if (!known) this.#traffic.set(accesses, model);
    return trafficNs(model.of(loops), this.#core);
  }
}

/** Updates of one sum, of which `additions` multiply nothing; where values are put away some pass through memory. */
export function chainNs(
  { chain, additions, spills }: Pick<RunMix, "chain" | "additions" | "spills">,
  c: CoreFigures,
): number {
  const links = (chain - additions) * c.latencyNs + additions * c.additionNs;
  return links + Math.min(chain, spills / 2) * c.reloadNs;
}

/** A float of 16 bits that all lanes read passes through a general register, where it is widened. */
const widenedScalar = 3;

interface LoadContext {
  readonly laneOf: number | undefined;
  readonly lanes: number;
  readonly edge: boolean;
  readonly variant: TileVariant;
}

class InstructionMix {
  loads = 0;
  stores = 0;
  arithmetic = 0;
  /** Both loads and stores of spilled values. */
  memory = 0;
  other = 0;

  add(by: InstructionMix): void {
    this.loads += by.loads;
    this.stores += by.stores;
    this.arithmetic += by.arithmetic;
    this.memory += by.memory;
    this.other += by.other;
  }

  ns(c: CoreFigures): number {
    return this.nsWith(c, 0);
  }

  /** With so many instructions of control beside. */
  nsWith(c: CoreFigures, control: number): number {
    const { loads, stores, arithmetic, memory, other } = this;
    return Math.max(
      (loads + stores + arithmetic + memory + other + control) / c.issuePerNs,
      arithmetic / c.arithmeticPerNs,
      (loads + memory / 2) / c.loadsPerNs,
      (stores + memory / 2) / c.storesPerNs,
    );
  }
}

function moves({ axes }: AccessFigures, origin: number): boolean {
  for (const { steps } of axes) if (steps[origin] !== 0) return true;
  return false;
}

function splitLoops(figures: NestFigures, loops: readonly LoopFigures[]): SplitLoops {
  const outer: LoopFigures[] = [];
  const reduce: LoopFigures[] = [];
  const tile: LoopFigures[] = [];
  for (const l of loops) {
    const inTile =
      l.mode === "unroll" || l.mode === "vector" || (reduce.length > 0 && l.mode !== "grid");
    if (figures.loops[l.origin]!.kind === "reduce") reduce.push(l);
    else if (inTile) tile.push(l);
    else outer.push(l);
  }
  return { outer, reduce, tile };
}

function loopsKey(loops: readonly LoopFigures[]): string {
  let key = "";
  for (const { origin, unit, trips, mode } of loops) key += `${origin},${unit},${trips},${mode};`;
  return key;
}

/**
 * Whole tiles, and what runs where one sticks out: a smaller tile where the extent is known, else the ragged
 * loop's copies in parts (schedule/states/tile-parts.ts) with the rest of the tile; a ragged vector lane by lane unless its operands are padded.
 */
function tileVariants(
  figures: NestFigures,
  { tile, outer }: SplitLoops,
  padded: readonly boolean[],
): readonly TileVariant[] {
  let variants: TileVariant[] = [{ tile: [], count: 1, scalar: false }];
  const done = new Set<number>();
  for (const { origin } of tile) {
    if (done.has(origin)) continue;
    done.add(origin);
    const parts = tile.filter((l) => l.origin === origin);
    const options = raggedParts(figures.loops[origin]!, parts, padded[origin]!);
    variants = variants.flatMap((v) =>
      options.map((o) => ({
        tile: [...v.tile, ...o.tile],
        count: v.count * o.count,
        scalar: v.scalar || o.scalar,
      })),
    );
  }
  const free = outer.filter((l) => !done.has(l.origin)).reduce((n, l) => n * l.trips, 1);
  return variants.map((v) => ({ ...v, count: v.count * free }));
}

/** The tile as it stands, and how often; undefined where it sticks out of some loop from its first trip. */
function wholeVariant(figures: NestFigures, { tile, outer }: SplitLoops): TileVariant | undefined {
  // Parts of one loop together, loops in the order of their first parts.
  const parts: LoopFigures[] = [];
  let count = 1;
  for (let first = 0; first < tile.length; first++) {
    const { origin } = tile[first]!;
    if (isAmong(parts, origin)) continue;
    let width = 1;
    for (let i = first; i < tile.length; i++) {
      const part = tile[i]!;
      if (part.origin !== origin) continue;
      parts.push(part);
      width *= part.trips;
    }
    count *= Math.floor(figures.loops[origin]!.extent / width);
    if (count === 0) return undefined;
  }
  for (const l of outer) if (!isAmong(parts, l.origin)) count *= l.trips;
  return count > 0 ? { tile: parts, count, scalar: false } : undefined;
}

function isAmong(loops: readonly LoopFigures[], origin: number): boolean {
  for (const l of loops) if (l.origin === origin) return true;
  return false;
}

/** What is left of a loop's copies, in the parts that they run in. */
function inParts(copies: LoopFigures, left: number): readonly TileVariant[] {
  const parts = copies.mode === "unroll" ? partsOf(copies.trips, left) : [];
  if (parts.length === 0) return left > 0 ? [{ tile: [], count: left, scalar: false }] : [];
  return parts.map((trips) => ({ tile: [{ ...copies, trips }], count: 1, scalar: false }));
}

/** How often the parts of one loop's tile run whole, by vectors, and lane by lane. */
function raggedParts(
  { extent, constant }: NestFigures["loops"][number],
  parts: readonly LoopFigures[],
  padded: boolean,
): readonly TileVariant[] {
  const width = parts.reduce((n, l) => n * l.trips, 1);
  const whole = Math.floor(extent / width);
  const found: TileVariant[] = [];
  if (whole > 0) found.push({ tile: parts, count: whole, scalar: false });
  let rest = extent - whole * width;
  const vector = parts.find((l) => l.mode === "vector");
  const others = parts.filter((l) => l.mode !== "vector");
  const [copies] = others;
  const isOneSmaller = constant && others.length === 1 && copies!.mode === "unroll";
  if (!vector) {
    if (rest > 0 && isOneSmaller) {
      found.push({ tile: [{ ...copies!, trips: rest }], count: 1, scalar: false });
    } else if (others.length === 1) found.push(...inParts(copies!, rest));
    else if (rest > 0) found.push({ tile: [], count: rest, scalar: false });
    return found;
  }
  const lanes = vector.trips;
  const vectors = Math.floor(rest / lanes) + (padded && rest % lanes > 0 ? 1 : 0);
  if (isOneSmaller && rest > 0 && rest % lanes === 0) {
    found.push({ tile: [{ ...copies!, trips: vectors }, vector], count: 1, scalar: false });
    return found;
  }
  if (vectors > 0) found.push({ tile: [vector], count: vectors, scalar: false });
  rest = padded ? 0 : rest % lanes;
  if (rest > 0) found.push({ tile: [], count: rest, scalar: true });
  return others.length === 0 && found.length === 0
    ? [{ tile: parts, count: 1, scalar: false }]
    : found;
}
