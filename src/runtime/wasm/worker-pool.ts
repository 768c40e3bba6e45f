/**
 * Compute threads for WebAssembly programs. The threads of a pool serve any number of programs, one job
 * at a time: a job is every thread calling the program's entry `run(thread, threads)` on the program's
 * shared memory. Programs synchronise their own phases (emit/wasm/barrier.ts).
 *
 * `runSync` makes the calling thread thread 0 and blocks; `run` leaves the caller's event loop free, so
 * thread 0 is then a worker too. Threads start when first needed, poll their mailbox for a bounded time
 * between jobs, then sleep, and never keep the process alive by themselves. Where a program's work is claimed,
 * a job is withdrawn from threads that have not begun it when the caller finds no more of it. A thread that
 * traps or dies ends the job with a diagnostic and is replaced at the next one.
 */
import { abortCodes, controlBlock, sleepMilliseconds } from "../../emit/wasm/control-block.ts";
import type { Result } from "../../support/diagnostic.ts";
import { fail } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { pollMilliseconds, ThreadUse } from "../thread-choice.ts";
import { ThreadPlaces } from "../thread-places.ts";
import { cancelled, programOutcome, threadFailed } from "./run-outcome.ts";
import type { WorkerHandle, WorkerHost } from "./worker-host.ts";
import {
  type FromWorker,
  finishPolls,
  mailbox,
  poolWords,
  runPolls,
  type ToWorker,
  workerSource,
} from "./worker-source.ts";

export interface PoolOptions {
  /** Compute threads of a job, the caller of runSync included. At least 1. */
  readonly threads: number;
  readonly host: WorkerHost;
  /** Longest time a thread waits for the others at a barrier before the job fails. */
  readonly stallMilliseconds: number;
}

/** A compiled program with the memory it runs on. */
export interface PoolProgram {
  readonly module: WebAssembly.Module;
  /** Shared, unless the pool has one thread and only runSync is used. */
  readonly memory: WebAssembly.Memory;
  /** Exported function `(thread, threads) -> void`. */
  readonly entry: string;
  /** What the numbers of failed checks in the control block stand for. */
  readonly checks: readonly string[];
  /** Whether any number of its threads do all of its work, so that none is waited for that has not begun. */
  readonly isDealt?: boolean;
}

/** Makes a job on so many threads. */
type MakeJob = (threads: number) => Promise<Result<void>>;

type Entry = (thread: number, threads: number) => void;

interface Thread {
  readonly handle: WorkerHandle;
  readonly attached: Set<number>;
}

interface AttachedProgram extends PoolProgram {
  readonly run: Entry;
  readonly words: Int32Array;
}

/** Work given to the threads; `settle` is there when a promise waits for it. */
interface Job {
  readonly program: AttachedProgram;
  /** The first thread that a worker runs: 1 where the caller of runSync is thread 0. */
  readonly first: number;
  /** The number of this job in the mailbox of each thread that a worker runs. */
  readonly numbers: Map<number, number>;
  readonly settle: ((outcome: Result<void>) => void) | undefined;
  /** The first failure noticed on this side. */
  failure: string | undefined;
}

const word = (byteAddress: number) => byteAddress / 4;
const mailboxBase = (thread: number) => poolWords.mailboxes + thread * mailbox.words;

export class WorkerPool {
  /** Of all programs that are attached. */
  readonly use = new ThreadUse();
  readonly #options: PoolOptions;
  readonly #control: Int32Array<SharedArrayBuffer>;
  readonly #threads: (Thread | undefined)[];
  readonly #programs = new Map<number, AttachedProgram>();
  #places: ThreadPlaces | undefined;
  #nextProgram = 0;
  #job: Job | undefined;
  /** Settles when every promise job asked for so far has settled. */
  #queue: Promise<unknown> = Promise.resolve();
  #disposed = false;

  constructor(options: PoolOptions) {
    const { threads } = options;
    invariant(threads >= 1 && Number.isInteger(threads), () => `a pool of ${threads} threads`);
    this.#options = options;
    const words = poolWords.mailboxes + threads * mailbox.words;
    this.#control = new Int32Array(new SharedArrayBuffer(words * 4));
    this.#threads = new Array<Thread | undefined>(threads).fill(undefined);
  }

  get threads(): number {
    return this.#options.threads;
  }

  /** Instantiates a program on this side and makes it known; workers follow at its first job. */
  attach(program: PoolProgram): number {
    const imports = {
      env: { memory: program.memory },
      math: Math as unknown as Record<string, unknown>,
    };
    const run = new WebAssembly.Instance(program.module, imports).exports[program.entry] as Entry;
    const words = new Int32Array(program.memory.buffer);
    this.#programs.set(this.#nextProgram, { ...program, run, words });
    return this.#nextProgram++;
  }

  /** Forgets a program once the current job is over, so that its memory can be collected. */
  detach(id: number): void {
    this.#programs.delete(id);
    if (this.#job) this.#awaitWorkers(this.#job);
    this.#threads.forEach((thread, index) => {
      if (thread?.attached.delete(id)) this.#post(thread, index, { kind: "detach", program: id });
    });
  }

  /** Runs a program to its end on all threads or the first of them, this one included; blocks. */
  runSync(id: number, threads = this.threads): Result<void> {
    if (this.#disposed) return fail(threadFailed("the pool was disposed"));
    if (this.#job) this.#awaitWorkers(this.#job);
    this.#keepApart(threads);
    const job = this.#start(id, { first: 1, threads });
    const { program } = job;
    try {
      program.run(0, threads);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      job.failure = error.message;
      abortProgram(program, abortCodes.trapped);
    }
    if (program.isDealt) this.#withdraw(job);
    return this.#awaitWorkers(job);
  }

  /**
   * Runs a program to its end on workers only. Jobs run in the order they were asked for.
   * @param turn makes the job on so many threads when its turn has come
   */
  run(
    id: number,
    signal?: AbortSignal,
    turn: (make: MakeJob) => Promise<Result<void>> = (make) => make(this.threads),
  ): Promise<Result<void>> {
    const job = this.#queue.then(() => turn((threads) => this.#runBeside(id, threads, signal)));
    this.#queue = job;
    return job;
  }

  /** Ends every thread. A job in progress fails. */
  async dispose(): Promise<void> {
    this.#disposed = true;
    const ending = this.#threads.map((thread) => thread?.handle.terminate());
    this.#threads.fill(undefined);
    await Promise.all(ending);
    const job = this.#job;
    this.#job = undefined;
    job?.settle?.(fail(threadFailed("the pool was disposed")));
    this.#programs.clear();
  }

  #runBeside(id: number, threads: number, signal: AbortSignal | undefined): Promise<Result<void>> {
    if (signal?.aborted) return Promise.resolve(fail(cancelled()));
    if (this.#disposed) return Promise.resolve(fail(threadFailed("the pool was disposed")));
    this.#keepApart(threads);
    return new Promise((resolve) => {
      const job = this.#start(id, { first: 0, threads }, (outcome) => {
        signal?.removeEventListener("abort", cancel);
        for (const thread of this.#threads) thread?.handle.keepAlive(false);
        resolve(outcome);
      });
      const cancel = () => abortProgram(job.program, abortCodes.cancelled);
      for (const thread of this.#threads) thread?.handle.keepAlive(true);
      signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  /** Hands a job to the workers of threads `first` to `threads`; no thread may be at work. */
  #start(
    id: number,
    { first, threads }: { readonly first: number; readonly threads: number },
    settle?: (outcome: Result<void>) => void,
  ): Job {
    const program = this.#programs.get(id);
    invariant(program, () => `program ${id} is not attached`);
    this.#resetProgram(program);
    const control = this.#control;
    control[poolWords.failureLength] = 0;
    Atomics.store(control, poolWords.remaining, threads - first);
    const job: Job = { program, first, numbers: new Map(), settle, failure: undefined };
    this.#job = job;
    for (let index = first; index < threads; index++) this.#ready(index, id, program);
    // Thread 0 last: it may have the processor of the calling thread, which is about to be idle.
    for (let index = threads - 1; index >= first; index--) {
      const base = mailboxBase(index);
      control[base + mailbox.program] = id;
      control[base + mailbox.threads] = threads;
      control[base + mailbox.announce] = settle ? 1 : 0;
      Atomics.store(control, base + mailbox.offer, (control[base + mailbox.jobs]! + 1) | 0);
      job.numbers.set(index, this.#ring(index, "jobs"));
    }
    return job;
  }

  /**
   * The workers of a job run beside the calling thread, wherever they slept: beside thread 0, that is, which is the
   * calling thread or takes its processor over when that waits for a promise.
   */
  #keepApart(threads: number): void {
    if (threads === 1 || threads > this.#options.host.parallelism) return;
    const numbers: number[] = [];
    for (let index = 1; index < threads; index++) {
      const number = Atomics.load(this.#control, mailboxBase(index) + mailbox.systemThread);
      if (number !== 0 && this.#threads[index]) numbers.push(number);
    }
    this.#places?.keepApart(numbers);
  }

  #forgetPlace(index: number): void {
    const word = mailboxBase(index) + mailbox.systemThread;
    this.#places?.forget(Atomics.exchange(this.#control, word, 0));
  }

  #resetProgram({ words }: AttachedProgram): void {
    const { host, stallMilliseconds } = this.#options;
    for (const key of ["abort", "faultStatement", "faultValue", "arrived", "sleeping"] as const) {
      words[word(controlBlock[key])] = 0;
    }
    words.fill(0, word(controlBlock.finished), word(controlBlock.parameters));
    words[word(controlBlock.spinLimit)] = this.threads > host.parallelism ? 0 : runPolls;
    const sleeps = Math.ceil(stallMilliseconds / sleepMilliseconds);
    words[word(controlBlock.stallLimit)] = Math.max(1, sleeps);
  }

  /** Takes the job back from the threads that are still to begin it. */
  #withdraw({ numbers }: Job): void {
    const control = this.#control;
    for (const [index, number] of [...numbers]) {
      const offer = mailboxBase(index) + mailbox.offer;
      if (Atomics.compareExchange(control, offer, number, ~number) !== number) continue;
      numbers.delete(index);
      Atomics.sub(control, poolWords.remaining, 1);
    }
  }

  /** Sees to it that a worker runs as this thread and knows the program. */
  #ready(index: number, id: number, { module, memory, entry }: AttachedProgram): void {
    const thread = this.#threads[index] ?? this.#spawn(index);
    if (thread.attached.has(id)) return;
    thread.attached.add(id);
    const words = {
      abortWord: word(controlBlock.abort),
      wakeWord: word(controlBlock.generation),
      trapped: abortCodes.trapped,
    };
    this.#post(thread, index, { kind: "attach", program: id, module, memory, entry, ...words });
  }

  #spawn(index: number): Thread {
    const { host } = this.#options;
    const processors = host.processors?.();
    if (processors) this.#places ??= new ThreadPlaces(processors);
    const handle = host.spawn(workerSource, `wavetile-${index}`, {
      message: (message) => this.#complete(index, message),
      died: (reason) => this.#bury(thread, index, reason),
    });
    const thread: Thread = { handle, attached: new Set() };
    this.#threads[index] = thread;
    const polls = this.threads > host.parallelism ? 0 : pollMilliseconds;
    const base = mailboxBase(index);
    const jobs = this.#control[base + mailbox.jobs]!;
    const start = { kind: "start", thread: index, control: this.#control.buffer, jobs } as const;
    handle.post({ ...start, pollMilliseconds: polls });
    handle.post({ kind: "serve", visits: this.#control[base + mailbox.visits]! });
    return thread;
  }

  /** Sends a message to a thread that waits for jobs: it has to visit its event loop to read it. */
  #post(thread: Thread, index: number, message: ToWorker): void {
    const visits = this.#ring(index, "visits");
    thread.handle.post(message);
    thread.handle.post({ kind: "serve", visits });
  }

  /** Counts one up, publishes with it what stands in the mailbox, and wakes the thread. */
  #ring(index: number, counter: "jobs" | "visits"): number {
    const base = mailboxBase(index);
    const count = (Atomics.add(this.#control, base + mailbox[counter], 1) + 1) | 0;
    Atomics.add(this.#control, base + mailbox.event, 1);
    Atomics.notify(this.#control, base + mailbox.event);
    return count;
  }

  /** Blocks until no worker is at work on the job, then settles it. */
  #awaitWorkers(job: Job): Result<void> {
    const control = this.#control;
    for (let i = 0; i < finishPolls; i++) {
      if (Atomics.load(control, poolWords.remaining) === 0) break;
    }
    for (;;) {
      const remaining = Atomics.load(control, poolWords.remaining);
      if (remaining === 0) return this.#finish(job);
      const { stallMilliseconds } = this.#options;
      const woken = Atomics.wait(control, poolWords.remaining, remaining, stallMilliseconds);
      if (woken === "timed-out") this.#endStragglers(job);
    }
  }

  /**
   * Whoever is still at work after the run was given up will not stop by itself. A job that has not
   * been given up is, if this side finished its own part; a promise job may take as long as it wants.
   */
  #endStragglers(job: Job): void {
    if (Atomics.load(job.program.words, word(controlBlock.abort)) === abortCodes.none) {
      if (job.first > 0) abortProgram(job.program, abortCodes.stalled);
      return;
    }
    for (const [index, number] of job.numbers) {
      if (this.#isDone(index, number)) continue;
      const thread = this.#threads[index];
      this.#threads[index] = undefined;
      this.#forgetPlace(index);
      // Not awaited: the thread cannot return to JavaScript, and the engine stops it on its own time.
      void thread?.handle.terminate();
      Atomics.sub(this.#control, poolWords.remaining, 1);
    }
  }

  #isDone(index: number, job: number): boolean {
    return Atomics.load(this.#control, mailboxBase(index) + mailbox.done) === job;
  }

  /** A worker says that the last part of a promise job is done. */
  #complete(index: number, message: FromWorker): void {
    const job = this.#job;
    if (job?.settle && job.numbers.get(index) === message.job) this.#finish(job);
  }

  /** A worker is gone: the others are told to stop, and its part counts as finished. */
  #bury(thread: Thread, index: number, reason: string): void {
    if (this.#threads[index] !== thread) return;
    this.#threads[index] = undefined;
    this.#forgetPlace(index);
    const job = this.#job;
    const number = job?.numbers.get(index);
    if (!job || number === undefined || this.#isDone(index, number)) return;
    job.failure ??= reason;
    abortProgram(job.program, abortCodes.trapped);
    if (Atomics.sub(this.#control, poolWords.remaining, 1) === 1) this.#finish(job);
  }

  #finish(job: Job): Result<void> {
    this.#job = undefined;
    const { program } = job;
    const outcome = programOutcome(
      program.words,
      job.failure ?? this.#failureText(),
      program.checks,
    );
    job.settle?.(outcome);
    return outcome;
  }

  /** What the last worker that failed said. */
  #failureText(): string {
    const length = Atomics.load(this.#control, poolWords.failureLength);
    // Asked after every run.
    if (length === 0) return "";
    const from = poolWords.failureText;
    return String.fromCharCode(...this.#control.subarray(from, from + length));
  }
}

/** Tells all threads of a run to stop at their next barrier; the first reason stays. */
function abortProgram({ words }: AttachedProgram, code: number): void {
  Atomics.compareExchange(words, word(controlBlock.abort), abortCodes.none, code);
  // Threads on a memory that is not shared never wait.
  if (words.buffer instanceof SharedArrayBuffer) {
    Atomics.notify(words, word(controlBlock.generation));
  }
}
