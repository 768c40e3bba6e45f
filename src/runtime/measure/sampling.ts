/**
 * The measurement protocol, which benches, `wavetile bench` and the trials of schedules share: each side
 * is warmed up, then the sides take turns (A B B A: who begins meets caches full of something else and pays for
 * what was left to be collected), each repeated within its turn until a sample is long enough for the clock. After a
 * rest the first run of a turn costs more than those behind it (caches, threads that are woken): there every run is
 * timed by itself, all sides are repeated equally often, the sample is the median run of the turn, and the
 * first run is a sample of its own. What takes a processor away for milliseconds then falls on one run and does not move
 * the others, which matters where two threads wait for each other. A drift of the machine meets all sides alike. The
 * clock is injected.
 */
import { invariant } from "../../support/invariant.ts";
import { median } from "./statistics.ts";

export interface SamplingProtocol {
  readonly rounds: number;
  /** Runs of each side before the first timed one; fewer where they take long (`longNs`). */
  readonly warmUp: number;
  /** A side is repeated within a round until it takes about this long. */
  readonly leastSampleNs: number;
  /** Rounds that together take longer than this are fewer, but never under five. */
  readonly longNs?: number;
}

/** What happens between the turns, outside of all times. */
export interface BetweenTurns {
  /** Before each round. */
  readonly refresh?: () => void;
  /** Before each turn that counts, whoever's it is: until nothing runs on of the turn before. */
  readonly rest?: () => Promise<void>;
  /** Told the nanoseconds of the first run of a side's turn after a rest. */
  readonly first?: (side: number, ns: number) => void;
}

/**
 * Something that can be run `repeats` times in a row. One with a clock of its own (a device) answers the
 * nanoseconds of one run.
 */
export type TimedSide = (repeats: number) => void | number | Promise<void>;

const mostRepeats = 1000;
/** Runs of a turn after a rest, where there is time for them: the median of fewer is the first run or touched by it. */
const leastAfterRest = 3;
export const leastRounds = 5;
/** Share of `longNs` after which a side counts as warm. */
const warmShare = 1 / 20;

/** Name and parameters, as the key of a trial has them. */
export function describeProtocol({ rounds, warmUp, leastSampleNs }: SamplingProtocol): string {
  return `interleaved ${rounds} rounds, warm-up ${warmUp}, samples of ${leastSampleNs} ns`;
}

/**
 * Nanoseconds of one run, by side and round.
 * @param clock nanoseconds from a fixed point
 */
export async function sampleInTurns(
  sides: readonly TimedSide[],
  protocol: SamplingProtocol,
  clock: () => number,
  between: BetweenTurns = {},
): Promise<readonly (readonly number[])[]> {
  const { refresh = () => {}, rest = async () => {}, first = () => {} } = between;
  const { rounds, warmUp, longNs = Infinity } = protocol;
  invariant(rounds >= 1 && warmUp >= 1, () => `${rounds} rounds after ${warmUp} warm-up runs`);
  const firstNs: number[] = [];
  for (const side of sides) firstNs.push(await timeOf(side, 1, clock));
  // A run that is long by itself has warmed up what there is.
  const warming = firstNs.map((ns) =>
    Math.min(warmUp - 1, Math.floor((longNs * warmShare) / Math.max(1, ns))),
  );
  for (const [i, side] of sides.entries()) if (warming[i]! > 0) await side(warming[i]!);
  const onceNs: number[] = [];
  for (const [i, side] of sides.entries()) {
    await rest();
    onceNs.push(await timeOf(side, warming[i]! + 1, clock));
  }
  const repeats = repeatsOf(onceNs, protocol, between.rest !== undefined);
  const roundNs = onceNs.reduce((sum, ns, i) => sum + ns * repeats[i]!, 0);
  const samples: number[][] = sides.map(() => []);
  const affordable = Math.max(leastRounds, Math.floor(longNs / roundNs));
  for (let round = 0; round < Math.min(rounds, affordable); round++) {
    refresh();
    const order = round % 2 === 0 ? [...sides.keys()] : [...sides.keys()].reverse();
    for (const i of order) {
      if (between.rest === undefined) {
        samples[i]!.push(await timeOf(sides[i]!, repeats[i]!, clock));
        continue;
      }
      await rest();
      const runs = await timesOf(sides[i]!, repeats[i]!, clock);
      first(i, runs[0]!);
      samples[i]!.push(median(runs));
    }
  }
  return samples;
}

/**
 * Runs of each side in a turn. Equally many are as many as the side that needs most of them, at least three, but no more
 * than all rounds have time for, and at least what the side that needs fewest would have.
 */
export function repeatsOf(
  onceNs: readonly number[],
  { leastSampleNs, rounds, longNs = Infinity }: Omit<SamplingProtocol, "warmUp">,
  areEqual: boolean,
): readonly number[] {
  const own = onceNs.map((ns) => Math.max(1, Math.min(mostRepeats, Math.ceil(leastSampleNs / ns))));
  if (!areEqual) return own;
  const together = onceNs.reduce((sum, ns) => sum + ns, 0);
  const affordable = Math.floor(longNs / rounds / together);
  const wanted = Math.max(leastAfterRest, ...own);
  const equal = Math.max(Math.min(...own), Math.min(wanted, affordable));
  return own.map(() => equal);
}

/** Of each run. */
async function timesOf(side: TimedSide, repeats: number, clock: () => number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < repeats; i++) times.push(await timeOf(side, 1, clock));
  return times;
}

/** Mean time of one run. */
async function timeOf(side: TimedSide, repeats: number, clock: () => number): Promise<number> {
  const start = clock();
  const own = await side(repeats);
  return typeof own === "number" ? own : (clock() - start) / repeats;
}
