/**
 * Which rules may search in an iteration. A rule whose matches exceed its limit is banned for some
 * iterations, and limit and ban double each time (egg's back-off); the ban comes before the search,
 * which itself ends at the limit, so that a rule that explodes costs no more than the limit.
 */

export interface BackoffOptions {
  /** Matches that a rule may have in one iteration. */
  readonly matches: number;
  /** Iterations of the first ban. */
  readonly ban: number;
}

export const defaultBackoff: BackoffOptions = { matches: 1000, ban: 5 };

export class Backoff {
  readonly #options: BackoffOptions | undefined;
  #timesBanned = 0;
  #bannedUntil = 0;

  /** @param options undefined: the rule is never banned */
  constructor(options: BackoffOptions | undefined) {
    this.#options = options;
  }

  get timesBanned(): number {
    return this.#timesBanned;
  }

  isBanned(iteration: number): boolean {
    return iteration < this.#bannedUntil;
  }

  get bannedUntil(): number {
    return this.#bannedUntil;
  }

  /** One more row than allowed, so that a search shows that it was too many. */
  rowLimit(): number {
    return this.#options ? this.#options.matches * 2 ** this.#timesBanned + 1 : unlimited;
  }

  /** Bans the rule when it found too much; then its matches are dropped. */
  noteFound(rows: number, iteration: number): boolean {
    if (!this.#options || rows < this.rowLimit()) return false;
    this.#bannedUntil = iteration + this.#options.ban * 2 ** this.#timesBanned;
    this.#timesBanned++;
    return true;
  }

  /** Moves the end of a ban, when nothing else is left to do. */
  release(iteration: number): void {
    this.#bannedUntil = Math.min(this.#bannedUntil, iteration);
  }
}

/** More rows than an array holds. */
export const unlimited = 2 ** 30;
