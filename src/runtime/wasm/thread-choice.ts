/**
 * Whether a short run is better off on the calling thread alone. Threads that meet between kernels cost a
 * model of some tens of microseconds more than they save, the more so where something else wants the
 * cores, and only a measurement knows: now and then, ever more rarely, a run is made the other way, and
 * the way that was faster is kept. Runs that are long are left to all threads.
 */

/** Runs from here on are worth their threads. */
const longMs = 2;
/** Runs before the first comparison: engines begin with unoptimised code. */
const firstTrial = 8;
/** The other way has to be this much faster to be taken. */
const margin = 0.9;
/** Runs of the present way that a trial is compared with: the shortest of the last ones. */
const remembered = 4;

export class ThreadChoice {
  #runs = 0;
  #alone = false;
  /** Times of the last runs of the present way. */
  #last: readonly number[] = [];

  /** Whether the next run is to be made alone. */
  next(): boolean {
    return this.#isTrial() ? !this.#alone : this.#alone;
  }

  /** How long that run took. */
  note(ms: number): void {
    if (!this.#isTrial()) this.#last = [...this.#last.slice(1 - remembered), ms];
    else if (ms < margin * Math.min(...this.#last)) {
      this.#alone = !this.#alone;
      this.#last = [ms];
    }
    this.#runs++;
  }

  /** At powers of two. */
  #isTrial(): boolean {
    const n = this.#runs;
    return n >= firstTrial && (n & (n - 1)) === 0 && Math.min(...this.#last) < longMs;
  }
}
