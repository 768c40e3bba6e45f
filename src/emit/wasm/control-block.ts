/**
 * The first bytes of an emitted program's memory: what compute threads and the runtime tell each other.
 * The emitter and runtime/wasm both read this table. Words that different threads write stand on
 * different cache lines.
 */

/** Shares that the parts of a launch are cut into where threads are not fewer, and how far apart their words are. */
export const shares = 16;
export const shareBytes = 64;

/** Byte addresses of i32 words, but for those that say otherwise. */
export const controlBlock = {
  /** Why the run has to end (abortCodes); 0 while it may go on. Barriers look at it. */
  abort: 0,
  /** Which statement failed its check (number given by the emitter), and the value it found: 64 bits. */
  faultStatement: 4,
  faultValue: 8,
  /** Threads that reached the current barrier. */
  arrived: 64,
  /** Barriers completed; threads wait for it to change. */
  generation: 128,
  /** Threads asleep on `generation`. */
  sleeping: 192,
  /** Polls of a wait before a thread sleeps; 0 where threads outnumber cores, down to a least number half as many after each wait in vain. */
  spinLimit: 256,
  /** Sleeps of sleepMilliseconds without progress before the run counts as stalled. */
  stallLimit: 260,
  /** In the upper half the number of a launch, in the lower one how many of its parts are finished (deal.ts): 64 bits. */
  finished: 320,
  /** The same of what is claimed of each share: 64 bits a share, on a cache line of its own. */
  claims: 384,
  /** Shape parameters in program order, one word each. */
  parameters: 384 + shares * shareBytes,
} as const;

export const abortCodes = {
  none: 0,
  /** The caller's AbortSignal. */
  cancelled: 1,
  /** A thread trapped or died. */
  trapped: 2,
  /** A thread did not reach a barrier in time. */
  stalled: 3,
  /** A checked index was out of range. */
  outOfRange: 4,
  /** A while task made more trips than it may. */
  tooManyTrips: 5,
} as const;

/** How long one sleep in a barrier lasts at most, so that a thread notices an abort whoever set it. */
export const sleepMilliseconds = 100;
