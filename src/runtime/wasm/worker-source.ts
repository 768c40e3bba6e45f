/**
 * The code of a compute thread, as text, because the package runs both from TypeScript sources and from
 * a bundle and a worker must not depend on where either lies. It is a function of one `port`
 * ({ post(message), listen(handler), systemThread? }) that the host's prologue supplies, and of nothing else.
 *
 * A thread alternates between its event loop, where it receives messages (new programs), and `serve`,
 * where it waits for jobs on its mailbox without the event loop.
 */

/** i32 words of one thread's mailbox; a mailbox fills a cache line. */
export const mailbox = {
  words: 16,
  /** Changes with every word below that the pool changes; the thread sleeps on it. */
  event: 0,
  /** Jobs given so far. */
  jobs: 1,
  /** Times the thread was asked to visit its event loop; it stays there until told to serve. */
  visits: 2,
  /** The program of the current job. */
  program: 3,
  threads: 4,
  /** Whether the last thread to finish posts a message: some caller awaits a promise. */
  announce: 5,
  /** Number of the last job this thread finished. */
  done: 6,
  /** The number of the current job; its complement once the thread has begun it or it was withdrawn. */
  offer: 7,
  /** The system's number of the thread; 0 where it is not known. */
  systemThread: 8,
} as const;

/** Words of the pool's control array before the mailboxes. */
export const poolWords = {
  /** Threads that have not finished the current job; 0 ends it. */
  remaining: 0,
  /** UTF-16 code units of the last failure text, and the text itself, one unit a word. */
  failureLength: 16,
  failureText: 17,
  failureCapacity: 239,
  mailboxes: 256,
} as const;

/** Polls of the calling thread for the end of a job before it sleeps: 0.4 ms on a Zen 4 of 3.7 GHz. */
export const finishPolls = 60_000;

/**
 * Polls of a wait within a run before a thread sleeps, as emitted code does them: 0.34 ms on a Zen 4 of 3.7 GHz, where one
 * takes 0.56 ns. A run has some hundred waits for the last parts of a kernel, which take up to some hundred
 * microseconds; one that sleeps is woken that much later.
 */
export const runPolls = 600_000;

export type ToWorker =
  | {
      readonly kind: "start";
      readonly thread: number;
      readonly control: SharedArrayBuffer;
      /** How long it polls its mailbox for the next job before it sleeps. */
      readonly pollMilliseconds: number;
      /** Jobs given to this mailbox before, to an earlier worker. */
      readonly jobs: number;
    }
  | {
      readonly kind: "attach";
      readonly program: number;
      readonly module: WebAssembly.Module;
      readonly memory: WebAssembly.Memory;
      readonly entry: string;
      /** Word indexes in the program's memory, and the value that says a thread failed. */
      readonly abortWord: number;
      readonly wakeWord: number;
      readonly trapped: number;
    }
  | { readonly kind: "detach"; readonly program: number }
  /** Wait for jobs, unless more visits than this were asked for since. */
  | { readonly kind: "serve"; readonly visits: number };

/** The last part of a job is done; `job` is its number in the sender's mailbox. */
export type FromWorker = { readonly kind: "complete"; readonly job: number };

/** Polls of the mailbox between two looks at the clock, which take as long as ten of them. */
const pollsBetweenLooks = 64;

export const workerSource = `(function (port) {
  "use strict";
  const programs = new Map();
  let control, thread, pollMilliseconds, base, lastJob;

  function fail(error) {
    const text = String((error && error.message) || error).slice(0, ${poolWords.failureCapacity});
    for (let i = 0; i < text.length; i++) control[${poolWords.failureText} + i] = text.charCodeAt(i);
    Atomics.store(control, ${poolWords.failureLength}, text.length);
  }

  function attach(message) {
    const words = new Int32Array(message.memory.buffer);
    const program = { message, words, run: undefined, error: undefined };
    try {
      const imports = { env: { memory: message.memory }, math: Math };
      program.run = new WebAssembly.Instance(message.module, imports).exports[message.entry];
    } catch (error) {
      program.error = error;
    }
    programs.set(message.program, program);
  }

  function work(id, threads) {
    const program = programs.get(id);
    try {
      if (program.error) throw program.error;
      program.run(thread, threads);
    } catch (error) {
      fail(error);
      const { words, message } = program;
      Atomics.compareExchange(words, message.abortWord, 0, message.trapped);
      Atomics.notify(words, message.wakeWord);
    }
  }

  function awaitEvent(event) {
    const end = performance.now() + pollMilliseconds;
    while (pollMilliseconds > 0 && performance.now() < end) {
      for (let i = 0; i < ${pollsBetweenLooks}; i++) {
        if (Atomics.load(control, base + ${mailbox.event}) !== event) return;
      }
    }
    Atomics.wait(control, base + ${mailbox.event}, event);
  }

  function runJob() {
    work(control[base + ${mailbox.program}], control[base + ${mailbox.threads}]);
    const announce = control[base + ${mailbox.announce}];
    Atomics.store(control, base + ${mailbox.done}, lastJob);
    if (Atomics.sub(control, ${poolWords.remaining}, 1) !== 1) return;
    Atomics.notify(control, ${poolWords.remaining});
    if (announce) port.post({ kind: "complete", job: lastJob });
  }

  function serve(visits) {
    for (;;) {
      const event = Atomics.load(control, base + ${mailbox.event});
      if (Atomics.load(control, base + ${mailbox.visits}) !== visits) return;
      const job = Atomics.load(control, base + ${mailbox.jobs});
      if (job === lastJob) awaitEvent(event);
      else {
        lastJob = job;
        const offer = base + ${mailbox.offer};
        if (Atomics.compareExchange(control, offer, job, ~job) === job) runJob();
      }
    }
  }

  port.listen(function (message) {
    if (message.kind === "start") {
      control = new Int32Array(message.control);
      thread = message.thread;
      pollMilliseconds = message.pollMilliseconds;
      lastJob = message.jobs;
      base = ${poolWords.mailboxes} + thread * ${mailbox.words};
      Atomics.store(control, base + ${mailbox.systemThread}, port.systemThread || 0);
    } else if (message.kind === "attach") attach(message);
    else if (message.kind === "detach") programs.delete(message.program);
    else serve(message.visits);
  });
})`;
