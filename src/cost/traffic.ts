/**
 * Bytes that a schedule moves between each two levels of memory. In: accesses, loops outermost first, a
 * machine. Out: per level, what comes in runs that a prefetcher follows and what does not. From the innermost
 * loop outwards, an access fetches in T trips of a loop
 *
 *   F(d) = F(d+1) x [ kept x size(d) / size(d+1) + (1 - kept) x T ]
 *
 * where size(d) is its footprint under the loops from depth d inwards and `kept` the share of it that is
 * still in the cache when the next trip begins: all of it where the footprints fit, nothing where they are twice
 * the capacity. A footprint whose rows lie in few sets of the cache counts for as much as the sets it fills.
 */
import { GrowingFootprint, lineBytes } from "../schedule/states/footprint.ts";
import type { AccessFigures, LoopFigures } from "../schedule/states/nest-figures.ts";
import type { Target } from "../target/target.ts";

export interface LevelTraffic {
  readonly bytes: number;
  /** The part of it, weighted, that is read in short runs lying apart: a core waits for those. */
  readonly scattered: number;
  /** The part of it that writes cause. */
  readonly written: number;
  /** Runs read that begin far from the one before, in another page. */
  readonly jumps: number;
}

/** Ways of a set: all current cores have 8 or more in their nearest cache. */
const ways = 8;
/** Runs up to which no prefetcher has begun to follow. */
const shortRunBytes = 128;
/** Runs that one is followed among, with those of other accesses. */
const followedRuns = 2;
/** Runs that prefetchers into the outer caches go on with in turn: 96 rows are read as fast as one on a Zen 4. */
const mostStreams = 128;
/** No prefetcher follows a step into another page. */
const pageBytes = 4096;
/** Steps whose multiples meet so few sets that what is fetched ahead is lost before it is read. */
const crowdedStepBytes = 1024;

/** A whole number that is a sum of fractions may come out lower. */
const roundings = 1e-9;

/** Traffic of one set of accesses under any loops: what does not hang on the loops is found once. */
export class Traffic {
  readonly #tracks: readonly AccessTrack[];
  readonly #capacities: readonly number[];
  readonly #extents: readonly number[];
  /** The question before: dealt out to threads, loops move what they move in turns. */
  #last:
    | { readonly turning: readonly LoopFigures[]; readonly trips: readonly number[] }
    | undefined;
  #lastFound: readonly LevelTraffic[] = [];

  /** @param extents of the statement's loops, by origin */
  constructor(accesses: readonly AccessFigures[], extents: readonly number[], target: Target) {
    this.#extents = extents;
    this.#tracks = distinctAccesses(accesses).map((a) => new AccessTrack(a));
    const behind = target.memory.slice(0, -1);
    this.#capacities = behind.map((level) => level.capacityBytes?.value ?? Infinity);
  }

  of(loops: readonly LoopFigures[]): readonly LevelTraffic[] {
    const turning = loops.filter((l) => l.trips > 1);
    const running = turning.filter(isRunning);
    const trips = this.#wholeTrips(loops, running);
    const last = this.#last;
    if (last && areSame(last.turning, turning) && last.trips.every((n, i) => n === trips[i])) {
      return this.#lastFound;
    }
    const still = turning.filter((l) => !isRunning(l));
    for (const track of this.#tracks) track.follow(running, still);
    this.#last = { turning, trips };
    this.#lastFound = this.#capacities.map((capacity, i) => this.#behind(capacity, trips, i));
    return this.#lastFound;
  }

  /** Trips of running loops; of the outermost part of a loop that ends within a tile, with a share of the last. */
  #wholeTrips(loops: readonly LoopFigures[], running: readonly LoopFigures[]): readonly number[] {
    const outermost = new Map<number, LoopFigures>();
    for (const loop of loops) {
      const known = outermost.get(loop.origin);
      if (!known || known.unit < loop.unit) outermost.set(loop.origin, loop);
    }
    return running.map((loop) => {
      if (outermost.get(loop.origin) !== loop) return loop.trips;
      return Math.min(loop.trips, this.#extents[loop.origin]! / loop.unit);
    });
  }

  /** What comes from behind a cache. */
  #behind(capacity: number, trips: readonly number[], level: number): LevelTraffic {
    const kept = [this.#keptAt(0, capacity)];
    let bytes = 0;
    let scattered = 0;
    let written = 0;
    let jumps = 0;
    // What is left from the run before is not fetched.
    const anew = 1 - kept[0]!;
    if (anew === 0) return { bytes, scattered, written, jumps };
    for (let depth = 1; depth <= trips.length; depth++) {
      kept.push(kept[depth - 1] === 1 ? 1 : this.#keptAt(depth, capacity));
    }
    const held = kept.indexOf(1);
    for (const track of this.#tracks) {
      const { sizes, crowded, isWrite } = track;
      let fetched = sizes[trips.length]!;
      for (let depth = trips.length - 1; depth >= 0; depth--) {
        const stays = kept[depth + 1]!;
        const grown = sizes[depth]! / sizes[depth + 1]!;
        fetched *= stays * grown + (1 - stays) * trips[depth]!;
      }
      fetched *= anew;
      bytes += fetched;
      const heldFrom = held < 0 ? trips.length : held;
      const apart = track.apartAt(heldFrom);
      // Into the nearest cache nothing is fetched far ahead; into the others, what lies in the same page.
      const far = level === 0 ? apart : Math.max(apart * track.far, crowded);
      if (isWrite) written += fetched;
      else {
        scattered += fetched * far;
        const from = level === 0 ? heldFrom : track.followedFrom(heldFrom);
        jumps += (fetched * track.far) / track.runAt(from);
      }
    }
    return { bytes, scattered, written, jumps };
  }

  /** The share of all footprints from a depth inwards that a cache still holds a trip later. */
  #keptAt(depth: number, capacity: number): number {
    let filled = 0;
    for (const track of this.#tracks) filled += track.filledBytes(depth, capacity);
    return Math.max(0, Math.min(1, 2 * (capacity / filled) - 1));
  }
}

function isRunning({ mode }: LoopFigures): boolean {
  return mode === "serial" || mode === "grid";
}

/** Whether loops move the same in the same order. */
function areSame(a: readonly LoopFigures[], b: readonly LoopFigures[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i]!, b[i]!];
    if (x === y) continue;
    if (x.origin !== y.origin || x.unit !== y.unit || x.trips !== y.trips) return false;
    if (isRunning(x) !== isRunning(y)) return false;
  }
  return true;
}

/** Accesses of one tensor with the same steps move the same lines. */
function distinctAccesses(accesses: readonly AccessFigures[]): readonly AccessFigures[] {
  const seen = new Set<string>();
  return accesses.filter((a) => {
    const key = `${a.tensor}:${a.axes.map((x) => x.steps.join(",")).join(";")}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** One access under loops that are put around it from the innermost outwards. */
class AccessTrack {
  readonly isWrite: boolean;
  /** Footprints by depth: under the running loops from there inwards. */
  readonly sizes: number[] = [];
  /** How far the next run lies, as a share of a page; nothing where one follows the other. */
  far = 0;
  /** Bytes that the innermost loops read one after the other, among the runs that are followed. */
  #run = lineBytes;
  /** The same because the steps between its lines crowd a few sets, up to all of it. */
  crowded = 0;
  readonly #bytes: number;
  readonly #footprint: GrowingFootprint;
  readonly #access: AccessFigures;
  /** Whether an iteration of each loop of the statement moves it. */
  readonly #moves: readonly boolean[];
  /** By how many elements it does; undefined where that hangs on how many are made at once. */
  readonly #elements: readonly number[] | undefined;
  /** By depth: bytes that are read one after the other, and what all longer steps are multiples of. */
  readonly #runs: number[] = [];
  readonly #jumps: number[] = [];
  readonly #starts: number[] = [];
  /** Steps of the loops so far, shortest first. */
  readonly #steps: { readonly step: number; readonly trips: number }[] = [];

  constructor(a: AccessFigures) {
    this.isWrite = a.use === "write";
    this.#bytes = a.bytes;
    this.#footprint = new GrowingFootprint(a);
    this.#access = a;
    const loops = a.axes[0]?.steps.length ?? 0;
    this.#moves = Array.from({ length: loops }, (_, loop) =>
      a.axes.some((x) => x.steps[loop] !== 0),
    );
    if (loops === 0 || a.axes.some((x) => x.wraps || x.divisor !== 1)) return;
    this.#elements = this.#moves.map((_, loop) =>
      a.axes.reduce((n, x, i) => n + Math.abs(x.steps[loop]!) * a.strides[i]!, 0),
    );
  }

  follow(running: readonly LoopFigures[], still: readonly LoopFigures[]): void {
    const depths = running.length;
    this.#footprint.clear();
    this.#steps.length = 0;
    let jump = 0;
    for (const loop of still) jump = this.#add(loop, jump);
    this.#starts.length = 0;
    this.#noteStarts(running);
    this.#noteStarts(still);
    let run = this.#runBytes();
    let size = this.#footprint.bytes(this.#grain(run));
    this.#note(depths, { size, run, jump });
    this.#scatter(run, running, still);
    for (let depth = depths - 1; depth >= 0; depth--) {
      const loop = running[depth]!;
      if (this.#moves[loop.origin]) {
        jump = this.#add(loop, jump);
        run = this.#runBytes();
        size = this.#footprint.bytes(this.#grain(run));
      }
      this.#note(depth, { size, run, jump });
    }
  }

  /**
   * How much of the time of a line is waited for because its run is short: nothing of long ones, and nothing where
   * runs that lie apart become a long one while a cache holds them, under the loops from a depth inwards.
   */
  apartAt(depth: number): number {
    if (this.far === 0) return 0;
    return Math.min(1, shortRunBytes / this.runAt(depth));
  }

  /** Bytes that are read one after the other while a cache holds them, under the loops from a depth inwards. */
  runAt(depth: number): number {
    return Math.max(this.#run, this.#runs[depth]!);
  }

  /** The depth from which runs are followed: that of the loop around, where it goes on with all of few runs. */
  followedFrom(depth: number): number {
    const streams = this.sizes[depth]! / this.runAt(depth);
    return streams <= mostStreams ? Math.max(0, depth - 1) : depth;
  }

  /** Bytes of a cache that a footprint makes useless for others: whole ways of the sets it falls into. */
  filledBytes(depth: number, capacity: number): number {
    const bytes = this.sizes[depth]!;
    const period = capacity / ways;
    if (!Number.isFinite(period) || bytes <= lineBytes) return bytes;
    const jump = this.#jumps[depth]!;
    const shared = jump === 0 ? period : Math.max(lineBytes, gcd(period, jump));
    const lines = bytes / lineBytes;
    const sets = period / lineBytes;
    const run = Math.min(lines, Math.ceil(this.#runs[depth]! / lineBytes));
    const covered = Math.max(1, Math.min(sets, lines, (period / shared) * run));
    return bytes * Math.max(1, Math.min(sets, lines) / covered);
  }

  #note(depth: number, { size, run, jump }: { size: number; run: number; jump: number }): void {
    this.sizes[depth] = size;
    this.#runs[depth] = run;
    this.#jumps[depth] = jump;
  }

  /** Bytes that a trip moves it: within a block as long as it stays there, by whole blocks beyond. */
  #stepOf({ origin, unit }: LoopFigures): number {
    const { axes, strides, bytes } = this.#access;
    if (this.#elements) return Math.round(this.#elements[origin]! * unit * bytes);
    let elements = 0;
    for (let i = 0; i < axes.length; i++) {
      const { extent, steps, divisor, wraps } = axes[i]!;
      const step = Math.abs(steps[origin]!) * unit;
      if (wraps) elements += (step % extent) * strides[i]!;
      else elements += (divisor === 1 ? step : Math.trunc(step + roundings)) * strides[i]!;
    }
    return Math.round(elements * bytes);
  }

  /** The greatest common divisor of long steps, with this one. */
  #add(loop: LoopFigures, jump: number): number {
    this.#footprint.add(loop);
    const step = this.#stepOf(loop);
    if (step === 0) return jump;
    let at = this.#steps.length;
    for (; at > 0 && this.#steps[at - 1]!.step > step; at--) this.#steps[at] = this.#steps[at - 1]!;
    this.#steps[at] = { step, trips: loop.trips };
    // Shorter steps stay within the runs.
    return step >= lineBytes ? gcd(jump, step) : jump;
  }

  /** Bytes that are read one after the other before the next jump. */
  #runBytes(): number {
    let span = this.#bytes;
    for (const { step, trips } of this.#steps) {
      // A shorter step than a line finds the next line at most.
      if (step > Math.max(span, lineBytes)) break;
      span += step * (trips - 1);
    }
    return span;
  }

  /** Steps of all loops that do not move it by whole lines. */
  #noteStarts(loops: readonly LoopFigures[]): void {
    for (const loop of loops) {
      const step = this.#stepOf(loop);
      if (step % lineBytes !== 0) this.#starts.push(step);
    }
  }

  /** Bytes of which the places are multiples where its runs begin, up to a line. */
  #grain(run: number): number {
    let grain = lineBytes;
    for (const step of this.#starts) {
      // The greatest power of two that divides it.
      if (step >= run) grain = Math.min(grain, step & -step);
    }
    return grain;
  }

  #scatter(inner: number, running: readonly LoopFigures[], still: readonly LoopFigures[]): void {
    this.far = 0;
    this.crowded = 0;
    let span = inner;
    let runs = 1;
    let next: LoopFigures | undefined;
    for (let i = running.length - 1; i >= 0 && runs <= followedRuns; i--) {
      const loop = running[i]!;
      const step = this.#stepOf(loop);
      if (step <= Math.max(span, lineBytes)) span += step * (loop.trips - 1);
      else {
        runs *= loop.trips;
        next ??= loop;
      }
    }
    const run = Math.max(lineBytes, span);
    this.#run = run;
    if (!next || this.#stepOf(next) <= run) return;
    const jump = this.#nearest(next, run, still);
    this.far = Math.min(1, jump / pageBytes);
    this.crowded = Math.min(1, gcd(pageBytes, jump) / crowdedStepBytes) * (lineBytes / run) ** 2;
  }

  /** How far the next run lies that a loop brings: its copies in the code come before its next trip. */
  #nearest(loop: LoopFigures, run: number, still: readonly LoopFigures[]): number {
    let jump = this.#stepOf(loop);
    for (const copied of still) {
      const step = this.#stepOf(copied);
      if (copied.origin === loop.origin && step > run) jump = Math.min(jump, step);
    }
    return jump;
  }
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
