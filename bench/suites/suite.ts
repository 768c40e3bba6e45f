/**
 * What a suite of benches is: a name, the targets it knows, the peer packages it needs, and its
 * cases, each of which opens into a Contest. Suites stand in registry.ts, one file each.
 */
import type { Contest } from "../measure/contest.ts";

export interface PeerPackage {
  readonly name: string;
  readonly version: string;
}

export interface BenchCase {
  /** `family/rest`: cases of one family count once in the suite's mean. */
  readonly case: string;
  readonly peerName: string;
  open(): Promise<Contest>;
}

/** What was asked for on the command line. */
export interface BenchRequest {
  readonly target: string;
  readonly threads: number;
}

export interface SuiteCases {
  /** Versions of all that is measured, beside Node's. */
  readonly versions: Readonly<Record<string, string>>;
  readonly cases: readonly BenchCase[];
}

export interface Suite {
  readonly name: string;
  readonly summary: string;
  /** The first is the default. */
  readonly targets: readonly string[];
  readonly peers: readonly PeerPackage[];
  load(request: BenchRequest): Promise<SuiteCases>;
}
