/**
 * One access of a statement among its loops on a machine of blocks of threads: the elements, sectors and lines
 * that warps and blocks touch of its tensor, from the strides of the loops. Extents that are known only at run time
 * count with their greatest value.
 */
import type { Access } from "../region/nest.ts";
import type {
  ScheduledLoop,
  ScheduledRegion,
  ScheduledStatement,
} from "../schedule/scheduled-region.ts";
import { dtypes } from "../semantics/dtype.ts";
import {
  constantValue,
  evaluate,
  type IndexExpr,
  splitLinear,
  substitute,
  variablesOf,
} from "../semantics/index-expr.ts";
import {
  type IndexRanges,
  loopRange,
  rangeOf,
  withoutRemainders,
} from "../semantics/index-range.ts";

/** Bytes that the load unit of a multiprocessor looks up and delivers in one cycle. */
export const lineBytes = 128;
/** Bytes that the shared cache hands out together. */
export const sectorBytes = 32;
/** Lines of one sector that a multiprocessor is given in a nanosecond: 39.6 million took an H200 285 us. */
export const requestsPerNs = 1.05;
/** Trips of a loop after which a near cache is not trusted to have what came with the first. */
const tripsKept = 8;
/** Places of a warp that are looked at, at most. */
const mostPlaces = 1024;

export type AnyAccess = Pick<Access, "tensor" | "index"> & Partial<Pick<Access, "guard">>;

export interface Footprint {
  /** Elements, each once. */
  readonly distinct: number;
  readonly sectors: number;
  readonly lines: number;
}

/** Steps through a tensor, in elements. */
interface Walk {
  readonly stride: number;
  readonly trips: number;
}

export class BlockAccess {
  /** Places of the elements, by the loops. */
  readonly at: readonly IndexExpr[];
  readonly variables: ReadonlySet<string>;
  /** Of one element. */
  readonly bytes: number;
  readonly #loops: readonly ScheduledLoop[];
  readonly #ranges: IndexRanges;
  readonly #extents: readonly number[];
  /** By number that is loaded, the loops that it is loaded by. */
  readonly #loadedBy: ReadonlyMap<string, ReadonlySet<string>>;
  /** By loop, how far one trip goes along each axis; undefined where that is not the same everywhere. */
  readonly #steps: ReadonlyMap<string, readonly (number | undefined)[]>;

  constructor(
    { tensor, index }: AnyAccess,
    s: ScheduledStatement,
    { region }: ScheduledRegion,
    ranges: IndexRanges,
  ) {
    const { shape, dtype } = region.tensors.get(tensor)!;
    this.at = index.map((e) => sameInLanes(substitute(e, s.index), s.loops, ranges));
    this.#loadedBy = loopsOfLoaded(s);
    const named = variablesOf(...this.at);
    this.variables = new Set([...named].flatMap((v) => [v, ...(this.#loadedBy.get(v) ?? [])]));
    this.bytes = dtypes[dtype].bits / 8;
    this.#loops = s.loops;
    this.#ranges = ranges;
    this.#extents = shape.map((e) => Math.max(1, rangeOf(e, ranges).max));
    const isLoadedBy = (e: IndexExpr, name: string): boolean =>
      [...variablesOf(e)].some((v) => this.#loadedBy.get(v)?.has(name));
    const stepsOf = (name: string) =>
      this.at.map((e) => (isLoadedBy(e, name) ? undefined : splitLinear(e, name)?.coefficient));
    const used = s.loops.filter((l) => this.variables.has(l.name));
    this.#steps = new Map(used.map((l) => [l.name, stepsOf(l.name)]));
  }

  /** Lines that the first threads of a warp touch with one load each, over all alignments that occur. */
  lines(thread: ScheduledLoop, warpThreads: number): number {
    const threads = Math.min(warpThreads, constantValue(thread.extent)!);
    const stride = this.#stride(thread);
    const places =
      stride === undefined
        ? this.#scattered(thread.name, threads)
        : { step: stride * this.bytes, threads };
    const alignment = this.#alignment(thread.name, warpThreads) * this.bytes;
    const starts = Math.max(1, lineBytes / gcd(alignment, lineBytes));
    let touched = 0;
    for (let i = 0; i < starts; i++) {
      const start = (i * lineBytes) / starts;
      touched += "step" in places ? linesInRow(start, places) : linesOf(places, start);
    }
    return ((warpThreads / threads) * touched) / starts;
  }

  /** Elements of the box of the tensor that a block touches. */
  elementsOfBlock(): number {
    const inside = this.#loops.filter((l) => l.mode !== "blocks");
    return this.at.reduce((elements, _, axis) => {
      let [points, span] = [1, 1];
      for (const loop of inside) {
        const steps = this.#steps.get(loop.name);
        if (!steps || steps[axis] === 0) continue;
        const trips = this.#trips(loop);
        points *= trips;
        span += Math.abs(steps[axis] ?? Infinity) * (trips - 1);
      }
      return elements * Math.min(points, span, this.#extents[axis]!);
    }, 1);
  }

  /**
   * What a warp touches: stores by one instruction, loads by all that the threads have at once and in the next
   * trips, since a near cache keeps what came with the first.
   */
  footprint(warpThreads: number, isWrite: boolean): Footprint {
    const walks: Walk[] = [];
    for (const loop of this.#loops) {
      const isThread = loop.mode === "threads";
      const isLane = isWrite ? loop.mode === "vector" : isInThread(loop);
      const stride = isThread || isLane ? this.#stride(loop) : undefined;
      if (stride === undefined || stride === 0) continue;
      walks.push({
        stride,
        trips: Math.min(isThread ? warpThreads : tripsKept, this.#trips(loop)),
      });
    }
    // What is near shares sectors; far trips repeat the count, and are left out where places get many.
    walks.sort((a, b) => Math.abs(a.stride) - Math.abs(b.stride));
    let places = 1;
    const counted = walks.filter(({ trips }) => {
      const fits = trips > 1 && places * trips <= mostPlaces;
      if (fits) places *= trips;
      return fits;
    });
    return footprintOf(counted, this.bytes);
  }

  #trips({ extent }: ScheduledLoop): number {
    return Math.max(1, rangeOf(extent, this.#ranges).max);
  }

  /** Elements from one trip of a loop to the next, or undefined. */
  #stride({ name }: ScheduledLoop): number | undefined {
    const steps = this.#steps.get(name);
    if (!steps) return 0;
    return steps.includes(undefined) ? undefined : this.#flat(steps as readonly number[]);
  }

  /** Number of an element, or of elements from one to another. */
  #flat(places: readonly number[]): number {
    return places.reduce((n, place, axis) => n * this.#extents[axis]! + place, 0);
  }

  /** Numbers of the elements of a warp's threads, all other loops at their first trip; loaded ones as they are counted. */
  #scattered(thread: string, threads: number): readonly number[] {
    const values = new Map([...this.variables].map((name) => [name, 0]));
    return Array.from({ length: threads }, (_, t) => {
      values.set(thread, t);
      for (const [name, loops] of this.#loadedBy) if (loops.has(thread)) values.set(name, t);
      return this.#flat(this.at.map((e) => evaluate(e, values))) * this.bytes;
    });
  }

  /** What all numbers of elements at which warps begin are a multiple of. */
  #alignment(thread: string, warpThreads: number): number {
    let [size, found] = [1, 0];
    for (let axis = this.at.length - 1; axis >= 0; axis--) {
      for (const [name, steps] of this.#steps) {
        const step = (steps[axis] ?? 1) * (name === thread ? warpThreads : 1);
        found = gcd(found, step * size);
      }
      found = gcd(found, this.at[axis]!.constant * size);
      size *= this.#extents[axis]!;
    }
    return found;
  }
}

/** The loops that loaded numbers hang on, of those too by which they are loaded. */
function loopsOfLoaded({ statement, index }: ScheduledStatement): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { name, access } of statement.indirects) {
    const used = [...variablesOf(...access.index.map((e) => substitute(e, index)))];
    found.set(name, new Set(used.flatMap((v) => [v, ...(found.get(v) ?? [])])));
  }
  return found;
}

/** An index without the lanes of a vector where all of them have the same, as in a block of a row. */
function sameInLanes(
  index: IndexExpr,
  loops: readonly ScheduledLoop[],
  ranges: IndexRanges,
): IndexExpr {
  const lane = loops.find((l) => l.mode === "vector");
  if (!lane || splitLinear(index, lane.name)) return index;
  const all = new Map(ranges);
  for (const { name, extent } of loops) all.set(name, loopRange(extent, all));
  return withoutRemainders(index, all);
}

/** Copied out, or run by one thread after another trip. */
function isInThread({ mode }: ScheduledLoop): boolean {
  return mode === "unroll" || mode === "vector" || mode === "serial";
}

function linesInRow(start: number, { step, threads }: { step: number; threads: number }): number {
  if (Math.abs(step) >= lineBytes) return threads;
  return Math.abs(Math.floor((start + step * (threads - 1)) / lineBytes)) + 1;
}

function linesOf(places: readonly number[], start: number): number {
  return new Set(places.map((p) => Math.floor((start + p) / lineBytes))).size;
}

/** Candidates walk alike: what was counted before. */
const footprints = new Map<string, Footprint>();
const mostFootprints = 4096;

function footprintOf(walks: readonly Walk[], bytes: number): Footprint {
  const key = `${bytes} ${walks.map(({ stride, trips }) => `${stride}x${trips}`).join(" ")}`;
  const known = footprints.get(key);
  if (known) return known;
  let places: readonly number[] = [0];
  for (const { stride, trips } of walks)
    places = Array.from({ length: trips }, (_, i) => places.map((p) => p + i * stride)).flat();
  const touched = (size: number): number =>
    new Set(places.map((p) => Math.floor((p * bytes) / size))).size;
  const found = {
    distinct: new Set(places).size,
    sectors: touched(sectorBytes),
    lines: touched(lineBytes),
  };
  if (footprints.size >= mostFootprints) footprints.clear();
  footprints.set(key, found);
  return found;
}

function gcd(a: number, b: number): number {
  return b === 0 ? Math.abs(a) : gcd(b, a % b);
}
