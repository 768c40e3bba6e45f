/**
 * Whether a run is better off on the calling thread alone. Waking threads and meeting between kernels can cost more
 * than it saves: for a model of some tens of microseconds always, for longer ones where threads do not get a
 * processor in time. Only a measurement knows, so a few runs now and then, ever more rarely, are made the
 * other way, and the way that was faster is kept. Runs right after another find threads that still poll, runs after a
 * pause have to wake them, and runs on other extents are other work: each is decided by itself. No clock is read here.
 */
import type { ParameterValues } from "./model-session.ts";

/** Runs of a trial, the median of which counts: one that is disturbed decides nothing, nor one that was lucky. */
const trialRuns = 3;
/**
 * Runs of the present way before the first trial, and between two at most where the other way costs little. The first
 * ones run while the engine still makes faster code on other threads, for which the processors of all are needed: what
 * they take says little of those that follow, so a change is looked at again after as many.
 */
const [firstPause, longestPause] = [12, 384];
/** What trials may cost in the long run, as a share of the time: of a way known to be slow, and of long runs. */
const trialShare = 0.01;
/**
 * Of runs from here on a trial is felt: three runs that take up to as many times longer as there are threads. They
 * lose little by their threads as a rule (waking them takes 0.1 ms), so the first trial waits until it is cheap.
 */
const longMs = 20;
/** All threads have to be this much faster than one alone to be worth their processors. */
const margin = 0.9;
/** Runs of the present way that a trial is compared with: the median of the last ones. */
const remembered = 5;
/**
 * Runs that take so much longer than when they were chosen ask for a trial: more than the median of five differs from
 * one time to another (a tenth on an idle machine), less than what two threads are worth at most.
 */
const drift = 1.4;

/** The decision for runs of one kind: equal work, threads in the same state. */
export class ThreadChoice {
  /** Runs before the first trial of a long run. */
  readonly #longPause: number;
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

  constructor(threads: number) {
    this.#longPause = (trialRuns * (threads - 1)) / trialShare;
  }

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
    if (isFull && median(this.#last) > drift * this.#chosenMs) {
      this.#chosenMs = Infinity;
      this.#pause = this.#since;
    }
  }

  #isTrial(): boolean {
    if (this.#since < this.#pause) return false;
    return this.#since >= this.#longPause || median(this.#last) < longMs;
  }

  #decide(): void {
    const [present, other] = [median(this.#last), median(this.#trial)];
    const isBetter = other < (this.#alone ? margin * present : present);
    if (isBetter) {
      this.#alone = !this.#alone;
      this.#last = this.#trial;
    }
    this.#chosenMs = median(this.#last);
    this.#trial = [];
    this.#since = 0;
    const lost = trialRuns * (Math.max(present, other) / this.#chosenMs - 1);
    const longest = Math.max(longestPause, lost / trialShare);
    this.#pause = isBetter ? firstPause : Math.min(4 * this.#pause, longest);
  }
}

/** The lower one of the two in the middle. */
function median(times: readonly number[]): number {
  return [...times].sort((a, b) => a - b)[(times.length - 1) >> 1]!;
}

/**
 * How long threads of WebAssembly poll for the next run before they sleep, so that pauses from here on find them asleep.
 * Who polls as long as waking costs spends at most twice what one would who knew the pause (Karlin, Manasse, Rudolph and
 * Sleator, "Competitive snoopy caching", 1988); a run that wakes its threads takes about 0.1 ms longer, or twice that
 * where the worker is woken on the caller's processor.
 */
export const pollMilliseconds = 0.2;
/** Combinations of extents that are kept apart; then it begins anew. */
const mostKinds = 64;

export interface Outcome {
  readonly ok: boolean;
}

/** Threads that programs take turns on. */
export class ThreadUse {
  /** When the last run ended, of whichever program: whether threads sleep hangs on that. */
  endMs = -Infinity;
  /** While programs run that are decided as one: whether all of them are made alone. */
  alone: boolean | undefined;
}

/** The decisions of a program, or of several that run one after another, one for each kind of run. */
export class ThreadChoices {
  readonly #threads: number;
  readonly #use: ThreadUse;
  readonly #choices = new Map<string, ThreadChoice>();

  /** @param use where threads are shared, what all programs on them are given */
  constructor(threads: number, use = new ThreadUse()) {
    this.#threads = threads;
    this.#use = use;
  }

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

  /** A run of several programs on the same threads, which is decided and timed as a whole. */
  runTogether<T extends Outcome>(
    parameters: ParameterValues,
    clock: () => number,
    make: () => T,
  ): T {
    return this.run(parameters, clock, (alone) => {
      this.#use.alone = alone;
      try {
        return make();
      } finally {
        this.#use.alone = undefined;
      }
    });
  }

  /** The same of programs whose runs are promised; one that begins meanwhile is made as this one is. */
  async runTogetherAsync<T extends Outcome>(
    parameters: ParameterValues,
    clock: () => number,
    make: () => Promise<T>,
  ): Promise<T> {
    if (this.#use.alone !== undefined) return make();
    return this.runAsync(parameters, clock, async (alone) => {
      this.#use.alone = alone;
      try {
        return await make();
      } finally {
        this.#use.alone = undefined;
      }
    });
  }

  #begin(parameters: ParameterValues, clock: () => number) {
    const use = this.#use;
    const startMs = clock();
    const isRested = startMs - use.endMs > pollMilliseconds;
    // What is decided as a whole is not decided, nor learned from, part by part.
    const choice =
      use.alone === undefined
        ? this.#of(`${isRested} ${Object.values(parameters).join()}`)
        : undefined;
    const note = <T extends Outcome>(made: T): T => {
      use.endMs = clock();
      if (made.ok) choice?.note(use.endMs - startMs);
      return made;
    };
    return { alone: choice?.next() ?? use.alone!, note };
  }

  #of(kind: string): ThreadChoice {
    const known = this.#choices.get(kind);
    if (known) return known;
    if (this.#choices.size >= mostKinds) this.#choices.clear();
    const choice = new ThreadChoice(this.#threads);
    this.#choices.set(kind, choice);
    return choice;
  }
}
