/**
 * What a thread of an emitted program finds through its one pointer, and what threads tell each other.
 * The emitter and runtime/native both read these tables. Words are 64 bits, the shared block's 32.
 */

/** Byte offsets of the 64-bit words of a thread's own block. */
export const threadBlock = {
  /** Address of the shared block. */
  shared: 0,
  /** This thread's number, and how many there are. */
  thread: 8,
  threads: 16,
  /** Address of this thread's memory for local buffers. */
  local: 24,
  /** The system's number of a worker thread, as it says itself; 0 until then, and where it makes no system calls. */
  systemThread: 32,
  /** MXCSR as found, and as it is while the program runs. */
  savedControl: 40,
  control: 44,
  /** Operating-system function that gives up the processor, where emitted code makes no system calls. */
  yieldThread: 48,
  /** Number of the job that the worker did last. */
  lastJob: 56,
  /** Functions of the C library, mathFunctions in order. */
  math: 64,
  /** Number of the launch whose parts are claimed, the same for all threads, and how many parts it has. */
  launch: 224,
  extent: 232,
  /** Parts that this thread has claimed: the first, and where they end. */
  firstPart: 240,
  endPart: 248,
  /** Grid coordinates, bindings and table addresses of the kernel that runs. */
  arguments: 256,
  argumentCount: 32,
  /** Shape parameters, arena addresses, addresses of unplaced buffers. */
  words: 512,
} as const;

/** Shares that the parts of a launch are cut into where threads are not fewer, and how far apart their words are. */
export const shares = 16;
export const shareBytes = 64;

/** Byte offsets of the 32-bit words (some are of 64) that all threads share; on cache lines of their own where written often. */
export const sharedBlock = {
  /** Why the run has to end (abortCodes); 0 while it may go on. Barriers look at it. */
  abort: 0,
  /** Which statement failed its check (number given by the emitter), and the value it found (64 bits). */
  faultStatement: 4,
  faultValue: 8,
  /** Threads that reached the current barrier. */
  arrived: 64,
  /** Barriers completed; threads wait for it to change. */
  generation: 128,
  /** Threads asleep on `generation`. */
  sleeping: 192,
  /** Polls before a thread sleeps, half as many after each wait in vain of a run, and sleeps without progress before a run counts as stalled. */
  spinLimit: 256,
  stallLimit: 260,
  /** Polls of `job` before an idle worker sleeps. */
  idleSpinLimit: 264,
  /** Jobs published so far; the workers' mailbox. */
  job: 320,
  /** Workers asleep on `job`. */
  idle: 384,
  /** Workers that have not finished the current job. */
  pending: 448,
  /** The publisher sleeps on `pending`. */
  waiting: 512,
  /** Not 0: workers end. */
  quit: 576,
  /** 64 bits: the number of a job in the upper half, in the lower one how many workers may still begin it. */
  open: 640,
  /** 64 bits: number of a launch in the upper half, in the lower one how many of its parts are finished. */
  finished: 704,
  /** The same of what is claimed of each share: 64 bits a share, on a cache line of its own. */
  claims: 768,
  bytes: 768 + shares * shareBytes,
} as const;

export const abortCodes = {
  none: 0,
  /** The caller's AbortSignal. */
  cancelled: 1,
  /** A thread did not reach a barrier in time. */
  stalled: 3,
  /** A checked index was out of range. */
  outOfRange: 4,
  /** A while task made more trips than it may. */
  tooManyTrips: 5,
} as const;

/** Longest sleep in a barrier, so that a thread notices an abort whoever set it. */
export const sleepNanoseconds = 100_000_000;

/** f64 functions of the C library that emitted code calls, one or two arguments. */
export const mathFunctions = [
  ...(["exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"] as const),
  ...(["asinh", "acosh", "atanh", "erf", "pow", "atan2", "fmod"] as const),
] as const;

export type MathFunction = (typeof mathFunctions)[number];

export function mathWord(name: MathFunction): number {
  return threadBlock.math + 8 * mathFunctions.indexOf(name);
}
