/**
 * One case of a bench: two sides that do the same work. Correctness first, then warm-up, then
 * interleaved rounds A B A B on fresh random data, and a time below what the machine can do is
 * refused. The clock is injected.
 */
import { Rng } from "../../src/support/rng.ts";
import { estimateRatio, type RatioEstimate, type TimingPair } from "./statistics.ts";

/** Both sides, loaded and ready. */
export interface Contest {
  /** Draws new inputs for both sides. Not timed. */
  refresh(rng: Rng): void;
  ours(): Promise<void>;
  peer(): Promise<void>;
  /** Runs both sides on the present inputs; says how they differ, or nothing when they agree. */
  check(): Promise<string | undefined>;
  /**
   * Time that no correct run can stay below: the roofline bound of the problem with 15 % to spare on
   * measured peaks (roofline.ts). Absent where the work is not counted.
   */
  readonly floorNs?: number;
  close(): Promise<void>;
}

export interface Protocol {
  readonly rounds: number;
  /** Runs before the first timed one, on each side. */
  readonly warmUp: number;
  /** A side is repeated within a round until it takes about this long. */
  readonly leastSampleNs: number;
  readonly checks: number;
  readonly seed: number;
  /** Nanoseconds from a fixed point. */
  readonly clock: () => number;
}

export type ContestOutcome =
  | { readonly kind: "measured"; readonly estimate: RatioEstimate }
  | { readonly kind: "wrong"; readonly reason: string }
  | { readonly kind: "implausible"; readonly reason: string };

export async function runContest(contest: Contest, protocol: Protocol): Promise<ContestOutcome> {
  const rng = new Rng(protocol.seed);
  for (let i = 0; i < protocol.checks; i++) {
    contest.refresh(rng);
    const difference = await contest.check();
    if (difference !== undefined) return { kind: "wrong", reason: difference };
  }
  const repeats = await warmUp(contest, protocol);
  const pairs: TimingPair[] = [];
  for (let round = 0; round < protocol.rounds; round++) {
    contest.refresh(rng);
    const oursNs = await time(contest.ours, repeats.ours, protocol.clock);
    const peerNs = await time(contest.peer, repeats.peer, protocol.clock);
    pairs.push({ oursNs, peerNs });
  }
  const fastest = Math.min(...pairs.flatMap((p) => [p.oursNs, p.peerNs]));
  if (contest.floorNs !== undefined && fastest < contest.floorNs) {
    return { kind: "implausible", reason: belowFloor(fastest, contest.floorNs) };
  }
  return { kind: "measured", estimate: estimateRatio(pairs, rng) };
}

function belowFloor(foundNs: number, floorNs: number): string {
  return `a run took ${foundNs.toFixed(0)} ns, less than the ${floorNs.toFixed(0)} ns that the work needs`;
}

/** Warms both sides and finds how often each has to run to fill a sample. */
async function warmUp(
  contest: Contest,
  { warmUp: runs, leastSampleNs, clock }: Protocol,
): Promise<{ readonly ours: number; readonly peer: number }> {
  await time(contest.ours, runs, clock);
  await time(contest.peer, runs, clock);
  const repeatsFor = async (side: () => Promise<void>) =>
    Math.max(1, Math.min(1000, Math.ceil(leastSampleNs / (await time(side, runs, clock)))));
  return { ours: await repeatsFor(contest.ours), peer: await repeatsFor(contest.peer) };
}

/** Mean time of one run. */
async function time(
  side: () => Promise<void>,
  repeats: number,
  clock: () => number,
): Promise<number> {
  const start = clock();
  for (let i = 0; i < repeats; i++) await side();
  return (clock() - start) / repeats;
}
