/** Answers "unknown" of a solver whose work is bounded: skips while they are few, a failure beyond. */
import type { Finding } from "./campaign.ts";

/** Unknown answers that are allowed: this share of all, and a few in a short run. */
const mostUnknown = { share: 1 / 200, few: 2 };

/** What was asked in a run so far, and how often the answer was unknown. */
export class UnknownTally {
  #asked = 0;
  #unknown = 0;

  /** @param found a finding, or why there is none */
  count(found: Finding | { readonly kind: "unknown"; readonly reason: string }): Finding {
    this.#asked++;
    if (found.kind !== "unknown") return found;
    this.#unknown++;
    const { share, few } = mostUnknown;
    if (this.#unknown <= few + share * this.#asked)
      return { kind: "skipped", reason: found.reason };
    const rate = `${this.#unknown} of ${this.#asked} answers are unknown`;
    return { kind: "failed", reason: `${rate}; the last: ${found.reason}` };
  }
}
