/**
 * Runs a campaign's trials, by their seeds, and counts. Failures and skips are kept with their seed
 * and reason; equal reasons of skips are counted together.
 */
import type { Finding, Trial } from "./campaign.ts";

export interface Failure {
  readonly seed: number;
  readonly reason: string;
}

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly Failure[];
  readonly skips: ReadonlyMap<string, number>;
}

export interface CampaignRun {
  readonly trial: Trial;
  readonly seeds: readonly number[];
  /** Trials that may run at once; they are counted in the order of their seeds all the same. */
  readonly atOnce: number;
  /** Told of each failure as it is found, and of progress. */
  readonly onFailure: (failure: Failure) => void;
  readonly onTrial: (done: number, seed: number, finding: Finding) => void;
}

export async function runCampaign(run: CampaignRun): Promise<Tally> {
  let passed = 0;
  const failures: Failure[] = [];
  const skips = new Map<string, number>();
  const begun: Promise<Finding>[] = [];
  for (const [i, seed] of run.seeds.entries()) {
    while (begun.length < Math.min(run.seeds.length, i + run.atOnce)) {
      begun.push(findingOf(run.trial, run.seeds[begun.length]!));
    }
    const finding = await begun[i]!;
    if (finding.kind === "passed") passed++;
    else if (finding.kind === "skipped") {
      skips.set(finding.reason, (skips.get(finding.reason) ?? 0) + 1);
    } else {
      failures.push({ seed, reason: finding.reason });
      run.onFailure(failures.at(-1)!);
    }
    run.onTrial(i + 1, seed, finding);
  }
  const skipped = [...skips.values()].reduce((a, b) => a + b, 0);
  return { passed, failed: failures.length, skipped, failures, skips };
}

/** A campaign looks for bugs, so an error thrown by a trial is a find and the next trial goes on. */
async function findingOf(trial: Trial, seed: number): Promise<Finding> {
  try {
    return await trial(seed);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { kind: "failed", reason: `${error.name}: ${error.message}` };
  }
}

/** The line that every campaign ends with. */
export function closingLine({ passed, failed, skipped }: Tally): string {
  const skips = skipped > 0 ? `, ${skipped} skipped` : "";
  return `${passed} passed, ${failed} failed${skips}`;
}
