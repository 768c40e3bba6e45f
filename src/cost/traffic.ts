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
import { footprintBytes, lineBytes } from "../schedule/footprint.ts";
import type { AccessFigures, LoopFigures } from "../schedule/nest-figures.ts";
import type { Target } from "../target/target.ts";

export interface LevelTraffic {
  readonly bytes: number;
  /** The part of it, weighted, that comes in short runs lying apart. */
  readonly scattered: number;
  /** The part of it that writes cause. */
  readonly written: number;
}

/** Ways of a set: all current cores have 8 or more in their nearest cache. */
const ways = 8;
/** Runs up to which no prefetcher has begun to follow, and the distance beyond which none reaches. */
const shortRunBytes = 128;
const pageBytes = 4096;
/** Writing brings the line in and puts it back. */
const writeFactor = 2;

export function trafficOf(
  all: readonly AccessFigures[],
  loops: readonly LoopFigures[],
  target: Target,
): readonly LevelTraffic[] {
  const isRunning = (l: LoopFigures): boolean => l.mode === "serial" || l.mode === "grid";
  const running = loops.filter(isRunning);
  const still = loops.filter((l) => !isRunning(l));
  const accesses = distinctAccesses(all);
  const insides = [...running.map((_, depth) => [...running.slice(depth), ...still]), still];
  const sizes = insides.map((inside) => accesses.map((a) => footprintBytes(a, inside)));
  const scatter = accesses.map((a) => scatterOf(a, running, still));
  const found: LevelTraffic[] = [];
  for (let level = 0; level + 1 < target.memory.length; level++) {
    const capacity = target.memory[level]!.capacityBytes?.value ?? Infinity;
    const filled = insides.map((inside, depth) =>
      accesses.reduce((sum, a, i) => sum + filledBytes(a, inside, sizes[depth]![i]!, capacity), 0),
    );
    const kept = filled.map((bytes) => Math.max(0, Math.min(1, 2 * (capacity / bytes) - 1)));
    let bytes = 0;
    let scattered = 0;
    let written = 0;
    for (const [i, a] of accesses.entries()) {
      let fetched = sizes[running.length]![i]!;
      for (let depth = running.length - 1; depth >= 0; depth--) {
        const stays = kept[depth + 1]!;
        const grown = sizes[depth]![i]! / sizes[depth + 1]![i]!;
        fetched *= stays * grown + (1 - stays) * running[depth]!.trips;
      }
      // What is left from the run before is not fetched.
      fetched *= (1 - kept[0]!) * (a.use === "write" ? writeFactor : 1);
      bytes += fetched;
      scattered += fetched * scatter[i]!;
      if (a.use === "write") written += fetched;
    }
    found.push({ bytes, scattered, written });
  }
  return found;
}

/** Accesses of one tensor with the same steps move the same lines. */
function distinctAccesses(accesses: readonly AccessFigures[]): readonly AccessFigures[] {
  const seen = new Set<string>();
  return accesses.filter((a) => {
    const key = `${a.tensor}:${a.axes.map((x) => x.steps.join(",")).join(";")}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** Bytes of a cache that a footprint makes useless for others: whole ways of the sets it falls into. */
function filledBytes(
  a: AccessFigures,
  loops: readonly LoopFigures[],
  bytes: number,
  capacity: number,
): number {
  const period = capacity / ways;
  if (!Number.isFinite(period) || bytes <= lineBytes) return bytes;
  let shared = period;
  for (const l of loops) {
    if (l.trips === 1) continue;
    const step = stepBytes(a, l);
    // Shorter steps stay within the runs that are counted below.
    if (step >= lineBytes) shared = Math.max(lineBytes, gcd(shared, step));
  }
  const lines = bytes / lineBytes;
  const sets = period / lineBytes;
  const run = Math.min(lines, Math.ceil(runBytes(a, [], loops) / lineBytes));
  const covered = Math.max(1, Math.min(sets, lines, (period / shared) * run));
  return bytes * Math.max(1, Math.min(sets, lines) / covered);
}

function stepBytes(a: AccessFigures, l: LoopFigures): number {
  let step = 0;
  for (const [i, x] of a.axes.entries()) {
    step += Math.abs(x.steps[l.origin]!) * l.unit * a.strides[i]! * a.bytes;
  }
  return Math.round(step);
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** Bytes that are read one after the other before the next jump. */
function runBytes(
  a: AccessFigures,
  running: readonly LoopFigures[],
  still: readonly LoopFigures[],
): number {
  let span = a.bytes;
  const inner = still.map((l) => ({ step: stepBytes(a, l), trips: l.trips }));
  inner.sort((x, y) => x.step - y.step);
  for (const { step, trips } of inner) {
    if (step > 0 && step <= span) span += step * (trips - 1);
  }
  for (let i = running.length - 1; i >= 0; i--) {
    const step = stepBytes(a, running[i]!);
    if (step === 0 || running[i]!.trips === 1) continue;
    if (step > span) break;
    span += step * (running[i]!.trips - 1);
  }
  return span;
}

/** How much of an access's traffic no prefetcher hides: 0 for long runs, 1 for lines pages apart. */
function scatterOf(
  a: AccessFigures,
  running: readonly LoopFigures[],
  still: readonly LoopFigures[],
): number {
  const run = Math.max(lineBytes, runBytes(a, running, still));
  const short = Math.min(1, shortRunBytes / run) ** 2;
  const next = running.findLast((l) => l.trips > 1 && stepBytes(a, l) > run);
  const jump = next ? stepBytes(a, next) : Infinity;
  return short * Math.min(1, jump / pageBytes);
}
