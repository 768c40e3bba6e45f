/**
 * Runs a candidate runtime and the reference side by side on the same inputs and keeps the books:
 * the worst difference of any output element and both times, a model at a time.
 */
import {
  countElements,
  type Rounding,
  toleranceOf,
  worstDifference,
} from "../bench/sessions/compare.ts";
import type { RegionRow, Session } from "../bench/sessions/session.ts";

/** What was seen of one model. */
export interface Agreement {
  readonly model: string;
  readonly runs: number;
  /** Output elements compared in all runs. */
  readonly elements: number;
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

/** The model's name with what its rounding depends on. */
export interface Tolerated extends Rounding {
  readonly name: string;
}

/** A session that answers with the candidate's outputs and compares each run with the reference. */
export function pairSessions(
  model: Tolerated,
  candidate: Session,
  reference: Session,
): PairedSession {
  const books = { runs: 0, elements: 0, worst: 0, candidateMs: 0, referenceMs: 0 };
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
      books.elements += countElements(theirs);
      books.worst = Math.max(books.worst, worstDifference(ours, theirs));
      return ours;
    },
    agreement: () => ({
      model: model.name,
      tolerance: toleranceOf(model, books.elements),
      ...books,
    }),
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
