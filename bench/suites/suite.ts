/**
 * What a suite of benches is: a name, the targets it knows, the peer packages it needs, and its
 * cases, each of which opens into a Contest. Suites stand in registry.ts, one file each.
 */
import type { NamedChart } from "../chart.ts";
import type { Contest } from "../measure/contest.ts";
import type { BenchRow, FailedCase, SuiteSummary } from "../report.ts";

export interface PeerPackage {
  readonly name: string;
  readonly version: string;
}

interface CaseName {
  /** `family/rest`: cases of one family count once in the suite's mean. */
  readonly case: string;
  readonly peerName: string;
}

/** Both sides can be called from this process: the bench interleaves them (measure/contest.ts). */
export interface ContestCase extends CaseName {
  open(): Promise<Contest>;
}

/** A side that is another process or another language: the suite runs both, interleaved, itself. */
export interface ForeignCase extends CaseName {
  measure(): Promise<BenchRow | FailedCase>;
}

export type BenchCase = ContestCase | ForeignCase;

/** What was asked for on the command line. */
export interface BenchRequest {
  readonly target: string;
  readonly threads: number;
  /** How many of a kind at once, where models have that open; not given: what each row says. */
  readonly batch?: number;
  /** A file that the suite's times are written to, or read from in place of measuring. */
  readonly record?: string;
  readonly replay?: string;
}

export interface SuiteCases {
  /** Versions of all that is measured, beside Node's. */
  readonly versions: Readonly<Record<string, string>>;
  readonly cases: readonly BenchCase[];
  /** Called after the last case: what cases share ends here. */
  readonly close?: () => Promise<void>;
  /** In place of the mean of ratios. */
  readonly summarise?: (rows: readonly BenchRow[]) => SuiteSummary;
  /** Written as SVG where the bench keeps its files. */
  readonly charts?: (rows: readonly BenchRow[]) => readonly NamedChart[];
}

export interface Suite {
  readonly name: string;
  readonly summary: string;
  /** The first is the default. */
  readonly targets: readonly string[];
  readonly peers: readonly PeerPackage[];
  /** What its times are of, where its cases measure themselves and `--clock` is nothing to them. */
  readonly ownClock?: string;
  /** It takes `--batch`. */
  readonly takesBatch?: true;
  /** It takes `--record` and `--replay`. */
  readonly recordsTimes?: true;
  /**
   * Peers that no npm package carries (a Debian package, a crate): built when `install`, else a
   * sentence that says what is missing. undefined: all there.
   */
  preparePeers?(install: boolean): string | undefined;
  load(request: BenchRequest): Promise<SuiteCases>;
}
