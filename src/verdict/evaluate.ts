/**
 * Judges one candidate. Rejects first what is not valid, does not load, crashes, hangs or asks too much;
 * then compares with the oracle; only what agrees is measured, and a time below what the machine can do
 * is no measurement. Nothing falls back: each way out is its own verdict.
 */
import { type Peaks, roofBoundNs } from "../runtime/measure/roofline.ts";
import type { SamplingProtocol } from "../runtime/measure/sampling.ts";
import { estimateRatio, quantile } from "../runtime/measure/statistics.ts";
import { evaluate as evaluateIndex } from "../semantics/index-expr.ts";
import type { StoredTiming } from "../store/trial.ts";
import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import type { Bench, Candidate } from "./candidate.ts";
import { CandidateSession, rejected } from "./candidate-session.ts";
import { type CheckBlocks, checkCandidate } from "./check-candidate.ts";
import { drawFills, largestSymbols, type Symbols } from "./region-inputs.ts";
import type { Agreement, Estimate, Measured, Rejected, Verdict, Wrong } from "./verdict.ts";
import { workOf } from "./work.ts";

/** How candidates that agree are timed; the peaks are those of the target on the bench's threads. */
export interface Measuring {
  readonly protocol: SamplingProtocol;
  readonly peaks: Peaks;
  /** The best schedule so far: timed in turns with the candidate. */
  readonly incumbent?: Incumbent;
}

/** A candidate that was measured, with its program in the child and the inputs that it was timed on. */
export interface Incumbent {
  readonly candidate: Candidate;
  readonly session: CandidateSession;
}

export interface Evaluation {
  readonly verdict: Verdict;
  /** Values of the symbols that a time is about; undefined where none could be drawn. */
  readonly symbols: Symbols | undefined;
  /** Why nothing was compared, where nothing was. */
  readonly unchecked: readonly Diagnostic[];
  /** Of what was measured: still in the child, which whoever asked ends. */
  readonly session?: CandidateSession;
}

/** What is known of a candidate's time without running it. */
export type Estimator = (candidate: Candidate) => Estimate;

/**
 * @param measuring absent: the candidate is compared and its time estimated
 * @param shared random blocks that evaluations of one seed share
 */
export async function evaluate(
  candidate: Candidate,
  bench: Bench,
  how: {
    readonly estimate: Estimator;
    readonly measuring?: Measuring;
    readonly shared: CheckBlocks;
  },
): Promise<Evaluation> {
  const symbols = largestSymbols(candidate.program, new Rng(bench.seed));
  const because = (verdict: Verdict, unchecked: readonly Diagnostic[] = []): Evaluation => ({
    verdict,
    symbols,
    unchecked,
  });
  const valid = bench.validate(candidate.program);
  if (!valid.ok) return because(rejected("illegal", valid.diagnostics));
  const session = new CandidateSession(candidate, bench);
  const loading = session.load();
  const checking = checkCandidate(candidate, session, bench, how.shared);
  // Out of the child's memory before the next candidate.
  const unloading = how.measuring ? undefined : session.unload();
  const loaded = await loading;
  const checked = await checking;
  await unloading;
  if (loaded.kind !== "done") return because(loaded);
  let isKept = false;
  try {
    if (checked.kind === "unchecked") {
      const estimated = { kind: "estimated", estimate: how.estimate(candidate) } as const;
      return because(estimated, checked.diagnostics);
    }
    if (checked.kind !== "agrees") return because(checked);
    const { agreement } = checked;
    if (how.measuring) {
      const parts = { candidate, session, bench, symbols: symbols!, agreement, shared: how.shared };
      const verdict = await measure(parts, how.measuring);
      isKept = verdict.kind === "measured";
      return { ...because(verdict), ...(isKept && { session }) };
    }
    return because({ kind: "estimated", agreement, estimate: how.estimate(candidate) });
  } finally {
    if (!isKept) await session.unload();
  }
}

interface MeasureParts {
  readonly candidate: Candidate;
  readonly session: CandidateSession;
  readonly bench: Bench;
  readonly symbols: Symbols;
  readonly agreement: Agreement;
  readonly shared: CheckBlocks;
}

async function measure(
  parts: MeasureParts,
  measuring: Measuring,
): Promise<Measured | Wrong | Rejected> {
  const { candidate, session, bench, symbols, agreement } = parts;
  const { protocol, peaks, incumbent } = measuring;
  const refused = await prepare(session, candidate, symbols, bench);
  if (refused) return refused;
  const rival = incumbent?.session;
  // A crash since it was measured took its program along.
  if (incumbent && rival && !rival.isLoaded) {
    const lost = await prepare(rival, incumbent.candidate, symbols, bench);
    if (lost) return lost;
  }
  const timed = await session.time(protocol, deadlineOf(protocol, bench), rival ? [rival] : []);
  if (timed.kind !== "done") return timed;
  const [own, other] = timed.value.map((samples) => Array.from(samples));
  const boundNs = roofBoundNs(workOf(candidate.region, symbols), peaks);
  const fastest = Math.min(...own!, ...(other ?? []));
  if (fastest < boundNs) return implausible(candidate, fastest, boundNs);
  const timing: StoredTiming = {
    ...timingOf(own!, boundNs),
    ...(incumbent && { paired: pairedWith(incumbent.candidate, own!, other!, bench.seed) }),
  };
  return { kind: "measured", agreement, timing };
}

export function timingOf(samples: readonly number[], boundNs: number): StoredTiming {
  return {
    medianNs: quantile(samples, 0.5),
    lowNs: quantile(samples, 0.25),
    highNs: quantile(samples, 0.75),
    n: samples.length,
    boundNs,
  };
}

/** Loads what is not loaded, and runs it once on the inputs that it will be timed on. */
export async function prepare(
  session: CandidateSession,
  candidate: Candidate,
  symbols: Symbols,
  { seed }: Bench,
): Promise<Rejected | undefined> {
  if (!session.isLoaded) {
    const loaded = await session.load();
    if (loaded.kind !== "done") return loaded;
  }
  const fills = drawFills(candidate.region, symbols, "any", new Rng(seed));
  const contents = [...fills].map(([tensor, fill]) => ({
    tensor,
    fill,
    shape: candidate.region.tensors.get(tensor)!.shape.map((e) => evaluateIndex(e, symbols)),
  }));
  const ran = await session.run(Object.fromEntries(symbols), contents);
  return ran.kind === "done" ? undefined : ran;
}

function pairedWith(
  incumbent: Candidate,
  own: readonly number[],
  other: readonly number[],
  seed: number,
): NonNullable<StoredTiming["paired"]> {
  const pairs = own.map((oursNs, i) => ({ oursNs, peerNs: other[i]! }));
  const { ratio, low, high } = estimateRatio(pairs, new Rng(seed));
  return { schedule: incumbent.schedule, ratio, low, high };
}

/** Every run of warm-up and rounds may take what one run may, on both sides. */
export function deadlineOf({ rounds, warmUp }: SamplingProtocol, { deadlineMs }: Bench): number {
  return deadlineMs * 2 * (rounds + 2 * warmUp);
}

export function implausible(candidate: Candidate, foundNs: number, boundNs: number): Rejected {
  const message = `a run took ${foundNs.toFixed(0)} ns, its work needs ${boundNs.toFixed(0)} ns at least`;
  const at = `region ${candidate.region.name}`;
  return rejected("implausible", [
    diagnostic("VER005", message, { at, help: "measure again on an idle machine" }),
  ]);
}
