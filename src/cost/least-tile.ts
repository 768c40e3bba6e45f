/**
 * A time that no tile can stay below, from products of extents alone: what its arithmetic, its sums one
 * after another and one load of every operand a step take. In: figures of a statement, the loops of its
 * tile and its reduction. Out: nanoseconds that nest-price.ts's exact figure never falls below, at a
 * fraction of its cost, so that most tiles need not be priced to be passed over.
 */
import { laneOrder } from "../schedule/states/footprint.ts";
import type {
  AccessFigures,
  LoopFigures,
  NestFigures,
  PackedAxis,
} from "../schedule/states/nest-figures.ts";
import type { Target } from "../target/target.ts";
import { type CoreFigures, foreseenTrips } from "./core-figures.ts";
import { keptVectors, putAway, type RegisterRoom, registerRoom } from "./put-away.ts";

/** The exact price is summed in another order: the last bits of both may differ. */
export const roundings = 1 - 1e-9;

/** What a statement's points take, whatever the tile. */
export interface PointWork {
  /** Arithmetic of one vector of points, in each step of a reduction; of dot products apart. */
  readonly arithmetic: number;
  readonly dotArithmetic: number;
  /** Arithmetic and stores once per vector of results. */
  readonly finish: number;
  readonly writes: number;
  readonly reads: readonly AccessFigures[];
  /** By loop: reads that it moves, each with a pointer at least. */
  readonly moving: readonly number[];
  /** Space loops that guards of reads mention. */
  readonly tested: readonly number[];
  /** Iterations of all space loops. */
  readonly points: number;
  readonly room: RegisterRoom;
  /** A step of the reduction multiplies and adds in one operation. */
  readonly isFusedProduct: boolean;
}

export function pointWork(
  figures: NestFigures,
  { callFactor }: CoreFigures,
  target: Target,
): PointWork {
  const isFused = target.capabilities.has("fma");
  const { combine, reduces, isProduct, loops, accesses } = figures;
  const body = figures.body + figures.bodyCalls * (callFactor - 1);
  const product = body - 1 + (isFused ? 1 : 2);
  const folded = isProduct ? product : body + combine;
  const used = (use: string) => accesses.filter((a) => a.use === use);
  return {
    arithmetic: reduces ? folded : body,
    dotArithmetic: isProduct ? 1 : folded,
    finish: figures.finish + figures.finishCalls * (callFactor - 1),
    writes: used("write").length,
    reads: used("read"),
    moving: loops.map(
      (_, l) => used("read").filter((a) => a.axes.some((x) => x.steps[l] !== 0)).length,
    ),
    tested: [...new Set(used("read").flatMap((a) => a.guardLoops))].filter(
      (l) => loops[l]!.kind === "space",
    ),
    points: loops.reduce((n, l) => (l.kind === "reduce" ? n : n * l.extent), 1),
    room: registerRoom(target, figures.literals),
    isFusedProduct: isFused && isProduct,
  };
}

/** The loops of a tile and of its reduction, and what is packed for it. */
interface TileOf {
  readonly micro: readonly LoopFigures[];
  readonly packed: readonly PackedAxis[];
  readonly core: CoreFigures;
}

/** What no tile without lanes stays below: its arithmetic, point by point. */
export function leastScalarNs(
  { loops }: NestFigures,
  { arithmetic }: PointWork,
  { arithmeticPerNs }: CoreFigures,
): number {
  const steps = loops.reduce((n, l) => n * l.extent, 1);
  return roundings * ((steps * arithmetic) / arithmeticPerNs);
}

/** @param tile with what other forms cost: beyond that a figure that is lower, but not below it, will do */
export function leastTileNs(
  figures: NestFigures,
  work: PointWork,
  { micro, packed, core: c, limitNs }: TileOf & { readonly limitNs: number },
): number {
  let lanes = 1;
  let copies = 1;
  let trips = 1;
  let width = 1;
  let isInLanes = false;
  for (const l of micro) {
    const isReduce = figures.loops[l.origin]!.kind === "reduce";
    if (isReduce) {
      if (l.mode === "vector") isInLanes = true;
      else if (l.mode === "unroll") copies *= l.trips;
      else trips *= l.trips;
    } else {
      width *= l.trips;
      if (l.mode === "vector") lanes *= l.trips;
    }
  }
  const tiles = tileCount(figures, micro, Math.ceil);
  const vectors = work.points / lanes;
  const isDot = isInLanes && lanes > 1;
  const each = isDot ? work.dotArithmetic : work.arithmetic;
  const ends = Math.max(
    (vectors * work.finish) / c.arithmeticPerNs,
    (vectors * work.writes) / c.storesPerNs,
    (vectors * (work.finish + work.writes)) / c.issuePerNs,
  );
  const steps = trips * tiles;
  const arithmetic = trips * copies * vectors * each;
  const linkNs = work.isFusedProduct ? c.latencyNs : c.additionNs;
  const links = figures.reduces && figures.combine > 0 ? steps * copies * linkNs : 0;
  const issued = (arithmetic + steps * work.reads.length) / c.issuePerNs;
  const soon = Math.max(ends, arithmetic / c.arithmeticPerNs, links, issued);
  if (roundings * soon >= limitNs) return roundings * soon;
  const whole = isDot ? 0 : trips * tileCount(figures, micro, Math.floor);
  const wholeLoads = whole > 0 ? leastLoads(figures, work, { micro, packed, core: c }) : noLoads;
  const loads = whole * wholeLoads.loads + (steps - whole) * work.reads.length;
  const others = whole * wholeLoads.others;
  const step = { points: width / lanes, copies, loads: wholeLoads, core: c };
  const spills = whole > 0 ? leastSpills(figures, work, step) : 0;
  const memory = whole * spills * c.spillInstructions;
  const { control, aroundNs } = reductionControl(figures, work, { micro, core: c });
  const inside = Math.max(
    arithmetic / c.arithmeticPerNs,
    (loads + memory / 2) / c.loadsPerNs,
    memory / 2 / c.storesPerNs,
    (arithmetic + loads + memory + others + steps * control) / c.issuePerNs,
  );
  if (!figures.reduces) return roundings * Math.max(ends, inside);
  const reloads = whole * Math.min(copies, spills / 2) * c.reloadNs;
  const chained = figures.combine > 0 ? links + reloads : 0;
  return roundings * (Math.max(inside, chained) + ends + tiles * (aroundNs + c.latencyNs));
}

interface LeastStep {
  readonly points: number;
  readonly copies: number;
  readonly loads: LeastLoads;
  readonly core: CoreFigures;
}

/** Vectors that a step of a whole tile puts away, if it loads no more than it must. */
function leastSpills(
  figures: NestFigures,
  { room }: PointWork,
  { points, copies, loads, core }: LeastStep,
): number {
  const { reduces } = figures;
  const near = Math.min(loads.narrowest, points);
  const ahead = near + core.loadsAhead * Math.max(0, loads.vectors - near);
  return putAway({ kept: keptVectors(points, figures), ahead, copies, reduces }, room);
}

/** Instructions of loop control in a step, and what the loops of a reduction take in a tile beside its steps. */
function reductionControl(
  figures: NestFigures,
  work: PointWork,
  { micro, core: c }: Omit<TileOf, "packed">,
): { readonly control: number; readonly aroundNs: number } {
  let control = 0;
  let aroundNs = 0;
  let isInner = true;
  for (let i = micro.length - 1; i >= 0; i--) {
    const { origin, mode, trips } = micro[i]!;
    if (mode !== "serial" || figures.loops[origin]!.kind !== "reduce") continue;
    const pointers = work.moving[origin]!;
    const own = c.loopInstructions * (2 + pointers);
    const ends = c.loopEndNs * Math.min(1, trips / foreseenTrips);
    if (isInner) control = own;
    else aroundNs = (aroundNs + own / c.issuePerNs) * trips;
    aroundNs += (pointers * c.setupInstructions) / c.issuePerNs + ends;
    isInner = false;
  }
  return { control, aroundNs };
}

/** Tiles that no end of a loop cuts (`floor`), or with those that are cut, of which there are more where one is. */
function tileCount(
  { loops }: NestFigures,
  micro: readonly LoopFigures[],
  round: (tiles: number) => number,
): number {
  let tiles = 1;
  for (let origin = 0; origin < loops.length; origin++) {
    const { kind, extent } = loops[origin]!;
    if (kind === "reduce") continue;
    let width = 1;
    for (const l of micro) if (l.origin === origin) width *= l.trips;
    tiles *= round(extent / width);
  }
  return tiles;
}

/** Instructions that a step of a whole tile loads with, on average over those that padding touches and others. */
interface LeastLoads {
  readonly loads: number;
  readonly others: number;
  /** Operands, of all reads and of the one with the fewest in one copy of the step. */
  readonly vectors: number;
  readonly narrowest: number;
}

const noLoads: LeastLoads = { loads: 0, others: 0, vectors: 0, narrowest: 0 };

/** Vectors that a step of a whole tile loads: along each axis as many as its loops make at least. */
function leastLoads(
  figures: NestFigures,
  { reads, tested }: PointWork,
  { micro, packed, core: c }: TileOf,
): LeastLoads {
  const edges = edgeShare(figures, tested, micro);
  const vector = micro.findLast((l) => l.mode === "vector");
  let loads = 0;
  let others = 0;
  let vectors = 0;
  let narrowest = Infinity;
  for (const access of reads) {
    const { axes, guarded, guardLoops } = access;
    let own = 1;
    let still = 1;
    for (const { steps, extent, divisor } of axes) {
      // Several trips may meet one element of an axis that divides.
      if (divisor !== 1) continue;
      let most = 1;
      let mostStill = 1;
      for (const { mode, origin, trips } of micro) {
        if (mode !== "unroll" || steps[origin] === 0) continue;
        // Sums of m and of n different numbers are m + n - 1 different ones at least.
        most += trips - 1;
        if (figures.loops[origin]!.kind === "space") mostStill += trips - 1;
      }
      own *= Math.min(most, extent);
      still *= Math.min(mostStill, extent);
    }
    vectors += own;
    narrowest = Math.min(narrowest, still);
    const isGathered = isApart(access, vector, packed);
    const isTested = guarded && vector !== undefined && guardLoops.includes(vector.origin);
    const each = isGathered || isTested ? vector!.trips : 1;
    const share = isGathered ? 1 : edges;
    const gather = each > 1 ? c.gatherInstructions - 1 : 0;
    if (isSpread(access, vector, packed)) others += (1 - share) * own * c.splatInstructions;
    loads += own * (1 - share + share * each);
    others += share * own * each * gather;
    if (guarded) others += edges * own * each * c.guardInstructions;
  }
  return { loads, others, vectors, narrowest };
}

/** Whether lanes take elements one by one; an operand that is packed has them side by side. */
function isApart(
  access: AccessFigures,
  vector: LoopFigures | undefined,
  packed: readonly PackedAxis[],
): boolean {
  if (vector === undefined || vector.trips === 1) return false;
  if (packed.some((p) => p.tensor === access.tensor)) return false;
  return access.scattered || laneOrder(access, vector.origin) === "apart";
}

/** Whether one element is what all lanes read. */
function isSpread(
  access: AccessFigures,
  vector: LoopFigures | undefined,
  packed: readonly PackedAxis[],
): boolean {
  if (vector === undefined || vector.trips === 1) return false;
  if (access.scattered || packed.some((p) => p.tensor === access.tensor)) return false;
  return laneOrder(access, vector.origin) === "uniform";
}

/** Share of the tiles that padding touches: the first and the last along each loop that is tested. */
export function edgeShare(
  figures: NestFigures,
  tested: readonly number[],
  tile: readonly LoopFigures[],
): number {
  if (tested.length === 0) return 0;
  let whole = 1;
  for (const origin of tested) {
    let covered = 1;
    for (const l of tile) if (l.origin === origin) covered *= l.trips;
    const trips = Math.ceil(figures.loops[origin]!.extent / covered);
    whole *= Math.max(0, trips - 2) / trips;
  }
  return 1 - whole;
}
