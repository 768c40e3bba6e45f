/**
 * Whether a run is better off on the calling thread alone. Waking threads and meeting between kernels can cost more
 * than it saves: for a model of some tens of microseconds always, for longer ones where threads do not get a
 * processor in time. Only a measurement knows, so a few runs now and then, ever more rarely, are made the
 * other way, and the way that was faster is kept. Runs right after another find threads that still poll, runs after a
 * pause have to wake them, and runs on other extents are other work: each is decided by itself. No clock is read here.
 */
import type { ParameterValues } from "./model-session.ts";

/** Runs from here on are worth their threads: waking them is little beside this. */
const longMs = 20;
/** Runs of a trial, the shortest of which counts. */
const trialRuns = 2;
/** Runs of the present way before the first trial, and between two at most. */
const [firstPause, longestPause] = [2, 256];
/** All threads have to be this much faster than one alone to be worth their processors. */
const margin = 0.9;
/** Runs of the present way that a trial is compared with: the shortest of the last ones. */
const remembered = 4;
/** Runs that take so much longer than when they were chosen ask for a trial. */
const drift = 1.4;

/** The decision for runs of one kind: equal work, threads in the same state. */
export class ThreadChoice {
  #alone = false;
  /** Times of the last runs of the present way. */
  #last: readonly number[] = [];
  /** Times of the trial that is being made. */
  #trial: readonly number[] = [];
  /** Runs of the present way since the last trial, and how many are to be made before the next one. */
  #since = 0;
  #pause = firstPause;
  /** What a run took when the present way was last chosen. */
  #chosenMs = Infinity;

  /** Whether the next run is to be made alone. */
  next(): boolean {
    return this.#isTrial() ? !this.#alone : this.#alone;
  }

  /** How long that run took. */
  note(ms: number): void {
    if (this.#isTrial()) {
      this.#trial = [...this.#trial, ms];
      if (this.#trial.length === trialRuns) this.#decide();
      return;
    }
    this.#last = [...this.#last.slice(1 - remembered), ms];
    this.#since++;
    const isFull = this.#last.length === remembered && this.#since >= remembered;
    if (isFull && Math.min(...this.#last) > drift * this.#chosenMs) {
      this.#chosenMs = Infinity;
      this.#pause = this.#since;
    }
  }

  #isTrial(): boolean {
    return this.#since >= this.#pause && Math.min(...this.#last) < longMs;
  }

  #decide(): void {
    const [present, other] = [Math.min(...this.#last), Math.min(...this.#trial)];
    if (other < (this.#alone ? margin * present : present)) {
      this.#alone = !this.#alone;
      this.#last = this.#trial;
    }
    this.#chosenMs = Math.min(...this.#last);
    this.#trial = [];
    this.#since = 0;
    this.#pause = Math.min(longestPause, 4 * this.#pause);
  }
}

/** Pauses from here on find threads asleep. */
const restMs = 0.2;
/** Combinations of extents that are kept apart; then it begins anew. */
const mostKinds = 64;

interface Outcome {
  readonly ok: boolean;
}

/** The decisions of a program, one for each kind of run. */
export class ThreadChoices {
  readonly #choices = new Map<string, ThreadChoice>();
  #endMs = -Infinity;

  /**
   * Makes a run, alone or not, and notes how long it took, unless it failed: what ends early tells nothing.
   * @param clock milliseconds from a fixed point
   */
  run<T extends Outcome>(
    parameters: ParameterValues,
    clock: () => number,
    make: (alone: boolean) => T,
  ): T {
    const { alone, note } = this.#begin(parameters, clock);
    return note(make(alone));
  }

  /** The same of a run that is over when its promise settles; no other may begin before. */
  async runAsync<T extends Outcome>(
    parameters: ParameterValues,
    clock: () => number,
    make: (alone: boolean) => Promise<T>,
  ): Promise<T> {
    const { alone, note } = this.#begin(parameters, clock);
    return note(await make(alone));
  }

  #begin(parameters: ParameterValues, clock: () => number) {
    const startMs = clock();
    const isRested = startMs - this.#endMs > restMs;
    const choice = this.#of(`${isRested} ${Object.values(parameters).join()}`);
    const note = <T extends Outcome>(made: T): T => {
      this.#endMs = clock();
      if (made.ok) choice.note(this.#endMs - startMs);
      return made;
    };
    return { alone: choice.next(), note };
  }

  #of(kind: string): ThreadChoice {
    const known = this.#choices.get(kind);
    if (known) return known;
    if (this.#choices.size >= mostKinds) this.#choices.clear();
    const choice = new ThreadChoice();
    this.#choices.set(kind, choice);
    return choice;
  }
}
