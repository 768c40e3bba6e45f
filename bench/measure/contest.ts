/**
 * One case of a bench: two sides that do the same work. Correctness first, then warm-up, then
 * interleaved rounds A B B A on fresh random data, and a time below what the machine can do is
 * refused. Two sides that are one program are timed as one. The clock is injected.
 */

import {
  leastRounds,
  type SamplingProtocol,
  sampleInTurns,
} from "../../src/runtime/measure/sampling.ts";
import {
  estimateRatio,
  median,
  type RatioEstimate,
  type TimingPair,
} from "../../src/runtime/measure/statistics.ts";
import { Rng } from "../../src/support/rng.ts";

export type Beside = Readonly<Record<string, number | string>>;

/** Both sides, loaded and ready. */
export interface Contest {
  /** Draws new inputs for both sides. Not timed. */
  refresh(rng: Rng): void;
  ours(): Promise<void>;
  peer(): Promise<void>;
  /** Runs both sides on the present inputs; says how they differ, or nothing when they agree. */
  check(): Promise<string | undefined>;
  /**
   * Time that no correct run of a side can stay below: the roofline bound of its work with 15 % to
   * spare on peaks measured for its kind of code. Absent where the work is not counted.
   */
  readonly floorNs?: { readonly ours?: number; readonly peer?: number };
  /** Both sides are one program, by its text: it is timed once, and neither can be the faster. */
  readonly isOneProgram?: boolean;
  /** Shown behind the times; what hangs on them is made of our median, behind the last round. */
  readonly beside?: Beside | ((oursNs: number) => Beside);
  close(): Promise<void>;
}

export interface Protocol extends SamplingProtocol {
  readonly checks: number;
  readonly seed: number;
  /** Nanoseconds from a fixed point. */
  readonly clock: () => number;
  /** Taken before every turn of either side, outside of its time (rest.ts); absent: none. */
  readonly rest?: () => Promise<void>;
}

export type ContestOutcome =
  | {
      readonly kind: "measured";
      readonly estimate: RatioEstimate;
      /** Of the first runs after the rests, where there are rests. */
      readonly first?: RatioEstimate;
    }
  | { readonly kind: "wrong"; readonly reason: string }
  | { readonly kind: "implausible"; readonly reason: string };

/** Share of a case's time that checks on further inputs may take. */
const checkShare = 0.1;

export async function runContest(contest: Contest, protocol: Protocol): Promise<ContestOutcome> {
  const rng = new Rng(protocol.seed);
  const { checks, clock, rest, longNs = Infinity } = protocol;
  if (contest.isOneProgram)
    return { kind: "measured", estimate: await timeOnce(contest, protocol) };
  const start = clock();
  for (let i = 0; i < checks && (i === 0 || clock() - start < checkShare * longNs); i++) {
    contest.refresh(rng);
    const difference = await contest.check();
    if (difference !== undefined) return { kind: "wrong", reason: difference };
  }
  const sides = [repeating(contest.ours), repeating(contest.peer)];
  const firsts: [number[], number[]] = [[], []];
  const first = (side: number, ns: number): void => void firsts[side]!.push(ns);
  const between = { refresh: () => contest.refresh(rng), ...(rest && { rest, first }) };
  const [ours, peer] = await sampleInTurns(sides, protocol, clock, between);
  const { floorNs = {} } = contest;
  const broken =
    belowFloor("ours", Math.min(...ours!), floorNs.ours) ??
    belowFloor("the peer", Math.min(...peer!), floorNs.peer);
  if (broken !== undefined) return { kind: "implausible", reason: broken };
  const estimate = estimateRatio(pairsOf(ours!, peer!), rng);
  if (firsts[0].length === 0) return { kind: "measured", estimate };
  return { kind: "measured", estimate, first: estimateRatio(pairsOf(...firsts), rng) };
}

function pairsOf(ours: readonly number[], peer: readonly number[]): readonly TimingPair[] {
  return ours.map((oursNs, i) => ({ oursNs, peerNs: peer[i]! }));
}

/** The time of one program, beside itself. */
async function timeOnce(contest: Contest, protocol: Protocol): Promise<RatioEstimate> {
  const rng = new Rng(protocol.seed);
  contest.refresh(rng);
  const between = { refresh: () => contest.refresh(rng) };
  const rounds = Math.min(protocol.rounds, leastRounds);
  const sides = [repeating(contest.ours)];
  const [times] = await sampleInTurns(sides, { ...protocol, rounds }, protocol.clock, between);
  const ns = median(times!);
  return { oursNs: ns, peerNs: ns, ratio: 1, low: 1, high: 1, n: times!.length };
}

function belowFloor(side: string, foundNs: number, floorNs = 0): string | undefined {
  if (foundNs >= floorNs) return undefined;
  return `a run of ${side} took ${foundNs.toFixed(0)} ns, less than the ${floorNs.toFixed(0)} ns that its work needs`;
}

function repeating(side: () => Promise<void>): (repeats: number) => Promise<void> {
  return async (repeats) => {
    for (let i = 0; i < repeats; i++) await side();
  };
}
