/**
 * Keeps compute threads off the processor of the thread that calls them. Schedulers may wake a thread on the
 * processor of whoever woke it, because that one sleeps soon as a rule; a caller that computes does not, and the two
 * take turns on one processor while others idle, until the scheduler balances its load milliseconds later. All other processors
 * stay open to a thread, and the calling thread is never restricted.
 */
import type { ProcessorSet, Processors } from "./ffi/processors.ts";

export class ThreadPlaces {
  readonly #processors: Processors;
  /** By thread: the processor that it keeps off. */
  readonly #avoided = new Map<number, number>();

  constructor(processors: Processors) {
    this.#processors = processors;
  }

  /** Before the calling thread and these run together, by the system's numbers. */
  keepApart(threads: Iterable<number>): void {
    const here = this.#processors.current();
    let others: ProcessorSet | undefined;
    for (const thread of threads) {
      if (this.#avoided.get(thread) === here) continue;
      others ??= this.#othersThan(here);
      // Refused or impossible: asked again when the caller is somewhere else.
      if (others.some((byte) => byte !== 0)) this.#processors.restrict(thread, others);
      this.#avoided.set(thread, here);
    }
  }

  /** Threads that are gone; the system may give their numbers to others. */
  forget(thread: number): void {
    this.#avoided.delete(thread);
  }

  #othersThan(processor: number): ProcessorSet {
    const set = this.#processors.allowed() ?? new Uint8Array();
    return set.map((byte, i) => (i === processor >> 3 ? byte & ~(1 << (processor & 7)) : byte));
  }
}
