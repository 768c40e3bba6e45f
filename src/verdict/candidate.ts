/** What is judged, and everything with side effects that judging needs: all of it injected. */
import type { TileFactor } from "../interp/sample-points.ts";
import type { Program } from "../program/program.ts";
import type { Region } from "../region/nest.ts";
import type { CandidateRunner } from "../runtime/child/child-runner.ts";
import type { Result } from "../support/diagnostic.ts";

export interface Candidate {
  /** What is to be computed: the oracle's side. */
  readonly region: Region;
  /** What runs: the region alone (lower/region-program.ts). */
  readonly program: Program;
  /** The schedule in the schedule language, for the record. */
  readonly schedule: string;
  /** Where the schedule cuts loops (schedule/states/tile-factors.ts). */
  readonly tiles: readonly TileFactor[];
  /** What the operands of products lose at most, relative to themselves, where the schedule rounds them. */
  readonly operandError?: number;
}

export interface Bench {
  /** Where candidates run: a child process, so that a crash or hang is an outcome. */
  readonly runner: CandidateRunner;
  /** The program validator, or what has already validated the program as part of a larger one. */
  readonly validate: (program: Program) => Result<Program>;
  readonly threads: number;
  /** Everything random is drawn from it. */
  readonly seed: number;
  /** Time that one run may take before it counts as hung. */
  readonly deadlineMs: number;
}
