/**
 * Runs a candidate runtime and the reference side by side on the same inputs and keeps the books:
 * the worst difference of any output element and both times, a model at a time. The tolerance is
 * derived from the model, not chosen: a sum of K rounded products in any order is off by about
 * sqrt(K) half-ulps of its size, and each of `depth` layers adds its own.
 */
import type { RegionRow, Session, Tensor, Tensors } from "../bench/sessions/session.ts";
import { invariant } from "../src/support/invariant.ts";

/** What was seen of one model. */
export interface Agreement {
  readonly model: string;
  readonly runs: number;
  /** Largest |candidate - reference| / max(1, |reference|). */
  readonly worst: number;
  readonly tolerance: number;
  readonly candidateMs: number;
  readonly referenceMs: number;
}

export interface PairedSession extends Session {
  agreement(): Agreement;
  regions(): readonly RegionRow[];
}

export interface Tolerated {
  readonly name: string;
  readonly depth: number;
  readonly longestSum: number;
}

const float32Epsilon = 2 ** -23;

/** Relative difference that float32 rounding alone may cause between two orders of evaluation. */
export function toleranceOf({ depth, longestSum }: Tolerated): number {
  return float32Epsilon * Math.sqrt(longestSum) * depth;
}

/** A session that answers with the candidate's outputs and compares each run with the reference. */
export function pairSessions(
  model: Tolerated,
  candidate: Session,
  reference: Session,
): PairedSession {
  const books = { runs: 0, worst: 0, candidateMs: 0, referenceMs: 0 };
  return {
    inputs: candidate.inputs,
    outputs: candidate.outputs,
    run: async (feeds) => {
      const start = performance.now();
      const ours = await candidate.run(feeds);
      const between = performance.now();
      const theirs = await reference.run(feeds);
      books.candidateMs += between - start;
      books.referenceMs += performance.now() - between;
      books.runs++;
      books.worst = Math.max(books.worst, worstDifference(ours, theirs));
      return ours;
    },
    agreement: () => ({ model: model.name, tolerance: toleranceOf(model), ...books }),
    regions: () => candidate.profile?.() ?? [],
    release: async () => {
      await candidate.release();
      await reference.release();
    },
  };
}

export function agrees({ worst, tolerance }: Agreement): boolean {
  return worst <= tolerance;
}

/**
 * Largest |a - b| / max(1, |b|) over all outputs; infinite where a NaN, an infinity, a shape or a
 * missing output differs.
 */
export function worstDifference(ours: Tensors, theirs: Tensors): number {
  let worst = 0;
  for (const [name, expected] of Object.entries(theirs)) {
    const found = ours[name];
    if (found === undefined || !sameShape(found, expected)) return Number.POSITIVE_INFINITY;
    for (let i = 0; i < expected.data.length; i++) {
      worst = Math.max(worst, difference(Number(found.data[i]), Number(expected.data[i])));
    }
  }
  return worst;
}

function sameShape(a: Tensor, b: Tensor): boolean {
  invariant(b.data.length === b.dims.reduce((x, y) => x * y, 1), () => "reference shape");
  return a.type === b.type && a.dims.join() === b.dims.join() && a.data.length === b.data.length;
}

function difference(a: number, b: number): number {
  if (Object.is(a, b) || a === b) return 0;
  const d = Math.abs(a - b) / Math.max(1, Math.abs(b));
  return Number.isNaN(d) ? Number.POSITIVE_INFINITY : d;
}
