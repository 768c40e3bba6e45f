/**
 * What a campaign is: a long check made of many independent trials, each decided by its seed alone,
 * so that a failure is run again with `--seed SEED --count 1`. Campaigns stand in registry.ts, one
 * file each.
 */

/** How one trial ended. A skip says why. */
export type Finding =
  | {
      readonly kind: "passed";
      /** What was found, beside that it passed. */
      readonly note?: string;
    }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "skipped"; readonly reason: string };

export const passed: Finding = { kind: "passed" };

/** One trial; what it throws counts as a failure with the error's message. */
export type Trial = (seed: number) => Finding | Promise<Finding>;

export interface Campaign {
  readonly name: string;
  readonly summary: string;
  /** The first is the default. */
  readonly targets: readonly string[];
  /** Trials unless `--count` says otherwise, where they have no names. */
  readonly defaultCount: number | ((target: string) => number);
  /** Trials that may run at once; 1 where nothing is said. */
  readonly atOnce?: number;
  /**
   * What the trials of a target are about, around and around: trial n has name n, and once around is the
   * usual number. They may be picked by `--only`, and each is told as it ends.
   */
  names?(target: string): readonly string[];
  open(target: string): Promise<Trial>;
  /** What all trials together show, once they have ended; a failure among them fails the run. */
  closing?(): readonly Finding[];
}
