/**
 * Judges and times several candidates of one region: each is compared with the oracle as by itself, and those that
 * agree are timed in turns with one another, so that a drift of the machine meets all alike. In: candidates.
 * Out: a verdict for each, in order, with the fastest sample of those that were measured. One by one is evaluate.ts.
 */
import { roofBoundNs } from "../runtime/measure/roofline.ts";
import { Rng } from "../support/rng.ts";
import type { Bench, Candidate } from "./candidate.ts";
import { CandidateSession, rejected } from "./candidate-session.ts";
import { type CheckBlocks, checkCandidate } from "./check-candidate.ts";
import { deadlineOf, implausible, type Measuring, prepare, timingOf } from "./evaluate.ts";
import { largestSymbols, type Symbols } from "./region-inputs.ts";
import type { Agreement, Measured, Rejected, Wrong } from "./verdict.ts";
import { workOf } from "./work.ts";

export interface SetMember {
  /** Absent where the oracle cannot say, so that nothing was timed. */
  readonly verdict?: Measured | Wrong | Rejected;
  /** The least of all rounds: what else runs on a machine only ever adds. */
  readonly leastNs?: number;
}

export interface SetMeasuring extends Omit<Measuring, "incumbent"> {
  readonly shared: CheckBlocks;
}

/** A candidate that agrees and waits for its turn. */
interface Ready {
  readonly at: number;
  readonly candidate: Candidate;
  readonly session: CandidateSession;
  readonly agreement: Agreement;
  readonly symbols: Symbols;
}

export async function measureSet(
  candidates: readonly Candidate[],
  bench: Bench,
  measuring: SetMeasuring,
): Promise<readonly SetMember[]> {
  const members: SetMember[] = candidates.map(() => ({}));
  const ready: Ready[] = [];
  try {
    for (const [at, candidate] of candidates.entries()) {
      const checked = await check(candidate, bench, measuring.shared);
      if (checked.kind === "ready") ready.push({ at, candidate, ...checked });
      else if (checked.kind !== "unchecked") members[at] = { verdict: checked };
    }
    await timeReady(ready, bench, measuring, members);
    return members;
  } finally {
    for (const { session } of ready) await session.unload();
  }
}

type Checked =
  | ({ readonly kind: "ready" } & Pick<Ready, "session" | "agreement" | "symbols">)
  | { readonly kind: "unchecked" }
  | Wrong
  | Rejected;

async function check(candidate: Candidate, bench: Bench, shared: CheckBlocks): Promise<Checked> {
  const symbols = largestSymbols(candidate.program, new Rng(bench.seed));
  const valid = bench.validate(candidate.program);
  if (!valid.ok) return rejected("illegal", valid.diagnostics);
  const session = new CandidateSession(candidate, bench);
  const loaded = await session.load();
  if (loaded.kind !== "done") return loaded;
  const outcome = await checkCandidate(candidate, session, bench, shared);
  if (outcome.kind === "agrees" && symbols) {
    return { kind: "ready", session, agreement: outcome.agreement, symbols };
  }
  await session.unload();
  return outcome.kind === "agrees" ? { kind: "unchecked" } : outcome;
}

async function timeReady(
  ready: readonly Ready[],
  bench: Bench,
  { protocol, peaks }: SetMeasuring,
  members: SetMember[],
): Promise<void> {
  const running: Ready[] = [];
  for (const one of ready) {
    const refusal = await prepare(one.session, one.candidate, one.symbols, bench);
    if (refusal) members[one.at] = { verdict: refusal };
    else running.push(one);
  }
  // A crash on the way took the programs before it along.
  const present = running.filter((r) => r.session.isLoaded);
  const [first, ...others] = present;
  if (!first) return;
  const deadlineMs = deadlineOf(protocol, bench) * present.length;
  const rivals = others.map((r) => r.session);
  const timed = await first.session.time(protocol, deadlineMs, rivals);
  for (const [i, { at, candidate, agreement, symbols }] of present.entries()) {
    if (timed.kind !== "done") {
      members[at] = { verdict: timed };
      continue;
    }
    const samples = Array.from(timed.value[i]!);
    const leastNs = Math.min(...samples);
    const boundNs = roofBoundNs(workOf(candidate.region, symbols), peaks);
    members[at] =
      leastNs < boundNs
        ? { verdict: implausible(candidate, leastNs, boundNs) }
        : { verdict: { kind: "measured", agreement, timing: timingOf(samples, boundNs) }, leastNs };
  }
}
